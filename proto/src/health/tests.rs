use super::*;
use crate::schemas::status::v1::*;

const NOW: i64 = 1_000_000;

fn well() -> StatusSnapshot {
    let session =
        Session { state: SessionState::Connected.into(), lease_remaining_ms: 4_000, ..Default::default() };
    let actor =
        |name: &&str| ActorStatus { name: (*name).into(), answered_in_ms: Some(0), ..Default::default() };
    StatusSnapshot {
        consumer_id: "g_one".into(),
        session: Some(session),
        phase: "stable".into(),
        actors: NEEDED.iter().map(actor).collect(),
        taken_ms: NOW,
        ..Default::default()
    }
}

fn partition(change: impl FnOnce(&mut OwnedPartition)) -> StatusSnapshot {
    let mut owned =
        OwnedPartition { topic: "orders".into(), partition: 7, fetched: 42, ..Default::default() };
    change(&mut owned);
    StatusSnapshot { partitions: vec![owned], ..well() }
}

#[track_caller]
fn failing(snapshot: &StatusSnapshot, names: &[&str]) {
    let Health::Failing { why } = Health::of(snapshot) else { panic!("{:?}", Health::of(snapshot)) };
    assert_eq!(why.len(), 1, "{why:?}");
    for name in names {
        assert!(why[0].contains(name), "{name} is missing: {}", why[0]);
    }
}

fn ago(ms: u128) -> i64 {
    NOW - i64::try_from(ms).unwrap()
}

#[test]
fn a_member_that_owns_what_falls_to_it_under_a_live_lease_is_healthy() {
    assert_eq!(Health::of(&well()), Health::Healthy);
    assert_eq!(Health::of(&partition(|_| {})), Health::Healthy);
}

#[test]
fn what_is_missing_in_ownership_is_named_as_the_coordinator_names_it() {
    let why = "orders-7 is held by g_other-0";
    failing(&StatusSnapshot { failing: why.into(), ..well() }, &[why]);
}

#[test]
fn a_partition_that_is_not_fetched_is_a_failure_once_the_grace_is_over() {
    let lasting = |ms| {
        partition(|it| {
            it.unfetched = "broker 3: connection refused".into();
            it.unfetched_since_ms = ago(ms);
        })
    };
    assert_eq!(Health::of(&lasting(GRACE.as_millis() - 1)), Health::Healthy);
    failing(&lasting(GRACE.as_millis()), &["orders-7", "42", "15 s", "broker 3: connection refused"]);
}

#[test]
fn a_record_that_cannot_be_read_is_named_as_its_error_does() {
    let halted = HaltedPartition {
        topic: "orders".into(),
        partition: 7,
        reason: "unreadable".into(),
        offset: 42,
        why: "cannot read orders-7 at offset 42: crc; to step over it, seek(..)".into(),
        attempts: 3,
        ..Default::default()
    };
    let why = halted.why.clone();
    failing(&StatusSnapshot { halted: vec![halted], ..well() }, &[&why]);
}

#[test]
fn a_partition_that_its_policy_has_stopped_is_a_failure_and_one_that_is_paused_is_none() {
    let halted = |reason: &str| {
        let halted = HaltedPartition {
            topic: "orders".into(),
            partition: 7,
            reason: reason.into(),
            offset: 42,
            why: "no such customer".into(),
            attempts: 11,
            ..Default::default()
        };
        StatusSnapshot { halted: vec![halted], ..well() }
    };
    for reason in ["paused", "topic_paused"] {
        assert_eq!(Health::of(&halted(reason)), Health::Healthy);
    }
    failing(&halted("failed"), &["orders-7", "offset 42", "11 times", "no such customer"]);
    let mut with_its_stream = halted("failed");
    (with_its_stream.halted[0].attempts, with_its_stream.halted[0].why) =
        (0, "its stream was stopped".into());
    failing(&with_its_stream, &["orders-7 is stopped at offset 42: its stream was stopped"]);
}

#[test]
fn what_is_paused_is_not_asked_for_and_so_does_not_fail_to_be_fetched() {
    let paused = partition(|it| {
        it.unfetched = "broker 3: connection refused".into();
        it.unfetched_since_ms = 1;
        it.halted = vec!["paused".into()];
    });
    assert_eq!(Health::of(&paused), Health::Healthy);
}

