//! What is printed at the end, and the verdict.

use std::fmt::Write as _;

use indicatif::HumanCount;
use kafka_troupe::proto::schemas::rebalance::v1::RebalanceTrace;

use crate::audit::{Audit, Kill, PartitionAudit};
use crate::board::Member;
use crate::member::{COMMIT_INTERVAL, SESSION_TIMEOUT};

/// How one partition is committed.
pub struct Commits {
    pub partition: i32,
    pub produced: i64,
    pub log_end: i64,
    pub committed: Option<i64>,
    pub owner: Option<String>,
}

impl Commits {
    /// Whether it is committed to its end, and its end is what was produced.
    pub fn is_whole(&self) -> bool {
        self.committed == Some(self.log_end) && self.log_end == self.produced
    }
}

/// All that was found.
pub struct Report {
    pub records: u64,
    pub audit: Audit,
    pub kill: Kill,
    pub commits: Vec<Commits>,
    pub members: Vec<Member>,
}

impl Report {
    /// What is not as it must be; nothing, when the demo has succeeded.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = self.audit.overlaps.clone();
        let mut must_be_none = |count: u64, what: &str| {
            if count > 0 {
                failures.push(format!("{} {what}", HumanCount(count)));
            }
        };
        must_be_none(self.audit.sum(|partition| partition.missing), "records are missing");
        must_be_none(self.audit.sum(|partition| partition.wrong), "records are not what was produced");
        let excess = |partition: &PartitionAudit| partition.duplicates.saturating_sub(partition.bound);
        must_be_none(self.audit.sum(excess), "duplicates are beyond the bound");
        let short = self.commits.iter().filter(|commits| !commits.is_whole()).count() as u64;
        must_be_none(short, "partitions are not committed to their end");
        // a commit may take its time under load, but not this long
        let limit = COMMIT_INTERVAL + SESSION_TIMEOUT;
        if self.audit.oldest_uncommitted_micros as u128 > limit.as_micros() {
            failures.push(format!("the killed member had not committed for more than {limit:?}"));
        }
        failures
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        // writing to a string cannot fail
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        self.write_records(text)?;
        self.write_times(text)?;
        self.write_partitions(text)?;
        self.write_rebalances(text)
    }

    fn write_records(&self, text: &mut String) -> std::fmt::Result {
        let sum = |what: fn(&PartitionAudit) -> u64| self.audit.sum(what);
        let [missing, duplicates, bound] =
            [sum(|of| of.missing), sum(|of| of.duplicates), sum(|of| of.bound)];
        let handled = self.records - missing;
        let [produced, handled, missing, duplicates, bound] =
            [self.records, handled, missing, duplicates, bound].map(HumanCount);
        let age = self.audit.oldest_uncommitted_micros / 1000;
        let (killed, interval) = (&self.kill.member, COMMIT_INTERVAL.as_millis());
        writeln!(text, "records     {produced} produced, {handled} handled")?;
        writeln!(text, "missing     {missing} (must be 0)")?;
        writeln!(
            text,
            "duplicates  {duplicates} (bound {bound}: what {killed} had handled beyond its commits)"
        )?;
        writeln!(
            text,
            "            the oldest from {age} ms before the kill; auto.commit.interval.ms={interval}"
        )?;
        writeln!(text, "two owners  {} times (must be 0)", self.audit.overlaps.len())
    }

    fn write_times(&self, text: &mut String) -> std::fmt::Result {
        let Audit { micros, best_second, resumed_micros, .. } = &self.audit;
        let rate = HumanCount((self.records as f64 / (*micros as f64 / 1e6)) as u64);
        let best = HumanCount(*best_second);
        writeln!(text, "throughput  {rate} records/s at the producer's pace, {best} in the best second")?;
        let Kill { member, at_micros, partitions } = &self.kill;
        let claimed = partitions.iter().map(|taken| taken.at_micros).max().unwrap_or_default();
        let (claimed, resumed) = ((claimed - at_micros) / 1000, resumed_micros.unwrap_or_default() / 1000);
        writeln!(text, "takeover    the partitions of {member} had owners {claimed} ms after the kill, and")?;
        let timeout = SESSION_TIMEOUT.as_millis();
        writeln!(text, "            records again after {resumed} ms; zookeeper.session.timeout.ms={timeout}")
    }

    fn write_partitions(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "\npartition   log end  committed  owner  duplicates  bound  missing  handled by")?;
        for (commits, audit) in self.commits.iter().zip(&self.audit.partitions) {
            let committed = commits.committed.map_or_else(|| "-".to_owned(), |offset| offset.to_string());
            let owner = commits.owner.as_deref().unwrap_or("-");
            let handled: Vec<_> =
                audit.by_member.iter().map(|(member, count)| format!("{member} {count}")).collect();
            let PartitionAudit { duplicates, bound, missing, .. } = audit;
            writeln!(
                text,
                "{:>9}  {:>8}  {committed:>9}  {owner:>5}  {duplicates:>10}  {bound:>5}  {missing:>7}  {}",
                commits.partition,
                commits.log_end,
                handled.join(", ")
            )?;
        }
        Ok(())
    }

    fn write_rebalances(&self, text: &mut String) -> std::fmt::Result {
        let mut all: Vec<(&str, &RebalanceTrace)> = self
            .members
            .iter()
            .flat_map(|member| member.traces().map(|trace| (member.name.as_str(), trace)))
            .collect();
        all.sort_by_key(|(_, trace)| trace.started_ms);
        let begun = all.first().map_or(0, |(_, trace)| trace.started_ms);
        writeln!(text, "\nrebalances  {}", all.len())?;
        writeln!(text, "   at s  member  took ms  kept  released  claimed  moved  outcome       reasons")?;
        for (member, trace) in all {
            let at = (trace.started_ms - begun) as f64 / 1e3;
            let outcome = trace.outcome().as_str_name().trim_start_matches("OUTCOME_").to_lowercase();
            let RebalanceTrace { duration_ms, kept, released, claimed, moved, .. } = trace;
            writeln!(
                text,
                "{at:>7.2}  {member:>6}  {duration_ms:>7}  {kept:>4}  {released:>8}  {claimed:>7}  {moved:>5}  {outcome:<12}  {}{}",
                trace.reasons.join(", "),
                waits(trace)
            )?;
        }
        Ok(())
    }
}

fn waits(trace: &RebalanceTrace) -> String {
    match trace.waited_for.len() {
        0 => String::new(),
        count => format!(" (waited for {count})"),
    }
}
