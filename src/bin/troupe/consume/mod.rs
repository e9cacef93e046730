//! `troupe consume`: the old console consumer.
//!
//! | file | what |
//! |---|---|
//! | [`args`] | the command line |
//! | [`settings`] | the consumer's properties, from the file, the command line and what the old tool adds |
//! | [`grouped`] | records as a member of a group gets them |
//! | [`group`] | what is done with a group before and after |
//! | [`kafka_offsets`] | what of it is in Kafka |
//! | [`simple`] | records of partitions, without a group |
//! | [`decoder`] | what keys and values are |
//! | [`printing`] | records from either, printed by a [`formatter`] until the end that was asked for |

mod args;
mod decoder;
mod formatter;
mod group;
mod grouped;
mod kafka_offsets;
mod printing;
mod settings;
mod simple;

pub use args::Args;

use crate::ends::Ends;
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use printing::Printing;
use settings::Settings;

/// Consumes until the end that was asked for, Ctrl-C or SIGTERM.
pub async fn run(mut args: Args, output: Output) -> Outcome {
    if output == Output::Json {
        args.formatter.get_or_insert_with(|| "json".to_owned());
    }
    // from here on a signal is not lost, whatever is going on
    let ends = Ends::new()?;
    let (formatter, rest) = formatter::chosen(&args).map_err(Failure::usage)?;
    let settings = Settings::gather(&args, rest)?;
    let is_json = output == Output::Json || formatter.is_json();
    let printing = Printing::new(args.simple.with_offsets(formatter, is_json), &args);
    if args.simple.wanted() || settings.without_zookeeper() {
        simple::run(&args, &settings, printing, is_json, ends).await
    } else {
        grouped::run(&args, &settings, printing, ends).await
    }
}
