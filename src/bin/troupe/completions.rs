//! `troupe completions`.

use std::io::{self, Write};

use clap_complete::Shell;

use crate::exit::{Answer, Outcome};

/// Which shell.
#[derive(clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints what the shell reads.
pub fn run(args: &Args, mut command: clap::Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "troupe", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Answer::Yes)
}
