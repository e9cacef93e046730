//! Old command lines, with nothing but the program's name changed: what clap's aliases cannot express is rewritten
//! before clap sees it.
//!
//! | as typed | as clap sees it |
//! |---|---|
//! | a link `kafka-console-consumer.sh` to `troupe`, or `troupe bin/kafka-console-consumer.sh ...` | `troupe consume ...` |
//! | `troupe kafka-run-class.sh kafka.tools.GetOffsetShell ...` | `troupe offsets get ...` |
//! | `troupe groups --zookeeper z --list` | `troupe groups list --zookeeper z` |
//! | `-topic t`, which the old parser took too | `--topic t` |
//! | `--time -1` | `--time=-1` |
//! | `... kafka.tools.UpdateOffsetsInZK earliest consumer.properties t` | `troupe groups reset --to-earliest --topic t ...` |
//! | `--new-consumer` and the like | nothing, and a note |
//!
//! Flags that nobody knows stay, so that the error is clap's. What an old tool took and its successor does not is refused
//! with what to write instead.

mod table;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use kafka_troupe::proto::config::java_properties;

use crate::exit::Failure;
use crate::properties_file;
use table::{
    GROUP_ACTIONS, IGNORED, Ignored, Implied, OF_DELETE_OFFSETS, OldTool, REFUSED, TOOLS, UPDATE_OFFSETS,
};

const RUN_CLASS: &str = "kafka-run-class";

/// A command line for clap, and what its author should be told.
#[derive(Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// With the program's name first.
    pub line: Vec<OsString>,
    /// Flags that were taken and do nothing.
    pub notes: Vec<String>,
}

/// Rewrites a command line; `cli` tells which flags a command has.
///
/// # Errors
/// It asks for what an old tool did and no command does, or not so: exit code 2.
pub fn rewrite(given: &[OsString], cli: &clap::Command) -> Result<Rewritten, Failure> {
    let (program, words) = given.split_first().map_or((OsStr::new(""), given), |(first, rest)| (first, rest));
    let (tool, words) = selected(program, words);
    let mut words = spelled_for_clap(words);
    if let Some(tool) = tool {
        if tool.classes.contains(&UPDATE_OFFSETS) {
            words = reset_as_in_file(words)?;
        }
        tool.defaults.iter().for_each(|implied| imply(implied, &mut words));
        words.splice(0..0, tool.command.iter().map(OsString::from));
    }
    action_first(&mut words)?;
    refuse(&words)?;
    let notes = drop_ignored(&mut words, cli);
    words.insert(0, "troupe".into());
    Ok(Rewritten { line: words, notes })
}

/// The old tool that is named by a link to this program or by the first word (after `kafka-run-class.sh`, if that
/// stands before it), and the words after its name.
fn selected<'a>(program: &OsStr, words: &'a [OsString]) -> (Option<&'static OldTool>, &'a [OsString]) {
    if let Some(tool) = tool(program) {
        return (Some(tool), words);
    }
    let rest = match words {
        [first, rest @ ..] if name(first) == RUN_CLASS => rest,
        _ => words,
    };
    match rest {
        [first, rest @ ..] if tool(first).is_some() => (tool(first), rest),
        _ => (None, words),
    }
}

fn tool(word: &OsStr) -> Option<&'static OldTool> {
    let name = name(word);
    TOOLS.iter().find(|tool| tool.script == Some(name) || tool.classes.contains(&name))
}

/// Without its folder, and without the ending of a script.
fn name(word: &OsStr) -> &str {
    let name = Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or("");
    name.strip_suffix(".sh").or_else(|| name.strip_suffix(".bat")).unwrap_or(name)
}

/// The old parser (jopt-simple) takes long flags with one dash as well, and a negative number for a value.
fn spelled_for_clap(words: &[OsString]) -> Vec<OsString> {
    let mut spelled: Vec<OsString> = Vec::new();
    for word in words {
        let text = text(word);
        let single_dash = text
            .strip_prefix('-')
            .filter(|rest| rest.len() > 1 && rest.starts_with(|first: char| first.is_ascii_alphabetic()));
        let negative = text.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok());
        match (
            spelled.last_mut().filter(|last| flag(last).is_some_and(|(_, value)| value.is_none())),
            single_dash,
        ) {
            (_, Some(rest)) => spelled.push(format!("--{rest}").into()),
            (Some(last), None) if negative => last.push(format!("={text}")),
            _ => spelled.push(word.clone()),
        }
    }
    spelled
}

/// `earliest|latest consumer.properties topic`, where the file names ZooKeeper and the group. Other arguments are an error
/// of clap.
fn reset_as_in_file(words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let [to, file, topic] = &words[..] else { return Ok(words) };
    let file = Path::new(file);
    let properties = java_properties::parse(&properties_file::read("", file)?)
        .map_err(|why| Failure::usage(format!("{}: {why}", file.display())))?;
    let mut reset =
        vec![format!("--to-{}", text(to)).into(), "--topic".into(), topic.clone(), "--execute".into()];
    for (key, flag) in [("zookeeper.connect", "zookeeper"), ("group.id", "group")] {
        // of equal keys the last counts
        let (_, value) = properties
            .iter()
            .rfind(|(found, _)| found == key)
            .ok_or_else(|| Failure::usage(format!("{}: {key} is missing", file.display())))?;
        reset.push(format!("--{flag}={}", value.trim()).into());
    }
    Ok(reset)
}

