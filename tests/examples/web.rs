//! The example with a server.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::process::{Example, cluster, until};

/// What a page answers: its status line and headers, and what comes after.
fn get(server: &str, path: &str) -> String {
    let mut socket = TcpStream::connect(server).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn web_serves_its_own_route_health_metrics_and_the_dashboard_and_leaves_its_group() {
    let mut example = Example::start("web", &["--port", "0"]);
    let address = example.wait_for_line("its address", |line| line.starts_with("http://"));
    let server = address.trim_start_matches("http://").trim_end_matches("/troupe/");
    until("its consumer has handled what there was", || {
        let answer = get(server, "/");
        let clicks = answer.lines().last().and_then(|line| line.strip_suffix(" clicks")?.parse::<u64>().ok());
        if clicks >= Some(1_000) { Ok(()) } else { Err(answer) }
    });
    until("it is healthy", || {
        let answer = get(server, "/troupe/healthz");
        if answer.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err(answer) }
    });
    let page = get(server, "/troupe/");
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("<!doctype html>"), "{page}");
    let metrics = get(server, "/troupe/metrics");
    assert!(metrics.contains("troupe_") && metrics.contains("clicks"), "{metrics}");
    example.terminate();
    let committed = cluster().zookeeper_offsets("web", "clicks").expect("ZooKeeper answers");
    assert!(committed.values().sum::<i64>() >= 1_000, "{committed:?}");
}
