//! The dashboard of member `a`, for a browser: the whole group, seen by one of its members.

use std::io;

use actix_web::{App, HttpServer};
use kafka_troupe::ConsumerHandle;
use kafka_troupe::web::{Dashboard, scope};

/// Serves it on a free port until the demo ends; its address.
pub fn serve(a: ConsumerHandle) -> io::Result<String> {
    let dashboard = Dashboard::new([a]);
    let app = move || App::new().service(scope("", &dashboard));
    // Ctrl-C ends the whole demo
    let server = HttpServer::new(app).workers(1).disable_signals().bind(("127.0.0.1", 0))?;
    let address = server.addrs().first().copied().ok_or_else(|| io::Error::other("no address"))?;
    actix::spawn(server.run());
    Ok(format!("http://{address}/"))
}
