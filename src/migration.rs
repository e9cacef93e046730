//! How to move a running group's offsets from ZooKeeper to Kafka, hand the group over to Kafka's own consumer, and go
//! back. For operators; all of it is tested on 1.1.1 and 3.9.1, with Scala members of 0.8.2.2 and 1.1.1 in the group,
//! and the hand-over on 4.1.1 too, there to its new protocol (`group.protocol=consumer`).
//!
//! # The walk
//!
//! Brokers have offsets from 0.8.2 on; for Scala members of 0.9 and later, from 0.9 on.
//!
//! | step | `offsets.storage` | `dual.commit.enabled` | commits go to | a start reads |
//! |---|---|---|---|---|
//! | 1 ZooKeeper | `zookeeper` | (not looked at) | ZooKeeper | ZooKeeper |
//! | 2 both | `kafka` | `true` | ZooKeeper, then Kafka | the larger |
//! | 3 Kafka | `kafka` | `false` | Kafka | Kafka |
//!
//! One step at a time, forth or back: restart the members one by one with the next step's two properties, ours and
//! Scala's alike. Before the next step, *all* members must be at this one, and the check below must hold: members two
//! steps apart do not see each other's commits. Without step 2 between, a member begins at what the other store was
//! left with, or by `auto.offset.reset`.
//!
//! A clean stop (SIGTERM, [`ConsumerHandle::shutdown`](crate::ConsumerHandle::shutdown)) commits all that was
//! handled. Then the walk hands over exactly: no record is lost, and none is handled again between members of ours.
//! Where a Scala member takes over, it may repeat what was handled since the commit that it has read before it owned
//! the partition; where it lets go, one record of each of its streams. A member that is killed repeats what it has
//! handled since its last commit (`auto.commit.interval.ms`).
//!
//! # What to check before the next step
//!
//! Wait for one `auto.commit.interval.ms` after the last restart. `ZK` is `zookeeper.connect` with its chroot; `G`,
//! `T` and `P` are group, topic and partition. `troupe` looks from outside, and sets nothing here:
//!
//! ```text
//! troupe verify --zookeeper ZK --group G                                              # all is owned once, and moves
//! troupe groups describe --zookeeper ZK --group G                                     # who is there, and how far
//! troupe offsets copy --zookeeper ZK --group G --from zookeeper --to kafka --dry-run  # both stores, row by row
//! ```
//!
//! `offsets copy --dry-run` says of each partition what the other store lacks: NEW-OFFSET, where there is nothing of it
//! yet. Without `--dry-run` it sets just that, beside running members too: what they own, or what both stores have, it
//! leaves alone. `--from kafka --to zookeeper` is the way back.
//!
//! The same by the tools that come with the brokers:
//!
//! ```text
//! zookeeper-shell.sh ZK ls /consumers/G/ids                                        # who is there
//! zookeeper-shell.sh ZK get /consumers/G/offsets/T/P                               # what ZooKeeper has
//! kafka-consumer-groups.sh --bootstrap-server B --describe --group G               # what Kafka has (CURRENT-OFFSET)
//! ```
//!
//! - **1 to 2**: Kafka has nothing of this group, or less than ZooKeeper. What is larger there, of an earlier
//!   attempt, would win: delete it (`troupe groups delete --bootstrap-server B --group G`, or
//!   `kafka-consumer-groups.sh --bootstrap-server B --delete --group G`).
//! - **2 to 3**: note ZooKeeper's offsets; then Kafka has at least those, for every partition. (One that nobody
//!   has owned at step 2 has none there, and would begin by `auto.offset.reset`: `offsets copy` shows it, and without
//!   `--dry-run` sets it.)
//! - **3 to 2**: ZooKeeper's offsets stand still, and are lower than Kafka's. They are not if someone has reset the
//!   group in Kafka alone (`--reset-offsets`, [`Seek`](crate::Seek) at step 3): the larger wins, and the reset is
//!   undone. At step 3 nobody needs them, so delete them first, to be sure: `zookeeper-shell.sh ZK deleteall
//!   /consumers/G/offsets` (`rmr` before 3.5; `troupe groups delete` does not, while members are registered).
//! - **2 to 1**: note Kafka's offsets; then ZooKeeper has at least those, for every partition. One to which no record
//!   comes stays behind, or without an offset, as long as a Scala member has it. Ours raises it with its first
//!   commit: stop the Scala member until one of ours has done so. Without any of ours, write what Kafka has, with
//!   `troupe offsets copy --from kafka --to zookeeper` once the members are stopped, or
//!   `zookeeper-shell.sh ZK set /consumers/G/offsets/T/P OFFSET` (`create`, if it is not there).
//!
//! # To Kafka's own consumer
//!
//! Brokers coordinate its groups, and know nothing of ZooKeeper's: a member of the one does not see those of the
//! other, and each side handles all partitions. So this is no walk member by member, but one step:
//!
//! 1. At step 3 (or 2), start the new consumers up to, but without, `subscribe`: same `group.id`, and
//!    `auto.offset.reset=none`, so that an offset that is missing is an error.
//! 2. Stop all members, and see that `/consumers/G/ids` is empty (`troupe groups describe --zookeeper ZK --group G
//!    --state`: MEMBERS 0). The last one to go has committed.
//! 3. Subscribe. They go on at the exact offset: none lost, none handled again. The gap is the brokers'
//!    `group.initial.rebalance.delay.ms` (3 s by default), and the time in which a first member joins (under a second).
//!
//! While a member of Kafka's is there, brokers refuse our commits (error 25, or 27 while it joins); the log says so,
//! and the status counts it as a failure. With both stores, ZooKeeper goes on being committed to.
//!
//! # And back
//!
//! 1. Stop the consumers by `close()`, which commits and leaves. One that was killed keeps the group for its
//!    `session.timeout.ms`: wait until `troupe groups describe --bootstrap-server B --group G --state` shows no
//!    members.
//! 2. Delete ZooKeeper's offsets, as above: they are of the time before, and win if there was a reset since.
//! 3. Start ours at step 2. They go on at the exact offset.
//! 4. Once both stores have the offsets (the check of 2 to 3), delete the group in Kafka *while ours run*:
//!    `troupe groups delete --bootstrap-server B --group G` (without `--zookeeper`: with it, a group that has members
//!    is left alone). Their next commit stores all again. Without this, brokers from 2.1 on remember that the group was
//!    Kafka's own, and drop its offsets once,
//!    `offsets.retention.minutes` after the last of those consumers left, however often they are committed since
//!    (measured on 3.9.1 and 4.1.1, not so on 1.1.1). At step 3 that is a hole until the next commit, in which a
//!    member that starts finds no offset.
//! 5. On to step 3 or 1, or stay.
//!
//! # What else to know
//!
//! - **Fencing.** ZooKeeper's commits are fenced: who has lost a partition cannot commit to it. Kafka's are not: a
//!   commit that timed out may be done late, until the owner's next commit writes over it. At step 3 it may take the
//!   offset back, and who starts in between repeats records. At step 2 it cannot, for the larger counts. At both it may
//!   undo a seek back or a reset that came after it, or be of an earlier topic of the name: who starts in between
//!   passes records over ([the whole rule](crate::committing#what-is-fenced)).
//! - **Resets.** [`Seek`](crate::Seek), `auto.offset.reset` and `troupe groups reset --zookeeper` of ours write to each
//!   store in use. Another tool that resets the stopped group does so in one store: at step 2, reset both, or delete
//!   the offsets in the other.
//! - **Idle groups.** Brokers drop offsets `offsets.retention.minutes` after the last commit (a day before 2.0, a
//!   week from 2.0). Members of ours and of Scala's commit all that they own at each `auto.commit.interval.ms`, changed
//!   or not (without automatic commit, when you ask for it); a group that commits nothing for longer than that, at step
//!   3, begins by `auto.offset.reset`. ZooKeeper forgets nothing.
//! - **Deleted topics.** Kafka's offsets of a deleted topic are dropped by the group's coordinator (from 0.10.2) when
//!   it is told of the deletion: one that is being moved or restarted then keeps them, and so do brokers before 0.10.2,
//!   for `offsets.retention.minutes`. At step 3 see that `--describe` shows none before the topic is made again while
//!   the group is stopped, for such an offset passes over what comes first; members that run see the change themselves.
//!   ZooKeeper keeps them: ours sees that the topic is another one, Scala members do not. Delete
//!   `/consumers/G/offsets/T` with the topic.
