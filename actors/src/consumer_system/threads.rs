//! Threads of a member's own, and their end.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use actix::{Arbiter, ArbiterHandle, System};

/// Names of threads, as tools show them: session, coordinator and the like; fetchers; one stream's handler.
pub(super) const CONTROL: &str = "troupe-control";
pub(super) const FETCHING: &str = "troupe-fetch";
pub(super) const STREAM: &std::ffi::CStr = c"troupe-stream";

/// A thread, as whoever ends it holds it.
pub(super) struct Thread {
    name: String,
    kind: Kind,
    /// Disconnected when all that lived on it has been dropped.
    alive: Receiver<()>,
}

enum Kind {
    /// A `System` of our own.
    Own(System, JoinHandle<()>),
    /// In the `System` of whoever started the member.
    Theirs(Arbiter),
}

impl Thread {
    /// An actix `System` of our own on a thread of our own: it ends when we say so, and not with that of the
    /// application. `at_end` runs when all that lived there has been dropped.
    pub(super) fn own(name: &str, at_end: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (tell, told) = channel();
        let (living, alive) = channel();
        let run = move || {
            run_system(runtime, &tell);
            at_end();
            drop(living);
        };
        let thread = Builder::new().name(name.to_owned()).spawn(run)?;
        let system = told.recv().map_err(|_| io::Error::other("the thread ended"))?;
        Ok(Self { name: name.to_owned(), kind: Kind::Own(system, thread), alive })
    }

    /// An arbiter in the current `System`, for the handler of a stream.
    pub(super) fn of_stream(stream: &str) -> io::Result<Self> {
        let arbiter = Arbiter::try_with_tokio_rt(|| {
            // a name is for those who look; without it the thread does as well
            let _ = rustix::thread::set_name(STREAM);
            tokio::runtime::Builder::new_current_thread().enable_all().build()
        })?;
        let (living, alive) = channel::<()>();
        arbiter.spawn(async move {
            let _living: Sender<()> = living;
            std::future::pending::<()>().await;
        });
        Ok(Self { name: format!("handler of stream {stream}"), kind: Kind::Theirs(arbiter), alive })
    }

    pub(super) fn arbiter(&self) -> ArbiterHandle {
        match &self.kind {
            Kind::Own(system, _) => system.arbiter().clone(),
            Kind::Theirs(arbiter) => arbiter.handle(),
        }
    }

    /// Has it end when what it is at is done.
    pub(super) fn stop(&self) {
        match &self.kind {
            Kind::Own(system, _) => system.stop(),
            Kind::Theirs(arbiter) => drop(arbiter.stop()),
        }
    }

    /// Waits for its end; the name of one that goes on.
    pub(super) fn join(self, until: Instant) -> Result<(), String> {
        if !has_ended(&self.alive, until) {
            return Err(self.name);
        }
        // that of a handler may have to wait for blocking work of the application yet
        if let Kind::Own(_, thread) = self.kind {
            // a panic there is told by its actors
            let _ = thread.join();
        }
        Ok(())
    }

    /// For who brings its end about, and who waits for it.
    pub(super) fn into_parts(self) -> (Option<System>, Receiver<()>) {
        match self.kind {
            Kind::Own(system, _) => (Some(system), self.alive),
            Kind::Theirs(_) => (None, self.alive),
        }
    }
}

/// Waits until whatever holds the other side is gone; whether it is.
pub(super) fn has_ended(alive: &Receiver<()>, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    !matches!(alive.recv_timeout(left), Err(RecvTimeoutError::Timeout))
}

fn run_system(runtime: tokio::runtime::Runtime, tell: &Sender<System>) {
    let runtime = Arc::new(runtime);
    let shared = Arc::clone(&runtime);
    let runner = System::with_tokio_rt(move || shared);
    // whoever asked waits for this
    let _ = tell.send(System::current());
    // the code with which it was stopped is ours
    let _ = runner.run();
    if let Some(runtime) = Arc::into_inner(runtime) {
        // a look-up of a name may take long yet
        runtime.shutdown_background();
    }
}