#[test]
fn one_that_leaves_is_not_ready_whatever_is_wrong_and_one_that_was_added_may_leave_alone() {
    let leaving = StatusSnapshot { phase: "leaving".into(), failing: "x".into(), actors: vec![], ..well() };
    assert_eq!(Health::of(&leaving), Health::Leaving);
    assert!(Health::Leaving.is_live() && !Health::Leaving.is_ready());
    let rest = StatusSnapshot { added: vec![leaving], ..well() };
    assert_eq!(Health::of(&rest), Health::Healthy);
}

#[test]
fn a_stuck_handler_is_named_with_its_thread_and_offset() {
    let stuck = StuckHandler {
        topic: "orders".into(),
        partition: 7,
        offset: 42,
        since_ms: ago(90_000),
        thread: "g_one-3".into(),
    };
    failing(&StatusSnapshot { stuck: vec![stuck], ..well() }, &["orders-7", "offset 42", "g_one-3", "90 s"]);
}

#[test]
fn a_record_that_is_tried_again_for_long_is_named_and_one_that_is_not_yet_is_no_failure() {
    let retried = |is_stuck| {
        let retried = RetriedRecord {
            topic: "orders".into(),
            partition: 7,
            offset: 42,
            attempts: 5,
            since_ms: ago(90_000),
            why: "no such customer".into(),
            is_stuck,
        };
        StatusSnapshot { retried: vec![retried], ..well() }
    };
    assert_eq!(Health::of(&retried(false)), Health::Healthy);
    failing(&retried(true), &["orders-7", "offset 42", "5 times", "90 s", "no such customer"]);
}

#[test]
fn a_handler_that_ends_as_soon_as_it_is_made_is_named_with_its_stream_once_the_grace_is_over() {
    let ending = |ms| {
        let ending = HandlerEnding { since_ms: ago(ms), times: 9, why: "no such file".into() };
        let stream = Stream { name: "orders-0".into(), handler_ending: Some(ending), ..Default::default() };
        StatusSnapshot { streams: vec![stream], ..well() }
    };
    assert_eq!(Health::of(&ending(GRACE.as_millis() - 1)), Health::Healthy);
    failing(&ending(GRACE.as_millis()), &["orders-0", "9 times", "15 s", "no such file"]);
}

#[test]
fn dead_letters_that_cannot_be_written_are_a_failure_until_they_can() {
    let letters = |why: &str, ms, lasting| {
        let letter = UnwrittenLetter {
            topic: "orders".into(),
            partition: 7,
            offset: 42,
            dead_letter_topic: "orders.dead".into(),
            since_ms: ago(ms),
            why: why.into(),
            lasting,
        };
        // what has been says nothing of what is
        let last_error = "no leader".into();
        let letters = DeadLetters { unwritten: vec![letter], last_error, ..Default::default() };
        StatusSnapshot { dead_letters: Some(letters), ..well() }
    };
    let grace = GRACE.as_millis();
    assert_eq!(Health::of(&letters("no leader", grace - 1, false)), Health::Healthy);
    assert_eq!(Health::of(&letters("", grace - 1, false)), Health::Healthy);
    let named = ["orders-7", "offset 42", "orders.dead"];
    failing(&letters("no leader", grace, false), &[&named[..], &["15 s", "no leader"]].concat());
    failing(&letters("", grace, false), &[&named[..], &["no answer yet"]].concat());
    failing(&letters("no such topic", 0, true), &[&named[..], &["no such topic"]].concat());
    let mut written = letters("no leader", grace, true);
    written.dead_letters.as_mut().unwrap().unwritten.clear();
    assert_eq!(Health::of(&written), Health::Healthy);
}

#[test]
fn commits_fail_when_they_did_twice_and_for_the_whole_grace() {
    let failing_commit = |attempts, ms| {
        let failing = FailingCommit {
            topic: "orders".into(),
            partition: 7,
            why: "/consumers/g/offsets/orders/7: no answer".into(),
            since_ms: ago(ms),
            attempts,
        };
        StatusSnapshot { commits: Some(Commits { failing: vec![failing], ..Default::default() }), ..well() }
    };
    assert_eq!(Health::of(&failing_commit(1, 60_000)), Health::Healthy);
    assert_eq!(Health::of(&failing_commit(9, 10_000)), Health::Healthy);
    failing(&failing_commit(2, 60_000), &["orders-7", "/consumers/g/offsets/orders/7", "60 s"]);
}

