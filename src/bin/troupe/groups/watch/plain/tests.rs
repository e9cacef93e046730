use super::super::sample::{BEGUN_MS, read};
use super::*;

fn printed(output: Output, view: &View) -> String {
    let mut out = Vec::new();
    print(&mut out, output, "mirror", view).unwrap();
    String::from_utf8(out).unwrap()
}

fn twice() -> View {
    let mut view = View::default();
    view.read(read(0, 500));
    let mut next = read(2, 560);
    next.partitions[0].lag = None;
    next.errors.push("broker 3: gone".into());
    view.read(next);
    view
}

#[test]
fn a_read_is_printed_as_tables() {
    let text = printed(Output::Table, &twice());
    assert!(text == include_str!("../golden/plain.txt"), "{text}");
}

#[test]
fn a_read_is_one_line_of_json_and_unknown_values_are_null() {
    let text = printed(Output::Json, &twice());
    assert_eq!(text.lines().count(), 1);
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((line["group"].as_str(), line["taken_ms"].as_i64()), (Some("mirror"), Some(BEGUN_MS + 2_000)));
    assert_eq!((&line["total_lag"], &line["unknown_lags"]), (&(3 * 640).into(), &1.into()));
    assert_eq!((line["type"].is_null(), &line["coordination"]), (true, &"zookeeper".into()));
    assert_eq!((&line["members"][1]["owned"], &line["errors"][0]), (&2.into(), &"broker 3: gone".into()));
    let last = &line["partitions"][3];
    assert_eq!((&last["topic"], &last["partition"]), (&"orders".into(), &0.into()));
    assert!(last["lag"].is_null() && last["lag_per_second"].is_null() && last["note"].is_null());
    assert_eq!(last["committed_per_second"], 30.0);
}

#[test]
fn a_read_that_failed_is_one_line_of_json_and_no_table() {
    let mut view = twice();
    view.failed("no server".into(), 7);
    assert_eq!(printed(Output::Table, &view), "");
    let line = printed(Output::Json, &view);
    assert_eq!(line, "{\"group\":\"mirror\",\"error\":\"no server\",\"failing_since_ms\":7}\n");
}
