use super::*;

const RECORDS: u64 = 80;
const KILLED_AT: i64 = 500;

/// Ten records of every partition by `a`, one microsecond each; partition 7 has `b` handle its first five, of which
/// two come again.
fn logs() -> Logs<'static> {
    let mut logs = vec![("a", Vec::new()), ("b", Vec::new())];
    for partition in 0..PARTITIONS {
        for offset in 0..10 {
            let entry =
                |micros| Entry { partition, offset, sequence: sequence_at(partition, offset), micros };
            if partition == 7 && offset < 5 {
                logs[1].1.push(entry(100 + offset));
            }
            if partition < 7 || offset >= 3 {
                logs[0].1.push(entry(1000 + offset));
            }
        }
    }
    logs
}

fn kill() -> Kill {
    let taken = TakenOver { partition: 7, committed: 3, by: "a".to_owned(), at_micros: 900 };
    Kill { member: "b".to_owned(), at_micros: KILLED_AT, partitions: vec![taken] }
}

fn sums(audit: &Audit) -> [u64; 4] {
    [
        audit.sum(|of| of.missing),
        audit.sum(|of| of.duplicates),
        audit.sum(|of| of.bound),
        audit.sum(|of| of.wrong),
    ]
}

#[test]
fn a_takeover_repeats_what_was_not_committed_and_no_more() {
    let audit = Audit::of(&logs(), RECORDS, &kill());
    assert_eq!(sums(&audit), [0, 2, 2, 0]);
    assert_eq!((audit.overlaps.len(), audit.oldest_uncommitted_micros), (0, KILLED_AT - 103));
    assert_eq!(audit.resumed_micros, Some(1003 - KILLED_AT));
}

#[test]
fn a_missing_and_a_wrong_record_are_found() {
    let mut logs = logs();
    logs[0].1.remove(0);
    logs[0].1[4].sequence += 1;
    assert_eq!(sums(&Audit::of(&logs, RECORDS, &kill())), [2, 2, 2, 1]);
}

#[test]
fn a_duplicate_that_no_kill_excuses_is_beyond_the_bound() {
    let mut logs = logs();
    let again = logs[0].1[9];
    logs[0].1.insert(10, again);
    let audit = Audit::of(&logs, RECORDS, &kill());
    assert_eq!((audit.partitions[0].duplicates, audit.partitions[0].bound), (1, 0));
}

#[test]
fn two_members_that_take_turns_without_a_hand_over_overlap() {
    let mut logs = logs();
    let twice: Vec<Entry> =
        logs[0].1[4..6].iter().map(|entry| Entry { micros: entry.micros + 1, ..*entry }).collect();
    logs[1].1.extend(twice);
    let audit = Audit::of(&logs, RECORDS, &kill());
    assert_eq!(audit.overlaps, ["partition 0: b handled records while a did"]);
}

#[test]
fn to_go_on_where_one_stopped_after_a_kill_is_no_overlap() {
    let mut logs = logs();
    let earlier = logs[0].1.iter_mut().filter(|entry| entry.partition == 6 && entry.offset < 5);
    earlier.for_each(|entry| entry.micros -= 1000);
    let by_b: Vec<Entry> =
        logs[0].1.iter().filter(|entry| entry.partition == 6 && entry.offset >= 5).copied().collect();
    logs[1].1.extend(by_b.iter().map(|entry| Entry { micros: 200 + entry.offset, ..*entry }));
    assert_eq!(Audit::of(&logs, RECORDS, &kill()).overlaps, [""; 0]);
}
