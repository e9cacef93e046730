//! `/events`: server-sent events, one connection for each open page.

use std::convert::Infallible;

use actix::Addr;
use actix_web::HttpResponse;
use actix_web::web::{Bytes, Data};
use futures_util::stream::{self, Stream};
use tokio::sync::broadcast::{self, error::RecvError};

use super::history::{Follow, History};

/// When a page that lost its connection tries again.
const RETRY: &str = "retry: 2000\n\n";

pub(super) async fn events(history: Data<Addr<History>>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/event-stream")
        // nginx would keep events back
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(stream_of(Addr::clone(&history)))
}

/// What is to be sent next.
enum Next {
    Picture,
    Changes(broadcast::Receiver<Bytes>),
    End,
}

/// The picture, then changes; a page that has fallen behind is sent the picture again.
fn stream_of(history: Addr<History>) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let ended = ending::signalled();
    stream::unfold((history, ended, Next::Picture), |(history, mut ended, next)| async move {
        let (event, next) = tokio::select! {
            () = &mut ended => (None, Next::End),
            it = step(&history, next) => it,
        };
        event.map(|event| (Ok(event), (history, ended, next)))
    })
}

async fn step(history: &Addr<History>, next: Next) -> (Option<Bytes>, Next) {
    match next {
        Next::Picture => picture(history).await,
        Next::Changes(mut changes) => match changes.recv().await {
            Ok(change) => (Some(change), Next::Changes(changes)),
            Err(RecvError::Lagged(_)) => picture(history).await,
            Err(RecvError::Closed) => (None, Next::End),
        },
        Next::End => (None, Next::End),
    }
}

async fn picture(history: &Addr<History>) -> (Option<Bytes>, Next) {
    // an error: its arbiter has ended
    let Ok(following) = history.send(Follow).await else { return (None, Next::End) };
    let mut event = Bytes::from_static(RETRY.as_bytes()).to_vec();
    event.extend_from_slice(&following.picture);
    match following.changes {
        Some(changes) => (Some(event.into()), Next::Changes(changes)),
        None => {
            event.extend_from_slice(b"event: ended\ndata: {}\n\n");
            (Some(event.into()), Next::End)
        }
    }
}

/// The end of the process, of which a stream must not hold up the server's graceful stop.
mod ending {
    use std::future::{Future, pending};
    use std::pin::Pin;

    /// Comes when the process is told to end by a signal for which it has a handler: to wait for one that has none
    /// would make one, and the signal would no longer end the process.
    pub(super) fn signalled() -> Pin<Box<dyn Future<Output = ()>>> {
        #[cfg(target_os = "linux")]
        if let Some(caught) = caught() {
            return Box::pin(signal(caught));
        }
        Box::pin(pending())
    }

    /// The signals that have handlers, one bit each.
    #[cfg(target_os = "linux")]
    fn caught() -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        u64::from_str_radix(caught.trim(), 16).ok()
    }

    #[cfg(target_os = "linux")]
    async fn signal(caught: u64) {
        use tokio::signal::unix::{SignalKind, signal};
        let wait = |kind: SignalKind| {
            let stream = (caught >> (kind.as_raw_value() - 1) & 1 == 1).then(|| signal(kind).ok()).flatten();
            async move {
                match stream {
                    Some(mut stream) => drop(stream.recv().await),
                    None => pending().await,
                }
            }
        };
        let (terminate, interrupt) = (wait(SignalKind::terminate()), wait(SignalKind::interrupt()));
        tokio::select! {
            () = terminate => {}
            () = interrupt => {}
        }
    }
}
