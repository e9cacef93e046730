//! The dashboard in a real Chromium: what people do with it, and what they see.
//!
//! - [`walks`]: the tasks that it must make quick, by keys, on large and small screens, of groups that are told.
//! - [`served`]: prefixes, proxies, servers and systems that go away.
//! - [`rebalance`]: a real cluster, whose group a member joins.
//! - [`browser`], [`fixture`], [`server`]: what drives it, what it shows, what serves it.
//!
//! Pictures of all of it are kept in `target/dashboard`.

mod browser;
mod fixture;
mod rebalance;
mod served;
mod server;
mod walks;
