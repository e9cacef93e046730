use super::*;

#[derive(Serialize)]
struct Lag {
    topic: &'static str,
    lag: Option<i64>,
}

impl Row for Lag {
    const HEAD: &'static [&'static str] = &["TOPIC", "LAG"];

    fn cells(&self) -> Vec<String> {
        vec![self.topic.to_owned(), self.lag.map_or("-".to_owned(), |lag| lag.to_string())]
    }
}

fn printed(output: Output, rows: &[Lag]) -> String {
    let mut out = Vec::new();
    output.write(rows, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_table_has_its_numbers_at_the_right() {
    let rows = [
        Lag { topic: "orders", lag: Some(12_345) },
        Lag { topic: "a", lag: Some(7) },
        Lag { topic: "bills", lag: None },
    ];
    let lines: Vec<String> = printed(Output::Table, &rows).lines().map(str::to_owned).collect();
    assert_eq!(lines, ["TOPIC     LAG", "orders  12345", "a           7", "bills       -"]);
}

#[test]
fn json_is_an_array_with_null_for_what_is_not_known() {
    let json = printed(Output::Json, &[Lag { topic: "a", lag: None }]);
    assert_eq!(json, "[\n  {\n    \"topic\": \"a\",\n    \"lag\": null\n  }\n]\n");
    assert_eq!(printed(Output::Json, &[]), "[]\n");
}

#[test]
fn a_name_cannot_break_its_row_or_command_the_terminal() {
    let table = printed(Output::Table, &[Lag { topic: "a\nb\u{1b}[31m", lag: Some(1) }]);
    assert_eq!(table.lines().nth(1), Some(r"a\nb\u{1b}[31m    1"));
    assert_eq!(table.lines().count(), 2);
}
