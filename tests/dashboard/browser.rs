//! A real Chromium without a window, driven as a person would: by keys.
//!
//! Both programs end with us, however we end (`troupe_cluster::Program`); they talk to 127.0.0.1 only.

use std::fs;
use std::future::Future;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use serde_json::{Map, Value, json};
use troupe_cluster::{Program, debian_program, free_port};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// Without a window, and without anything that a browser does by itself. No name is looked up.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=1280,900",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

pub struct Browser {
    pub client: Client,
    profile: PathBuf,
    _driver: Program,
    _chromium: Program,
}

impl Browser {
    /// Both programs, installed from Debian when they are missing.
    pub async fn start() -> Self {
        debian_program("chromium", "chromium").expect("Chromium");
        debian_program("chromedriver", "chromium-driver").expect("Chromium's driver");
        let profile = profile();
        let (port, driver_port) = (free_port().unwrap(), free_port().unwrap());
        let folder = format!("--user-data-dir={}", profile.display());
        let debugging = format!("--remote-debugging-port={port}");
        let command =
            ["chromium"].into_iter().chain(FLAGS).chain([folder.as_str(), &debugging, "about:blank"]);
        let chromium = Program::start("chromium", command, &profile.join("chromium.log")).unwrap();
        let listen = format!("--port={driver_port}");
        let log = profile.join("chromedriver.log");
        let driver = Program::start("chromedriver", ["chromedriver", &listen], &log).unwrap();
        for (name, port) in [("chromium", port), ("chromedriver", driver_port)] {
            let listens = || async move { TcpStream::connect(("127.0.0.1", port)).is_ok() };
            until(&format!("{name} to listen on {port}; see {}", profile.display()), listens).await;
        }
        let client = connect(driver_port, port).await;
        Self { client, profile, _driver: driver, _chromium: chromium }
    }

    pub async fn open(&self, url: &str) {
        self.client.goto(url).await.unwrap();
    }

    /// The value of a script's `return`.
    pub async fn eval(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    pub async fn text(&self, selector: &str) -> String {
        let selector = json!(selector);
        let text = self.eval(&format!("return document.querySelector({selector})?.innerText ?? ''")).await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the element's text has all of `parts`.
    pub async fn until_text(&self, selector: &str, parts: &[&str]) -> String {
        let begun = Instant::now();
        loop {
            let text = self.text(selector).await;
            if parts.iter().all(|part| text.contains(part)) {
                return text;
            }
            assert!(begun.elapsed() < PATIENCE, "waited for {parts:?} in {selector}, which says: {text}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Types, wherever the focus is; keys without a letter as in WebDriver's key codes.
    pub async fn type_keys(&self, keys: &str) {
        let press = |actions: KeyActions, value| {
            actions.then(KeyAction::Down { value }).then(KeyAction::Up { value })
        };
        let actions = keys.chars().fold(KeyActions::new("keys".to_owned()), press);
        self.client.perform_actions(actions).await.unwrap();
    }

    /// Presses Tab until the focus is on an element; how often.
    pub async fn tab_to(&self, selector: &str) -> usize {
        let is_there = format!("return document.activeElement.matches({})", json!(selector));
        for presses in 0..200 {
            if self.eval(&is_there).await == true {
                return presses;
            }
            self.type_keys("\u{e004}").await;
        }
        panic!("Tab does not lead to {selector}");
    }

    /// The size of a screen, and whether it is a phone's.
    pub async fn screen(&self, width: u32, height: u32, is_phone: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone });
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Such as `prefers-color-scheme` and `dark`.
    pub async fn prefer(&self, features: &[(&str, &str)]) {
        let features: Vec<_> =
            features.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    /// Keeps the whole page as `target/dashboard/<name>.png`: as long as it is, on a screen as wide as now.
    pub async fn shoot(&self, name: &str) {
        let size = self.eval("return [innerWidth, document.documentElement.scrollHeight, innerHeight]").await;
        let number =
            |index: usize| u32::try_from(size[index].as_u64().unwrap_or_default()).unwrap_or(u32::MAX);
        let (width, whole, height) = (number(0), number(1).min(8000), number(2));
        self.screen(width, whole.max(height), width < 500).await;
        let picture = self.client.screenshot().await.unwrap();
        self.screen(width, height, width < 500).await;
        let folder = target().join("dashboard");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.png")), picture).unwrap();
    }

    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.client.issue_cmd(Vendor { path: "goog/cdp/execute", body }).await.unwrap()
    }

    async fn log(&self, kind: &str) -> Vec<Value> {
        let body = json!({ "type": kind });
        let entries = self.client.issue_cmd(Vendor { path: "se/log", body }).await.unwrap();
        entries.as_array().cloned().unwrap_or_default()
    }

    /// Every request since the last call went to 127.0.0.1; nothing was forbidden by the page's policy, and no script
    /// has failed.
    pub async fn check_requests(&self) {
        let mut requests = 0;
        for entry in self.log("performance").await {
            let message: Value = serde_json::from_str(entry["message"].as_str().unwrap_or_default()).unwrap();
            let message = &message["message"];
            if message["method"] == "Network.requestWillBeSent" {
                let url = message["params"]["request"]["url"].as_str().unwrap_or_default();
                assert!(url.starts_with("http://127.0.0.1:"), "a request to {url}");
                requests += 1;
            }
        }
        assert!(requests > 0, "the log of requests is empty");
        for entry in self.log("browser").await {
            let said = entry["message"].as_str().unwrap_or_default();
            // a server that is away is tried again
            let is_away = said.contains("ERR_CONNECTION_REFUSED") || said.contains("ERR_INCOMPLETE");
            assert!(is_away, "the browser says: {said}");
        }
    }

    pub async fn end(self) {
        // an error: it is gone, which is what we want
        let _ = self.client.clone().close().await;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // a left-over is removed by the next run
            let _ = fs::remove_dir_all(&self.profile);
        }
    }
}

async fn connect(driver: u16, chromium: u16) -> Client {
    let options = json!({ "debuggerAddress": format!("127.0.0.1:{chromium}") });
    let mut capabilities = Map::new();
    capabilities.insert("goog:chromeOptions".to_owned(), options);
    capabilities.insert("goog:loggingPrefs".to_owned(), json!({ "performance": "ALL", "browser": "ALL" }));
    let connector = hyper_util::client::legacy::connect::HttpConnector::new();
    let mut client = ClientBuilder::new(connector);
    client.capabilities(capabilities);
    client.connect(&format!("http://127.0.0.1:{driver}")).await.expect("a session of chromedriver")
}

/// A new empty folder, below target.
fn profile() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{number}"));
    // of an earlier run
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Cargo's target folder.
fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

/// Waits until it is so.
pub async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "waited for {what}");
        tokio::time::sleep(LOOK).await;
    }
}

/// What chromedriver understands beyond the standard.
#[derive(Debug)]
struct Vendor {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Vendor {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}
