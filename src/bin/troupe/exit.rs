//! How the program ends: what its exit code says.

use std::error::Error;
use std::fmt::{self, Display};
use std::io;
use std::process::ExitCode;

use kafka_troupe::admin::AdminError;

/// What `troupe --help` says about exit codes.
pub const CODES: &str = "\
Exit codes:
  0  done, or the answer is yes
  1  the answer is no: a group that is not as it should be or does not exist, a file that would not do
  2  the command line, or a file that it names, asks for what cannot be
  3  it could not be done: servers that are not reached or refuse, data that cannot be read";

/// What a command that did its work answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done, or yes: exit code 0.
    Yes,
    /// No: a group that is not as it should be or does not exist, a file that cannot be used. Exit code 1.
    No,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// For what the group is, which is an answer: exit code 1.
    No(String),
    /// Exit code 2.
    Usage(String),
    /// Exit code 3.
    Work(String),
    /// Who reads our output has seen enough (`| head`): no failure, and nothing is said.
    PipeClosed,
}

/// What a command ends with.
pub type Outcome = Result<Answer, Failure>;

impl Failure {
    /// The command line, or a file that it names, asks for something that cannot be: exit code 2, clap's own.
    pub fn usage(why: impl Display) -> Self {
        Self::Usage(why.to_string())
    }

    /// It could not be done: servers that are not reached or refuse, data that cannot be read. Exit code 3.
    pub fn work(why: impl Display) -> Self {
        Self::Work(why.to_string())
    }

    /// As `?` does it, of an error that may be of any kind.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let io = error.downcast_ref::<io::Error>().map(io::Error::kind);
        match error.downcast_ref::<AdminError>() {
            _ if io == Some(io::ErrorKind::BrokenPipe) => Self::PipeClosed,
            Some(AdminError::Name { .. }) => Self::usage(error),
            Some(error) if is_answer(error) => Self::No(error.to_string()),
            _ => Self::work(error),
        }
    }

    /// The same, in other words.
    pub fn said(self, say: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::No(why) => Self::No(say(why)),
            Self::Usage(why) => Self::Usage(say(why)),
            Self::Work(why) => Self::Work(say(why)),
            Self::PipeClosed => Self::PipeClosed,
        }
    }
}

/// Whether it says what a group is, and not that something could not be done.
pub fn is_answer(error: &AdminError) -> bool {
    matches!(
        error,
        AdminError::Active { .. }
            | AdminError::Changed { .. }
            | AdminError::OfAnotherType { .. }
            | AdminError::NoSuchGroup { .. }
            | AdminError::NothingOfTopic { .. }
    )
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::No(why) | Self::Usage(why) | Self::Work(why) => f.write_str(why),
            Self::PipeClosed => f.write_str("stdout is closed"),
        }
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::of(&error)
    }
}

/// What a command ends with whose results are printed, or are not: its own outcome, which it has told by now. That who
/// reads the results has seen enough ends quietly what is done, and hides neither a no nor a failure.
pub fn finish(printed: io::Result<()>, outcome: Outcome) -> Outcome {
    let not_printed = match printed.map_err(Failure::from) {
        Ok(()) => return outcome,
        Err(why) => why,
    };
    match (not_printed, outcome) {
        (Failure::PipeClosed, Ok(Answer::Yes)) => Err(Failure::PipeClosed),
        (Failure::PipeClosed, outcome) => outcome,
        (why, Ok(_)) => Err(Failure::work(format!("not all results are printed: {why}"))),
        (why, Err(failure)) => {
            say!("not all results are printed: {why}");
            Err(failure)
        }
    }
}

/// Says why, and the code.
pub fn code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(Answer::Yes) | Err(Failure::PipeClosed) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(failure) => {
            say!("troupe: {failure}");
            ExitCode::from(match failure {
                Failure::No(_) => 1,
                Failure::Usage(_) => 2,
                Failure::Work(_) | Failure::PipeClosed => 3,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ending_has_its_code() {
        let broken = io::Error::from(io::ErrorKind::BrokenPipe);
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        for (outcome, expected) in [
            (Ok(Answer::Yes), 0),
            (Ok(Answer::No), 1),
            (Err(Failure::usage("so")), 2),
            (Err(Failure::work("so")), 3),
            (Err(broken.into()), 0),
            (Err(denied.into()), 3),
        ] {
            let said = format!("{outcome:?}");
            assert_eq!(code(outcome), ExitCode::from(expected), "{said}");
        }
    }
    #[test]
    fn what_a_group_is_is_an_answer_whichever_command_it_ends() {
        let group = || "g".to_owned();
        let key = kafka_troupe::TopicPartition::new("t", 0);
        for (error, expected) in [
            (AdminError::Active { group: group(), members: Vec::new() }, 1),
            (AdminError::Changed { group: group(), key }, 1),
            (AdminError::OfAnotherType { group: group(), group_type: "share".to_owned() }, 1),
            (AdminError::NoSuchGroup { group: group() }, 1),
            (AdminError::NothingOfTopic { group: group(), topic: "t".to_owned() }, 1),
            (AdminError::Name { what: "group", name: group() }, 2),
            (AdminError::Used { group: group(), path: "/consumers/g".to_owned() }, 3),
            (AdminError::Unreachable { why: "so".to_owned() }, 3),
        ] {
            let failure = Failure::from(error).said(|why| format!("as above: {why}"));
            let said = format!("{failure:?}");
            assert!(said.contains("as above"), "{said}");
            assert_eq!(code(Err(failure)), ExitCode::from(expected), "{said}");
        }
    }

    #[test]
    fn a_closed_stdout_hides_no_answer_but_yes_and_a_full_disk_none() {
        let closed = || Err(io::Error::from(io::ErrorKind::BrokenPipe));
        let full = || Err(io::Error::from(io::ErrorKind::StorageFull));
        for (printed, outcome, expected) in [
            (Ok(()), Ok(Answer::Yes), 0),
            (Ok(()), Ok(Answer::No), 1),
            (closed(), Ok(Answer::Yes), 0),
            (closed(), Ok(Answer::No), 1),
            (closed(), Err(Failure::usage("so")), 2),
            (closed(), Err(Failure::work("so")), 3),
            (full(), Ok(Answer::Yes), 3),
            (full(), Ok(Answer::No), 3),
            (full(), Err(Failure::work("so")), 3),
        ] {
            let said = format!("{printed:?} {outcome:?}");
            assert_eq!(code(finish(printed, outcome)), ExitCode::from(expected), "{said}");
        }
        let said = finish(closed(), Err(Failure::work("half set"))).unwrap_err();
        assert_eq!(said.to_string(), "half set");
    }
}