#[test]
fn a_listener_that_does_not_answer_is_a_failure_until_it_does() {
    let listener = |failing: &str| StatusSnapshot {
        listener: Some(RebalanceListener {
            name: "App".into(),
            failing: failing.into(),
            late: 1,
            ..Default::default()
        }),
        ..well()
    };
    assert_eq!(Health::of(&listener("")), Health::Healthy);
    failing(&listener("before the start of orders-7: no answer within 30000 ms"), &["App", "orders-7"]);
}

#[test]
fn brokers_that_tell_nothing_are_a_failure_when_what_is_known_is_old() {
    let topics = |age_ms, last_error: &str| StatusSnapshot {
        topic_metadata: Some(TopicMetadata { age_ms, last_error: last_error.into(), ..Default::default() }),
        ..well()
    };
    assert_eq!(Health::of(&topics(Some(60_000), "")), Health::Healthy);
    assert_eq!(Health::of(&topics(Some(1_000), "b:9092: refused")), Health::Healthy);
    failing(&topics(Some(60_000), "b:9092: refused"), &["b:9092: refused"]);
    failing(&topics(None, "b:9092: refused"), &["b:9092: refused"]);
}

#[test]
fn an_actor_that_does_not_answer_is_named_but_not_a_stream_that_its_handler_keeps_busy() {
    for (index, name) in NEEDED.iter().enumerate() {
        let mut silent = well();
        silent.actors[index].answered_in_ms = None;
        failing(&silent, &[name]);
    }
    let mut busy = well();
    busy.actors.push(ActorStatus { name: "stream-queue/orders-0".into(), ..Default::default() });
    busy.actors.push(ActorStatus { name: "broker-fetcher/1".into(), ..Default::default() });
    assert_eq!(Health::of(&busy), Health::Healthy);
}

#[test]
fn without_a_live_lease_it_is_suspended() {
    use SessionState::*;
    for (state, lease, expected) in [
        (Connected, 1, Health::Healthy),
        (Connected, 0, Health::Suspended),
        (Suspended, 3_000, Health::Suspended),
        (Connecting, 0, Health::Suspended),
        (Expired, 0, Health::Suspended),
    ] {
        let session = Session { state: state.into(), lease_remaining_ms: lease, ..Default::default() };
        assert_eq!(Health::of(&StatusSnapshot { session: Some(session), ..well() }), expected, "{state:?}");
    }
}

#[test]
fn every_phase_but_stable_is_rebalancing() {
    for phase in ["idle", "reading", "revoking", "claiming", "backingoff"] {
        assert_eq!(Health::of(&StatusSnapshot { phase: phase.into(), ..well() }), Health::Rebalancing);
    }
}

#[test]
fn the_worst_of_all_members_counts_and_whose_it_is_is_said() {
    let added = |change: fn(&mut StatusSnapshot)| {
        let mut added = StatusSnapshot { consumer_id: "g_one.1".into(), ..well() };
        change(&mut added);
        StatusSnapshot { added: vec![added], ..well() }
    };
    assert_eq!(Health::of(&added(|_| {})), Health::Healthy);
    assert_eq!(Health::of(&added(|it| it.phase = "claiming".into())), Health::Rebalancing);
    assert_eq!(Health::of(&added(|it| it.session = None)), Health::Suspended);
    failing(&added(|it| it.failing = "no owner".into()), &["g_one.1: no owner"]);
}

#[test]
fn what_peers_do_not_do_is_not_this_member_s_failure() {
    let peer = PeerFault { member: "g_two".into(), why: "gave up".into(), ..Default::default() };
    assert_eq!(Health::of(&StatusSnapshot { peers: vec![peer], ..well() }), Health::Healthy);
}

#[test]
fn only_the_end_is_not_live_and_only_healthy_and_rebalancing_are_ready() {
    let failing = Health::Failing { why: vec!["x".into()] };
    for (health, live, ready) in [
        (Health::Healthy, true, true),
        (Health::Rebalancing, true, true),
        (Health::Suspended, true, false),
        (failing, true, false),
        (Health::Ended, false, false),
    ] {
        assert_eq!((health.is_live(), health.is_ready()), (live, ready), "{health:?}");
    }
}
