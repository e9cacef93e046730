//! The actors of Troupe: mailboxes, sockets and timers around the decisions of `kafka-troupe-proto`.
//!
//! ```text
//!                    ConsumerSystem (starts and restarts all of them)
//!        ┌────────────────┬──────────────┴───┬─────────────────┬──────────────────┐
//!    ZkSession ──▶ RebalanceCoordinator ─▶ FetcherManager ─▶ BrokerFetcher ─▶ StreamQueue ─▶ handler / KafkaStream
//!        ▲           ▲    │     ▲             (one)          (per broker)     (per thread)        │
//!        │           │    ▼     │ PartitionsLost                                                  │ acknowledges
//!        └───────────┼ OffsetCommitter ◀──────────── TopicRegistry (shared positions) ◀───────────┘
//!                    │
//!              TopicMetadata (with bootstrap.servers)
//! ```
//!
//! - [`zk_session`]: the ZooKeeper session, its watches and heartbeat; the [`lease`] that guards delivery.
//! - [`topic_metadata`]: topics and brokers where Kafka has no ZooKeeper (`bootstrap.servers`).
//! - [`coordinator`]: which partitions are ours; runs the pure rebalance machine.
//! - [`fetcher_manager`], [`broker_fetcher`], [`broker_connection`]: from the brokers' sockets to chunks.
//! - [`stream_queue`]: chunks to records, one stream per consumer thread; drives handlers, feeds [`KafkaStream`].
//! - [`offset_committer`]: what is stored of how far we are.
//! - [`rebalance_listener`]: the application's actor that is asked before partitions go and before they start.
//! - [`registry`]: positions and gates of owned partitions, shared.
//! - [`consumer_system`]: assembly, supervision, metrics, shutdown.
//! - `testkit` (feature): ZooKeeper, brokers and a clock in memory, for tests.
//! - `chaos` (feature): actors that panic and members that vanish, for tests.
//!
//! # Non-obvious
//!
//! Invariants that once broke, or would silently.
//!
//! ## Session and lease
//! - A lease speaks of *one* session: a partition claimed in the last session is not covered by the next one's
//!   lease, although expiry may reach the coordinator's mailbox late ([`lease::Lease::is_live_in`]).
//! - An answered heartbeat does not prove that the leader counts our timeout from it: it hears of a follower's clients
//!   with the follower's answers to its pings only, not by what they write. Answered after a pause of 2/3 of the
//!   timeout, right before the follower was cut off, it gave a lease that outlived the session by a third of the
//!   timeout; so a heartbeat is proof for the ones before it (`zk_session/heartbeat.rs`, `Proof`).
//! - What a watching read has seen counts only where its answer is given, and only for who heard of it: a restart of
//!   the session actor kept an answer from its caller, the change was noted as seen, and told to nobody. Whoever
//!   subscribes is told of every watch anew.
//! - The read that names the holder of a node in a claim's way also watches it. That watch is wanted before it is set:
//!   it may fire before the answer is handled. No operation takes a want back when it ends: one that ended late, after
//!   a restart of the session actor, took that of a read which had begun since, and the owner node's deletion was not
//!   told.
//! - A restarted coordinator must know *every* owner node of its session before it begins: one that it misses, because
//!   a read failed or a session event came first, is held for others until the session ends.
//!
//! ## Claims and rebalance
//! - [`registry::OwnedPartition`] belongs to one claim, not to a partition: whatever still holds the old one changes
//!   nothing any more.
//! - Results of operations on one owner node are told in the order in which ZooKeeper gave them: the coordinator runs
//!   those of one node one after the other. They are tasks of their own, for a context polls all its futures whenever
//!   one has ended, which takes its time with a thousand partitions.
//! - The rebalance machine was wrong in interleavings that nobody thinks of: watches that fire during a backoff, steps
//!   that fail or are answered late while others wait. Each has its test
//!   (`proto/src/group/machine_tests/once_broken.rs`).
//! - A Scala member that has given up is in nobody's way: it stays registered and holds nothing, so that neither a
//!   conflict nor a watch tells. Only the owner nodes do, held against the plan once everybody has had the time to act
//!   on it ([`PeerCheck`](kafka_troupe_proto::group::PeerCheck)). That time begins when the group *looks* different,
//!   not with each rebalance: members with filters rebalance for topics that change nothing.
//! - Members that poll for topics plan differently for `metadata.max.age.ms`. Who knows more waits for who knows less,
//!   as for any holder, and neither gives up; but a peer that has not learnt is none that does not do its part
//!   ([`PeerCheck::learning_late`](kafka_troupe_proto::group::PeerCheck::learning_late)). Each read of the group asks
//!   the brokers anew, so members that come and go do not make it worse.
//! - A change that is told while the group is being read concerns topics that the coordinator does not know to concern
//!   it yet: it counts until that read has been taken in.
//! - A partition that is given up leaves the registry when delivery stops, but can be committed until its last flush
//!   ([`registry::TopicRegistry::committable`]): a rebalance listener commits there. One that is lost meanwhile is not
//!   flushed.
//! - A rebalance listener is asked about a *start*, not about a partition: while a release waits for its handlers, the
//!   session may expire and the same partition start again, and must not be released then.
//!
//! ## Fetching and positions
//! - A fetcher that starts anew begins where the stream stood *then*, while a chunk of its predecessor may still lie in
//!   the stream's mailbox. So chunks may overlap, repeat or leave a gap ([`registry::OwnedPartition::take_in`]): what
//!   overlaps is skipped, what repeats dropped, a gap fetched again. (Accepting only exact joints stalls for good.)
//! - A broker that closes the connection on ApiVersions, or does not answer it, is one of 0.8 or 0.9 only when it has
//!   answered a request that those know (`broker_connection/versions.rs`): one that is slow, or just being stopped,
//!   looks the same, and asked in old versions it would leave out headers and create topics, silently.
//! - A fetch session is answered for *all* its partitions: one that is paused must be forgotten, else its records come
//!   all the same; and a new claim of a partition that the broker knows is told nothing that the old one was told
//!   (`broker_fetcher/session.rs`).
//! - A leader goes on naming a replica that we cannot reach, for it can: after a failure no rack is told for 30 s
//!   (`a_replica_that_failed_is_not_followed_for_a_while_and_is_no_news_after_that`).
//! - A record that cannot be read stops its partition, not its stream: what is queued of the partition lies past it and
//!   is dropped at once, and its fetchers leave it out until the next try. (Only to have it fetched again after a
//!   while, and to go on with the next chunk, was to skip the rest of the chunk without a word.)
//! - A position is made, or found good under a new leader, only when all that was fetched is handled: it is stored at
//!   once (rule 8 of the design), and a crash then would pass over what still waits in the queue. A chunk in the
//!   mailbox of a stream whose thread a handler keeps busy is fetched, and not counted as such yet; it is on its way
//!   until the stream has taken it in, or it is dropped, wherever that is: one that is counted for ever stalls its
//!   partition for ever. (`a_chunk_that_a_stream_does_not_take_in_is_not_on_its_way_any_more`)
//! - A position that was made and whose storing was not answered must not be made again: `largest` is another place by
//!   then. What stands in the offset node counts ([`offset_committer::OffsetStore::reset`]), and whoever asked may have
//!   ended: so the committer, once it is stored, gives the position to the partition itself
//!   ([`offset_committer::CommitReset::instead_of`]). Only for a position that was made, or where we have none: a
//!   commit of ours whose answer was lost is no news, and must not keep us past the end of a truncated log, or at an
//!   offset of an earlier topic.
//!   (`a_commit_of_ours_whose_answer_was_lost_does_not_keep_a_new_position_from_being_stored`)
//! - Another position, while others hold the old one (a chunk on its way, a record in hand, a commit, a position that
//!   is being made), is another claim ([`offset_committer::CommitSeek`]): what they do to the old one is of no effect.
//!   It is put in place under the committer's lock, for a commit of the old one between the two would write over the
//!   new.
//! - A commit that waits for a seek must not write the offset of the claim that the seek has replaced: which claims
//!   there are is asked when it is its turn. A seek whose answer is lost may stand: it is tried once more, and if it
//!   failed, the claim that goes on has its next commit write over it, for the larger would win else, and be passed
//!   over to after a crash. (`tests/offsets/seeks.rs`)
//! - A stored offset that is ahead must not keep an explicit reset from being committed
//!   ([`registry::OwnedPartition::reset`]).
//! - What a broker says of aborted transactions counts from the offset that it was asked for: an abort marker before
//!   the position must be seen all the same, or what its producer committed later is left out.
//! - Where a time is searched in vain, the end of the log that counts is the one *before* the search; else what came
//!   between the two would be passed over. A broker before 0.10.1 that finds nothing means the opposite: all is
//!   younger. (`tests/offsets/times.rs`)
//! - A log that was truncated by an unclean election and has grown again looks well by its offsets. Before the first
//!   fetch from a new leader, and when an offset is out of range, the leader is asked where the epoch of our last
//!   record ended (KIP-320; brokers from 2.3), and what it wrote in place of what we had read is read, whatever
//!   `auto.offset.reset` says. (`tests/offsets/truncated.rs`)
//! - A leader epoch above the present one is refused for ever (error 75) and nothing ever tells a higher: a topic that
//!   was made again counts from 0. So it is given up, but only when all brokers have told a lower one for 5 s: under
//!   one that was cut off, what we have read would look as of another topic
//!   (`a_leader_epoch_that_is_never_heard_of_again_is_given_up_and_what_was_read_is_looked_at`).
//!
//! ## Topics and offsets
//! - A topic that is deleted and made again looks the same in the group's snapshot, and an offset of the earlier one
//!   passes over records of the later: only the transaction that made its node tells, or its id. So no offset of the
//!   earlier topic may be written after that transaction, by a commit, a flush or a position that is being made
//!   (`coordinator/remade.rs`).
//! - Where the group's ZooKeeper is not Kafka's (`bootstrap.servers`), a node of the group's own takes the place of the
//!   topic's ([`topic_ids`](kafka_troupe_proto::zk::topic_ids)).
//! - Brokers before 0.11 make the topics that Metadata names, also one that was just deleted: they are asked for all
//!   topics. (`tests/offsets/remade.rs`)
//!
//! ## Actors and tests
//! - An actor that panics lets go of the answers that it owes, which may read as an answer of none: only an empty
//!   [`supervise::Slot`] means that no other life is to come.
//! - Dropping a panicked actor's context happens after the unwind, so `thread::panicking()` is false there; an
//!   [`supervise::ExitGuard`] that was not dismissed is what tells.
//! - Nothing that decides is left to a coin, a hash order or the machine's clock, but for the seams of `testkit`: else
//!   a seed of the simulation (`tests/simulation`) is not the same run again.
#![deny(missing_docs)]

pub mod broker_connection;
pub mod broker_fetcher;
#[cfg(feature = "chaos")]
pub mod chaos;
mod clock;
pub mod consumer_system;
pub mod coordinator;
pub mod fetcher_manager;
pub mod lease;
pub mod offset_committer;
pub mod rebalance_listener;
mod record;
pub mod registry;
pub mod stream_queue;
pub mod supervise;
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod topic_metadata;
pub mod zk_session;

pub use consumer_system::{ConsumerHandle, ConsumerSystem, StartError};
pub use record::{ConsumeError, DecodeError, HandlerError, HandlerResult, Header, Record, TimestampType};
pub use stream_queue::KafkaStream;
