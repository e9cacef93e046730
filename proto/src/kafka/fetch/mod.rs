//! Fetch 0 to 11: reads record sets.
//!
//! | version | brings |
//! |---|---|
//! | 1 | throttle time; below 2 the broker converts to magic 0, below 4 to magic 1 (dear for the broker: choose 4 or more) |
//! | 3 | `max_bytes` for the whole response; a first batch larger than all limits comes whole from here on |
//! | 4, 5 | magic 2, isolation level, last stable offset, aborted transactions; log start offset |
//! | 7 | fetch sessions: partitions without news stay out of request and response |
//! | 9, 10, 11 | leader epoch; zstd; rack and preferred read replica |
//!
//! Below 10 a broker answers 76 for topics *configured* for zstd; what a producer compressed so comes from 4 on
//! (seen on 2.8.2).

mod decoder;
mod request;
mod response;

pub use decoder::{FetchDecoder, FetchPart};
pub use request::{
    FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, NEW_SESSION_EPOCH, NO_SESSION_EPOCH,
};
pub use response::{AbortedTransaction, FetchHead, FetchResponse, FetchedPartition, FetchedTopic};

#[cfg(test)]
mod tests;
