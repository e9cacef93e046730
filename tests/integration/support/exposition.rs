//! Reads the text format of Prometheus (0.0.4), and refuses whatever its documentation does not allow.

use std::collections::{BTreeMap, BTreeSet};

/// One line with a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// A whole text.
#[derive(Debug, Default)]
pub struct Exposition {
    pub samples: Vec<Sample>,
    /// By metric.
    pub types: BTreeMap<String, String>,
    pub help: BTreeMap<String, String>,
}

impl Exposition {
    /// Panics with the line that is wrong.
    #[track_caller]
    pub fn of(text: &str) -> Self {
        read(text).unwrap_or_else(|why| panic!("{why}\n--- in\n{text}"))
    }

    /// The series of a metric that have all of these labels.
    pub fn find(&self, name: &str, labels: &[(&str, &str)]) -> Vec<&Sample> {
        let has = |sample: &Sample| {
            labels.iter().all(|(key, value)| sample.labels.get(*key).is_some_and(|it| it == value))
        };
        self.samples.iter().filter(|sample| sample.name == name && has(sample)).collect()
    }

    /// The value of the only one of these.
    #[track_caller]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let found = self.find(name, labels);
        assert_eq!(found.len(), 1, "{name} {labels:?}: {found:?}");
        found[0].value
    }
}

fn read(text: &str) -> Result<Exposition, String> {
    let mut all = Exposition::default();
    let (mut seen, mut ended, mut current) = (BTreeSet::new(), BTreeSet::new(), String::new());
    let text = text.strip_suffix('\n').ok_or("the last line does not end")?;
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        let wrong = |why: &str| format!("{why}: {line}");
        let mut begin = |name: &str| {
            if name != current {
                ended.insert(std::mem::replace(&mut current, name.to_owned()));
            }
            if ended.contains(name) { Err(wrong("its metric was left before")) } else { Ok(()) }
        };
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (kind, name, rest) = (words.next(), words.next(), words.next());
            let (Some(kind), Some(name), Some(rest)) = (kind, name, rest) else {
                return Err(wrong("cut off"));
            };
            begin(name)?;
            let (into, rest) = match kind {
                "HELP" => (&mut all.help, unescaped(rest, "\\n")?),
                "TYPE" if ["counter", "gauge"].contains(&rest) => (&mut all.types, rest.to_owned()),
                _ => return Err(wrong("neither HELP nor a TYPE that we have")),
            };
            if into.insert(name.to_owned(), rest).is_some() {
                return Err(wrong("said twice"));
            }
        } else {
            let sample = sample(line).map_err(|why| wrong(&why))?;
            begin(&sample.name)?;
            if !all.types.contains_key(&sample.name) || !all.help.contains_key(&sample.name) {
                return Err(wrong("without TYPE and HELP before it"));
            }
            if !seen.insert((sample.name.clone(), sample.labels.clone())) {
                return Err(wrong("the same series twice"));
            }
            all.samples.push(sample);
        }
    }
    Ok(all)
}

fn sample(line: &str) -> Result<Sample, String> {
    let (name, mut rest) = line.split_at(name_ends(line)?);
    let mut labels = BTreeMap::new();
    if let Some(mut inner) = rest.strip_prefix('{') {
        loop {
            let (key, after) = inner.split_at(name_ends(inner)?);
            let quoted = after.strip_prefix("=\"").ok_or("no value after a label")?;
            let end = quote(quoted)?;
            if labels.insert(key.to_owned(), unescaped(&quoted[..end], "\\n\"")?).is_some() {
                return Err("a label twice".to_owned());
            }
            let after = &quoted[end + 1..];
            match after.strip_prefix(',') {
                Some(more) => inner = more,
                None => break rest = after.strip_prefix('}').ok_or("labels that do not end")?,
            }
        }
    }
    let number = rest.strip_prefix(' ').ok_or("no space before the value")?;
    let value = number.parse().map_err(|_| format!("no number: {number:?}"))?;
    Ok(Sample { name: name.to_owned(), labels, value })
}

/// `[a-zA-Z_][a-zA-Z0-9_]*`, of metrics and of labels.
fn name_ends(text: &str) -> Result<usize, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !allowed(c)).unwrap_or(text.len());
    if end == 0 || text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("no name: {text:?}"));
    }
    Ok(end)
}

/// Where the next quote is that is not escaped.
fn quote(text: &str) -> Result<usize, String> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Ok(at),
            _ => {}
        }
    }
    Err("a value that does not end".to_owned())
}

/// Of what may be escaped: `\n` is a line end, the others are themselves.
fn unescaped(text: &str, allowed: &str) -> Result<String, String> {
    let (mut out, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') if allowed.contains('n') => out.push('\n'),
                Some(c) if c != 'n' && allowed.contains(c) => out.push(c),
                other => return Err(format!("\\{other:?} is no escape")),
            },
            '"' if allowed.contains('"') => return Err("a quote that is not escaped".to_owned()),
            c => out.push(c),
        }
    }
    Ok(out)
}

#[test]
fn what_is_not_allowed_is_refused() {
    let head = "# HELP a b\n# TYPE a gauge\n";
    assert_eq!(
        Exposition::of(&format!("{head}a{{x=\"\\\\\\\"\\n\"}} 1\n")).value("a", &[("x", "\\\"\n")]),
        1.0
    );
    for wrong in [
        "a 1",
        "a{x=\"1\"} 1\na{x=\"1\"} 2\n",
        "a{x=\"1\",x=\"2\"} 1\n",
        "a{x=\"\\t\"} 1\n",
        "a{x=\"1} 1\n",
        "a{x-y=\"1\"} 1\n",
        "a  1\n",
        "a one\n",
        "b 1\n",
        "# TYPE a counter\n",
        "# TYPE b gauge\n# HELP b x\nb 1\na 1\n",
    ] {
        assert!(read(&format!("{head}{wrong}")).is_err(), "{wrong}");
    }
    assert!(read("a 1\n# HELP a b\n# TYPE a gauge\n").is_err());
}
