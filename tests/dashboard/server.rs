//! A server of a dashboard, as an application has it.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::dev::{ServerHandle, Service};
use actix_web::http::Uri;
use actix_web::{App, HttpServer};
use kafka_troupe::web::{Dashboard, Source, scope};

/// What a reverse proxy strips from paths before this server sees them.
pub const STRIPPED: &str = "/behind/a/proxy";

pub struct Server {
    pub port: u16,
    pub dashboard: Dashboard,
    handle: ServerHandle,
}

impl Server {
    /// On a free port, or on one that was.
    pub fn start(dashboard: Dashboard, port: Option<u16>) -> Self {
        let port = port.unwrap_or_else(|| troupe_cluster::free_port().unwrap());
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let shown = dashboard.clone();
        let app = move || {
            let strip = |mut request: actix_web::dev::ServiceRequest, service: &_| {
                let path = request.uri().to_string();
                if let Some(rest) = path.strip_prefix(STRIPPED) {
                    let uri: Uri = rest.parse().unwrap();
                    request.match_info_mut().get_mut().update(&uri);
                    request.head_mut().uri = uri;
                }
                Service::call(service, request)
            };
            App::new().wrap_fn(strip).service(scope("/ops/troupe", &shown))
        };
        let server = HttpServer::new(app).workers(1).disable_signals().listen(listener).unwrap().run();
        let handle = server.handle();
        actix::spawn(server);
        Self { port, dashboard, handle }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The page.
    pub fn page(&self) -> String {
        self.url("/ops/troupe/")
    }

    /// As an application does it.
    pub async fn stop(self) {
        self.dashboard.close();
        self.handle.stop(true).await;
    }
}

/// Whether systems run.
#[derive(Clone)]
pub struct Running(pub Arc<Mutex<bool>>);

impl Running {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(true)))
    }

    pub fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// A server of these systems.
pub fn serve(systems: impl IntoIterator<Item = Source>) -> Server {
    Server::start(Dashboard::new(systems), None)
}
