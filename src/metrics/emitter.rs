//! Names series: every one has its member's labels.

use std::borrow::Cow;

use ::metrics::Label;

use crate::StatusSnapshot;

/// Gives one member's numbers to the current recorder.
pub(super) struct Emitter {
    /// How a label's value is given to the recorder.
    value: fn(&str) -> Cow<'_, str>,
    /// On every series.
    member: Vec<Label>,
}

impl Emitter {
    pub(super) fn new(member: &StatusSnapshot, value: fn(&str) -> Cow<'_, str>) -> Self {
        let emitter = Self { value, member: Vec::new() };
        let member = emitter.labels(&[("group", &member.group), ("consumer_id", &member.consumer_id)]);
        Self { member, ..emitter }
    }

    pub(super) fn gauge(&self, name: &'static str, labels: &[(&'static str, &str)], value: f64) {
        ::metrics::gauge!(name, self.labels(labels)).set(value);
    }

    pub(super) fn counter(&self, name: &'static str, labels: &[(&'static str, &str)], value: u64) {
        ::metrics::counter!(name, self.labels(labels)).absolute(value);
    }

    fn labels(&self, labels: &[(&'static str, &str)]) -> Vec<Label> {
        let own = labels.iter().map(|(name, value)| Label::new(*name, (self.value)(value).into_owned()));
        self.member.iter().cloned().chain(own).collect()
    }
}
