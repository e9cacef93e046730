//! Positions that are made or asked for, with offsets in Kafka alone, and what a late commit does to them.

use futures_util::future::join;
use kafka_troupe_actors::offset_committer::CommitError;

use crate::coordinator::Fate;
use crate::in_kafka::{acknowledge, alone, at_20};

/// `largest` is resolved once: what came to the log meanwhile is not passed over.
#[actix::test]
async fn a_position_whose_storing_failed_stands_when_it_is_made_again() {
    for done_late in [false, true] {
        let (member, brokers, _) = alone().await;
        let claimed = member.claim_number(0).await;
        brokers.begin();
        (2..20).for_each(|step| brokers.fate(step, Fate::Held));
        let failed = member.reset(&claimed, 100).await;
        assert!(matches!(failed, Err(CommitError::Store { .. })), "{failed:?}");
        assert_eq!(
            (brokers.seen()[..2].to_vec(), claimed.acked()),
            (vec!["fetch 0".to_owned(), "commit 0=100".to_owned()], -1)
        );
        brokers.begin();
        if done_late {
            brokers.carry_out_late();
        }
        assert_eq!(member.reset(&claimed, 150).await, Ok(100));
        assert_eq!((claimed.acked(), claimed.committed(), brokers.stored(0)), (100, 100, Some(100)));
        assert_eq!((member.commit(&claimed, 101).await, brokers.stored(0)), (Ok(1), Some(101)));
    }
}

#[actix::test]
async fn what_the_owner_before_us_stored_late_counts_while_we_have_no_position() {
    let (member, brokers, _) = alone().await;
    let claimed = member.claim_number(0).await;
    brokers.store(0, 70);
    assert_eq!(member.reset(&claimed, 100).await, Ok(70));
    assert_eq!((claimed.acked(), brokers.stored(0)), (70, Some(70)));
}

#[actix::test]
async fn a_reset_may_go_down_and_the_next_commit_goes_on_from_there() {
    let (member, brokers, claimed) = at_20().await;
    assert_eq!(member.commit(&claimed, 50).await, Ok(1));
    assert_eq!((member.reset(&claimed, 7).await, brokers.stored(0)), (Ok(7), Some(7)));
    assert_eq!((member.commit_again().await, brokers.stored(0)), (Ok(1), Some(7)));
    assert_eq!((member.commit(&claimed, 8).await, brokers.stored(0)), (Ok(1), Some(8)));
}

/// A position that was made long ago, and not stored, is of no use when another was found since.
#[actix::test]
async fn a_position_whose_storing_failed_does_not_stand_after_a_seek_or_a_commit() {
    for sought in [true, false] {
        let (member, brokers, mut claimed) = at_20().await;
        brokers.refuse("commit", 7);
        assert!(member.reset(&claimed, 3).await.is_err());
        brokers.begin();
        if sought {
            claimed = member.seek(&claimed, 40).await.unwrap().expect("the claim is current");
        } else {
            claimed.take_in(20, 40);
            assert_eq!(member.commit(&claimed, 40).await, Ok(1));
        }
        assert_eq!((member.reset(&claimed, 9).await, brokers.stored(0)), (Ok(9), Some(9)));
    }
}

#[actix::test]
async fn a_seek_is_stored_and_one_that_failed_and_stands_all_the_same_is_taken_back() {
    let (member, brokers, claimed) = at_20().await;
    let sought = member.seek(&claimed, 7).await.unwrap().expect("the claim is current");
    assert_eq!((sought.acked(), sought.committed(), brokers.stored(0)), (7, 7, Some(7)));
    brokers.begin();
    (1..20).for_each(|step| brokers.fate(step, Fate::Lost));
    assert!(member.seek(&sought, 50).await.is_err());
    assert_eq!(brokers.stored(0), Some(50), "which we do not know");
    brokers.begin();
    let goes_on = member.renew(&sought);
    assert_eq!((member.commit_again().await, brokers.stored(0)), (Ok(1), Some(7)));
    assert_eq!((member.commit(&goes_on, 8).await, brokers.stored(0)), (Ok(1), Some(8)));
}

/// Else the seek would be undone: the commit was on its way when it was asked for.
#[actix::test]
async fn a_commit_whose_answer_is_lost_before_a_seek_does_not_undo_it() {
    let (member, brokers, claimed) = at_20().await;
    brokers.fate(1, Fate::Held);
    acknowledge(&claimed, 30);
    let (committed, sought) = join(member.commit_again(), member.seek(&claimed, 7)).await;
    assert!(committed.is_ok() && sought.unwrap().is_some());
    assert_eq!(brokers.stored(0), Some(7));
    brokers.carry_out_late();
    assert_eq!(brokers.stored(0), Some(30), "nothing fences it");
    assert_eq!((member.commit_again().await, brokers.stored(0)), (Ok(1), Some(7)), "until the next commit");
}