fn imply(implied: &Implied, words: &mut Vec<OsString>) {
    let given =
        |wanted: &[&str]| words.iter().any(|word| flag(word).is_some_and(|(name, _)| wanted.contains(&name)));
    if !given(implied.flags) && implied.beside.is_none_or(|beside| given(&[beside])) {
        words.push(format!("--{}={}", implied.flags[0], implied.value).into());
    }
}

/// `groups ... --list ...` is `groups list ...`.
fn action_first(words: &mut Vec<OsString>) -> Result<(), Failure> {
    let Some(at) = command_at(words).filter(|at| words[*at] == "groups") else { return Ok(()) };
    if words.get(at + 1).is_some_and(|next| !text(next).starts_with('-')) {
        return Ok(());
    }
    let action = |word: &OsString| {
        let (name, _) = flag(word).filter(|(_, value)| value.is_none())?;
        GROUP_ACTIONS.iter().find(|(flag, _)| *flag == name)
    };
    if let Some((found, (action, command))) =
        words.iter().enumerate().find_map(|(at, word)| Some((at, action(word)?)))
    {
        if *action == "delete-offsets" {
            requires(words, action, OF_DELETE_OFFSETS)?;
        }
        words.remove(found);
        words.insert(at + 1, (*command).into());
    }
    Ok(())
}

/// As Kafka's tool does: without a topic the whole group would go, without a group the topic of every group.
fn requires(words: &[OsString], action: &str, flags: &[&str]) -> Result<(), Failure> {
    match flags.iter().find(|flag| values(words, flag).iter().all(|value| value.is_empty())) {
        Some(missing) => Err(Failure::usage(format!(
            "--{action} requires --{missing}: it deletes a group's offsets of a topic, and --delete a whole group"
        ))),
        None => Ok(()),
    }
}

fn refuse(words: &[OsString]) -> Result<(), Failure> {
    let Some(at) = command_at(words) else { return Ok(()) };
    let (command, flags) = words[at..].split_at(words[at..].len().min(2));
    let refused = REFUSED.iter().filter(|refusal| command == refusal.command).find(|refusal| {
        let is_given = flags.iter().any(|word| flag(word).is_some_and(|(name, _)| name == refusal.flag));
        is_given && (refusal.is)(&values(flags, refusal.flag))
    });
    match refused {
        Some(refusal) => Err(Failure::usage(format!("{}: {}", refusal.command.join(" "), refusal.why))),
        None => Ok(()),
    }
}

/// What a flag is given: `--flag value` or `--flag=value`.
fn values<'a>(words: &'a [OsString], wanted: &str) -> Vec<&'a str> {
    let value = |at: usize| match flag(&words[at])? {
        (name, value) if name == wanted => {
            value.or_else(|| words.get(at + 1).map(|next| text(next)).filter(|next| !next.starts_with("--")))
        }
        _ => None,
    };
    (0..words.len()).filter_map(value).collect()
}

/// Takes out what does nothing, where the command has no such flag itself.
fn drop_ignored(words: &mut Vec<OsString>, cli: &clap::Command) -> Vec<String> {
    let Some(command) = command(words, cli) else { return Vec::new() };
    let ignored = |word: &OsString| -> Option<(&'static Ignored, bool)> {
        let (name, value) = flag(word)?;
        let ignored = IGNORED.iter().find(|ignored| ignored.flag == name && !means(command, name))?;
        Some((ignored, ignored.value && value.is_none()))
    };
    let (mut kept, mut notes) = (Vec::new(), Vec::new());
    let mut rest = std::mem::take(words).into_iter();
    while let Some(word) = rest.next() {
        match ignored(&word) {
            None => kept.push(word),
            Some((ignored, value_follows)) => {
                if value_follows {
                    rest.next();
                }
                notes.push(format!("--{} is not acted on: {}", ignored.flag, ignored.why));
            }
        }
    }
    *words = kept;
    notes
}

/// Where the command stands: the first word that is neither a flag nor the value of `--output`.
fn command_at(words: &[OsString]) -> Option<usize> {
    let is_value = |at: usize| at > 0 && words[at - 1] == "--output";
    (0..words.len()).find(|at| !text(&words[*at]).starts_with('-') && !is_value(*at))
}

fn command<'a>(words: &[OsString], cli: &'a clap::Command) -> Option<&'a clap::Command> {
    let at = command_at(words)?;
    let command = cli.find_subcommand(&words[at])?;
    Some(words.get(at + 1).and_then(|word| command.find_subcommand(word)).unwrap_or(command))
}

/// Whether the command has the flag, or one that it may be short for: `--timeout` was `--timeout-ms`.
fn means(command: &clap::Command, flag: &str) -> bool {
    command.get_arguments().any(|argument| {
        argument.get_long().is_some_and(|long| long.starts_with(flag))
            || argument.get_all_aliases().is_some_and(|aliases| aliases.contains(&flag))
    })
}

/// `--name` or `--name=value`.
fn flag(word: &OsStr) -> Option<(&str, Option<&str>)> {
    let flag = text(word).strip_prefix("--").filter(|flag| !flag.is_empty())?;
    Some(flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value))))
}

/// Empty, if it is not UTF-8: then it is no flag that we know.
fn text(word: &OsStr) -> &str {
    word.to_str().unwrap_or("")
}
