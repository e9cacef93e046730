//! The results, as a Markdown table.

use crate::group::Outcome;
use crate::member::Kind;
use crate::{Event, Outcomes};

/// Median, least and most.
struct Spread(f64, f64, f64);

impl Spread {
    fn of(outcomes: &[Outcome], value: impl Fn(&Outcome) -> Option<f64>) -> Option<Self> {
        let mut all: Vec<f64> = outcomes.iter().filter_map(value).collect();
        all.sort_by(f64::total_cmp);
        let (least, most) = (*all.first()?, *all.last()?);
        Some(Self((all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0, least, most))
    }
}

fn show(spread: Option<Spread>) -> String {
    spread
        .map_or_else(String::new, |Spread(median, least, most)| format!("{median:.0} ({least:.0}-{most:.0})"))
}

/// Prints a row for each number of partitions, event and kind of member: milliseconds, medians with least and most.
pub fn print(results: &[(usize, Outcomes)]) {
    println!(
        "| | | registration gone | all owned | all flowing | x Scala | some without owner | how many | ZooKeeper requests | producer held up |\n\
         |---|---|---|---|---|---|---|---|---|---|"
    );
    for (partitions, outcomes) in results {
        for ((event, kind), its) in outcomes {
            let flowing = Spread::of(its, |outcome| Some(outcome.flowing));
            let scala = outcomes.get(&(*event, Kind::Scala));
            let scala = scala.and_then(|its| Spread::of(its, |outcome| Some(outcome.flowing)));
            let ratio = match (&flowing, scala) {
                (Some(ours), Some(scala)) => format!("{:.2}", ours.0 / scala.0),
                _ => String::new(),
            };
            let let_go = its.iter().map(|outcome| outcome.let_go).max().unwrap_or_default();
            println!(
                "| {partitions} partitions, {} | {} | {} | {} | {} | {ratio} | {} | {let_go} | {} | {} |",
                title(*event),
                if *kind == Kind::Troupe { "Troupe" } else { "Scala 1.1.1" },
                show(Spread::of(its, |outcome| outcome.gone)),
                show(Spread::of(its, |outcome| Some(outcome.owned))),
                show(flowing),
                show(Spread::of(its, |outcome| Some(outcome.without_owner))),
                show(Spread::of(its, |outcome| Some(outcome.requests as f64))),
                show(Spread::of(its, |outcome| Some(outcome.held_up))),
            );
        }
    }
}

fn title(event: Event) -> &'static str {
    match event {
        Event::Join => "2 -> 3, join",
        Event::Leave => "3 -> 2, leave",
        Event::Kill => "3 -> 2, kill -9",
    }
}
