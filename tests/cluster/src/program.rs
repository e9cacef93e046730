//! Any program, such as a browser.

use std::ffi::OsString;
use std::path::Path;

use crate::ClusterError;
use crate::keeper::{Keeper, Streams};

/// A running program; killed by its id when dropped, and however our process ends.
#[derive(Debug)]
pub struct Program(Keeper);

impl Program {
    /// Starts `command` (program and arguments), whose output goes to `log`.
    ///
    /// # Errors
    /// [`ClusterError`]: it cannot be started.
    pub fn start<S: Into<OsString>>(
        name: &str,
        command: impl IntoIterator<Item = S>,
        log: &Path,
    ) -> Result<Self, ClusterError> {
        let command: Vec<OsString> = command.into_iter().map(Into::into).collect();
        Keeper::start(name, &command, log, Streams::Log).map(Self)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }
}
