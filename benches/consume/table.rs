//! The results, as a Markdown table.

use crate::contender::{Contender, Outcome};

/// Median, least and most.
struct Spread(f64, f64, f64);

impl Spread {
    fn of(outcomes: &[Outcome], value: impl Fn(&Outcome) -> f64) -> Self {
        let mut all: Vec<f64> = outcomes.iter().map(value).collect();
        all.sort_by(f64::total_cmp);
        let median = (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0;
        Self(median, all[0], all[all.len() - 1])
    }

    fn show(&self, digits: usize) -> String {
        format!("{:.digits$} ({:.digits$}-{:.digits$})", self.0, self.1, self.2)
    }
}

/// Prints a row for each contender: medians, with least and most.
pub fn print(contenders: &[Contender], outcomes: &[Vec<Outcome>]) {
    if outcomes.iter().any(Vec::is_empty) {
        return;
    }
    let per_million = |outcome: &Outcome| outcome.cpu / outcome.records as f64 * 1e6;
    let median_of = |wanted: Contender| {
        let found = contenders.iter().position(|contender| *contender == wanted)?;
        Some(Spread::of(&outcomes[found], per_million).0)
    };
    let (floor, scala) = (median_of(Contender::Floor), median_of(Contender::Scala));
    println!(
        "| | CPU s | CPU s per M records | x floor | x Scala | M records/s | broker CPU s | RSS MB |\n\
         |---|---|---|---|---|---|---|---|"
    );
    for (contender, outcomes) in contenders.iter().zip(outcomes) {
        let cost = Spread::of(outcomes, per_million);
        let ratio = |to: Option<f64>| to.map_or_else(String::new, |to| format!("{:.2}", cost.0 / to));
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            contender.title(),
            Spread::of(outcomes, |outcome| outcome.cpu).show(2),
            cost.show(3),
            ratio(floor),
            ratio(scala),
            Spread::of(outcomes, |outcome| outcome.rate / 1e6).show(2),
            Spread::of(outcomes, |outcome| outcome.broker_cpu).show(2),
            Spread::of(outcomes, |outcome| outcome.rss_mb).show(0),
        );
    }
}
