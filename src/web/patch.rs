//! What changed between two JSON values, as a merge patch (RFC 7396): members that are new or different, `null` for
//! those that are gone. Neither value may hold a `null`.

use serde_json::{Map, Value};

/// The patch that makes `new` of `old`; none when they are equal.
pub(super) fn diff(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let patch = diff_members(old, new);
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (old, new) => (old != new).then(|| new.clone()),
    }
}

fn diff_members(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let gone = old.keys().filter(|name| !new.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = new.iter().filter_map(|(name, value)| {
        let patch = match old.get(name) {
            Some(old) => diff(old, value)?,
            None => value.clone(),
        };
        Some((name.clone(), patch))
    });
    gone.chain(changed).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As the page does it.
    fn merge(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        let Some(target) = target.as_object_mut() else { return };
        for (name, patch) in patch {
            if patch.is_null() {
                target.remove(name);
            } else {
                merge(target.entry(name).or_insert(Value::Null), patch);
            }
        }
    }

    #[test]
    fn a_patch_makes_the_new_of_the_old() {
        let values = [
            json!({}),
            json!({"a": 1, "b": {"c": 2, "d": [1, 2]}}),
            json!({"a": 1, "b": {"c": 3, "d": [2]}, "e": "x"}),
            json!({"b": {}}),
            json!({"b": 7, "__proto__": {"c": 1}}),
            json!({"a": {"b": {"c": {}}}}),
        ];
        for old in &values {
            for new in &values {
                let mut made = old.clone();
                if let Some(patch) = diff(old, new) {
                    merge(&mut made, &patch);
                }
                assert_eq!(made, *new, "from {old}");
            }
        }
    }

    #[test]
    fn only_what_changed_is_in_a_patch() {
        let old = json!({"topics": {"t": {"0": {"acked": 1, "since": 5}, "1": {"acked": 1}}}, "gone": 1});
        let new = json!({"topics": {"t": {"0": {"acked": 2, "since": 5}, "1": {"acked": 1}}}});
        assert_eq!(diff(&old, &new), Some(json!({"topics": {"t": {"0": {"acked": 2}}}, "gone": null})));
        assert_eq!(diff(&new, &new), None);
    }
}
