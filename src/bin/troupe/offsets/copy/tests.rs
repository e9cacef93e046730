use std::cell::RefCell;

use kafka_troupe::actors::zk_session::{ZkCall, ZkError};

use super::*;

fn offsets() -> Vec<(TopicPartition, i64)> {
    (0..4).map(|partition| (TopicPartition::new("t", partition), 5)).collect()
}

/// Sets all but the second, and says which were tried.
async fn copied(error: AdminError) -> (Vec<i32>, Copied) {
    let tried = RefCell::new(Vec::new());
    let all = offsets();
    let outcomes = to_zookeeper(&all, async |key: TopicPartition, _| {
        tried.borrow_mut().push(key.partition);
        if key.partition == 1 { Err(error.clone()) } else { Ok(()) }
    });
    let outcomes = outcomes.await;
    let rows = offsets().into_iter().map(|(key, offset)| {
        let mut row = OffsetRow::new("g", &key, None);
        row.new_offset = Some(offset);
        row
    });
    let mut copied = Copied { rows: rows.collect(), problems: Vec::new(), failed: false };
    copied.note(outcomes);
    (tried.into_inner(), copied)
}

#[actix::test]
async fn the_first_that_zookeeper_does_not_answer_is_the_last_that_is_tried() {
    let away = ZkError::ConnectionLoss(ZkCall::new("set", "/consumers/g/offsets/t/1"));
    let (tried, copied) = copied(away.into()).await;
    assert_eq!(tried, [0, 1]);
    assert!(copied.failed && copied.problems.len() == 3, "{:?}", copied.problems);
    let set: Vec<_> = copied.rows.iter().map(|row| row.new_offset).collect();
    assert_eq!(set, [Some(5), None, None, None]);
}

#[actix::test]
async fn an_offset_that_has_changed_keeps_no_other_from_being_set() {
    let changed = AdminError::Changed { group: "g".to_owned(), key: TopicPartition::new("t", 1) };
    let (tried, copied) = copied(changed).await;
    assert_eq!(tried, [0, 1, 2, 3]);
    assert!(!copied.failed && copied.problems.len() == 1, "{:?}", copied.problems);
}
