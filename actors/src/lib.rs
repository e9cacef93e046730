//! The actors of Troupe: mailboxes, sockets and timers around the decisions of `kafka-troupe-proto`.
//!
//! ```text
//!                    ConsumerSystem (starts and restarts all of them)
//!        ┌────────────────┬──────────────┴───┬─────────────────┬──────────────────┐
//!    ZkSession ──▶ RebalanceCoordinator ─▶ FetcherManager ─▶ BrokerFetcher ─▶ StreamQueue ─▶ handler / KafkaStream
//!        ▲           ▲    │     ▲             (one)       (some per broker)   (per thread)        │
//!        │           │    ▼     │ PartitionsLost                                                  │ acknowledges
//!        └───────────┼ OffsetCommitter ◀──────────── TopicRegistry (shared positions) ◀───────────┘
//!                    │      └─▶ the group's coordinator, a broker (with offsets.storage=kafka)
//!              TopicMetadata (with bootstrap.servers)
//! ```
//!
//! - [`zk_session`]: the ZooKeeper session, its watches and heartbeat; the [`lease`] that guards delivery.
//! - [`topic_metadata`]: topics and brokers where Kafka has no ZooKeeper (`bootstrap.servers`).
//! - [`coordinator`]: which partitions are ours; runs the pure rebalance machine.
//! - [`fetcher_manager`], [`broker_fetcher`], [`broker_connection`]: from the brokers' sockets to chunks.
//! - [`stream_queue`]: chunks to records, one stream per consumer thread; drives handlers, feeds [`KafkaStream`].
//! - [`offset_committer`]: what is stored of how far we are, in ZooKeeper or Kafka.
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
//!   then. What stands in the offset node counts (`offset_committer/zookeeper_store.rs`), and whoever asked may have
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
//! - What one of a broker's fetchers (`num.consumer.fetchers`) has asked for is not counted in a stream's room before
//!   it comes, so the others must know of it; and a fetcher that waits, perhaps for a broker that is dead, must not
//!   keep the room from them, so none asks for more than its share (`broker_fetcher/budget.rs`).
//! - A connection that the broker closed for being idle shows by the next request only, and then looks like one that
//!   failed. After a rest, with not a byte of an answer, it is opened anew at once; but once only: a broker that closes
//!   on every request would be asked without a pause
//!   (`a_connection_that_is_opened_anew_and_closed_again_is_a_failure`).
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
//! ## Offsets in Kafka
//! - Kafka compares nothing: a request that was given up may be carried out after later ones, and after the partition
//!   was released. A commit of ours done late is put right by the next, which writes all that is owned, changed or not;
//!   of a partition that has gone it takes the group back to what we had acknowledged. So only the time counts: none is
//!   sent, or waited for, beyond the lease, and a release waits for those in flight, also without automatic commit
//!   (`the_wait_for_an_answer_ends_with_the_lease_and_nothing_is_sent_after_it`,
//!   `without_automatic_commit_a_release_waits_for_the_commit_in_flight`,
//!   `a_commit_by_hand_is_answered_before_its_partition_is_the_next_owners`).
//! - A commit that waits to be tried again must look again whether it may be: meanwhile the partition may be lost, or
//!   its topic made again (`a_commit_that_is_tried_again_looks_again_whether_it_may_be`,
//!   `a_flush_is_not_tried_again_when_the_partition_is_lost_meanwhile`).
//! - An explicit commit may be past what is acknowledged; the next automatic one writes the larger, also of one whose
//!   answer was lost, for it may stand
//!   (`an_automatic_commit_takes_no_explicit_one_back_not_even_one_whose_answers_were_lost`).
//! - A position that was made and whose storing failed is not made again, in no store: it may be carried out yet, and
//!   one store may have it (`a_position_that_only_zookeeper_took_stands_when_it_is_made_again`), also after a commit
//!   that moved nothing (`a_position_whose_storing_failed_stands_after_a_commit_that_moved_nothing`). It counts in the
//!   place where it was made, or an old one would come back much later
//!   (`a_position_whose_storing_failed_does_not_stand_after_a_seek_or_a_commit`), and in the topic in which it was made
//!   (`a_position_that_was_made_while_the_topic_was_made_again_does_not_stand`); and a lower one that is found since
//!   counts more, for the log may have been truncated once more
//!   (`a_lower_position_that_is_found_since_counts_more_than_one_whose_storing_failed`).
//! - A position that is made or sought is stored in the topic for which it was asked, in both stores: the topic may be
//!   made again between the two (`in_both_stores_a_topic_that_is_made_again_between_them_keeps_kafka_unwritten`). When
//!   it is read, Kafka is asked after the topic's number was
//!   (`a_topic_that_is_made_again_after_kafka_was_read_is_not_the_one_that_it_was_read_for`).
//! - A claim that is renewed knows what is stored together with the one before, to which an earlier commit is answered
//!   (`an_explicit_commit_that_was_asked_for_before_its_claim_was_renewed_is_not_taken_back`).
//! - After a while with Kafka alone ZooKeeper is behind, and must be written although nothing was read since
//!   (`the_first_commit_brings_the_store_that_is_behind_up`): each store's offset is known by itself.
//! - Brokers close connections that were idle: such a try counts for nothing, else the last flush would be lost to it
//!   (`a_commit_whose_connection_is_closed_is_sent_again_on_another`).
//! - While others wait for a partition, commits are tried again until the drain time is over, also those that were
//!   begun before (`a_flush_ends_in_bounded_time`). What waits for its turn then is not tried at all, for each try
//!   would make the release later (`a_flush_does_not_wait_for_a_try_of_each_commit_that_is_queued_before_it`), and a
//!   read is cut off (`a_flush_does_not_wait_for_a_read_that_is_not_answered`). `offsets_channel` has a table of such
//!   waits.
//! - What is stored is read for a reset before its turn to write comes, or all commits wait for a coordinator that
//!   loads (`no_commit_and_no_release_waits_for_a_position_that_cannot_be_read`).
//! - The wait for an answer is bounded by the lease as it is extended, not as it was: a broker may take longer for a
//!   commit than the lease has left, and a release would go on with the request under way
//!   (`an_answer_is_waited_for_as_long_as_the_lease_is_extended`).
//! - A restarted coordinator has nothing to flush and flushes all the same, to wait for the flush of its earlier life
//!   (`a_restarted_coordinator_releases_nothing_before_the_flush_of_its_earlier_life_is_answered`).
//! - The answer of an actor outlives its panic: what an earlier life of the committer writes is waited for by the next
//!   ([`offset_committer::Inherited`], `a_restarted_committer_commits_nothing_beside_a_seek_of_its_earlier_life`).
//! - What is refused for good is asked for again all the same, by each partition for itself, so a refusal is followed
//!   by a pause as well (`what_is_refused_for_good_is_not_asked_for_without_a_pause`).
//!
//! ## Topics and offsets
//! - A claim whose last flush waits for its turn, or is tried again, has left the registry and must be told all the same
//!   that its topic was made again (`a_claim_that_is_being_flushed_is_told_that_its_topic_was_made_again`).
//! - A topic that is deleted and made again looks the same in the group's snapshot, and an offset of the earlier one
//!   passes over records of the later: only the transaction that made its node tells, or its id. So no offset of the
//!   earlier topic may be written after that transaction, by a commit, a flush or a position that is being made
//!   (`coordinator/remade.rs`).
//! - Where the group's ZooKeeper is not Kafka's (`bootstrap.servers`), a node of the group's own takes the place of the
//!   topic's ([`topic_ids`](kafka_troupe_proto::zk::topic_ids)).
//! - Brokers before 0.11 make the topics that Metadata names, also one that was just deleted: they are asked for all
//!   topics. (`tests/offsets/remade.rs`)
//!
//! ## Commits that are asked for
//! - The commit of an interval waits for its turn like others, one at a time. Left out whenever somebody wrote or waited
//!   to, it never came beside handlers that commit each record
//!   (`handlers_that_commit_each_record_do_not_keep_the_interval_s_commit_from_its_turn`).
//! - Of several seeks that failed any may stand, not the last one only: the next commit writes over whatever it finds
//!   (`of_two_seeks_that_failed_the_first_is_taken_back_as_well`).
//! - An added member whose committer has ended is asked again until it has ended itself, or its end would be a failure
//!   of the others' commits. (`a_member_that_is_ending_is_no_failure_of_the_others`)
//! - A committer that panicked is waited for, a commit that is under way at a live one for as long as its stores take:
//!   to give that up was to queue the next beside it
//!   (`a_commit_to_a_coordinator_that_is_silent_says_so_however_long_it_takes`). The channel to Kafka ends with its
//!   committer and the pass does not: what is answered by nobody then is asked for again, and not what else was
//!   committed (`a_commit_to_kafka_outlives_a_committer_that_panics`).
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

pub use consumer_system::{ConsumerHandle, ConsumerSystem, Offsets, StartError};
pub use record::{ConsumeError, DecodeError, HandlerError, HandlerResult, Header, Record, TimestampType};
pub use stream_queue::KafkaStream;
