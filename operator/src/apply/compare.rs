//! Whether an object that is there already says what shall be applied.
//!
//! **Invariant:** pure. An object that [`covers`] finds sound is not written, so that a cluster at
//! rest costs no write. Fields that somebody else set and that mean nothing to us do not count;
//! selectors count in whole, since a foreign line in one cuts pods off.

use serde_json::Value;

/// Whether `live` holds everything that `wanted` says.
#[must_use]
pub fn covers(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().all(|(key, value)| {
            match live.get(key) {
                Some(found) if key == "selector" => whole(value, found),
                Some(found) => covers(value, found),
                // An empty map or list and none at all are the same to the API server.
                None => is_empty(value),
            }
        }),
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len()
                && wanted
                    .iter()
                    .zip(live)
                    .all(|(wanted, live)| covers(wanted, live))
        }
        _ => wanted == live,
    }
}

/// As [`covers`], and nothing else may be there.
fn whole(wanted: &Value, live: &Value) -> bool {
    covers(wanted, live)
        && match (wanted, live) {
            (Value::Object(wanted), Value::Object(live)) => wanted.len() == live.len(),
            _ => true,
        }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(list) => list.is_empty(),
        Value::Null => true,
        _ => false,
    }
}

/// The part of `live` that has the shape of `wanted`: what the server made of each field.
#[must_use]
pub(super) fn projected(wanted: &Value, live: &Value) -> Value {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted
            .iter()
            .filter_map(|(key, value)| {
                let found = live.get(key)?;
                let part = if key == "selector" {
                    found.clone()
                } else {
                    projected(value, found)
                };
                Some((key.clone(), part))
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        (Value::Array(wanted), Value::Array(live)) if wanted.len() == live.len() => wanted
            .iter()
            .zip(live)
            .map(|(wanted, live)| projected(wanted, live))
            .collect(),
        _ => live.clone(),
    }
}

/// The first field, as a path, at which `live` does not say what `wanted` does.
#[must_use]
pub(super) fn difference(wanted: &Value, live: &Value) -> Option<String> {
    if covers(wanted, live) {
        return None;
    }
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            wanted.iter().find_map(|(key, value)| match live.get(key) {
                Some(found) if key == "selector" => (!whole(value, found)).then(|| key.clone()),
                Some(found) => difference(value, found).map(|rest| joined(key, &rest)),
                None => (!is_empty(value)).then(|| key.clone()),
            })
        }
        (Value::Array(wanted), Value::Array(live)) if wanted.len() == live.len() => wanted
            .iter()
            .zip(live)
            .enumerate()
            .find_map(|(index, (wanted, live))| {
                difference(wanted, live).map(|rest| joined(&index.to_string(), &rest))
            }),
        _ => Some(String::new()),
    }
}

fn joined(key: &str, rest: &str) -> String {
    if rest.is_empty() {
        key.to_owned()
    } else {
        format!("{key}.{rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_of_the_server_and_of_others_do_not_count() {
        let wanted = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"ports": [{"port": 1}]}});
        let live = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}, "uid": "u"},
            "spec": {"ports": [{"port": 1, "nodePort": 3}], "type": "ClusterIP"},
            "status": {},
        });
        assert!(covers(&wanted, &live));
        assert_eq!(difference(&wanted, &live), None);
    }

    #[test]
    fn a_changed_missing_or_added_part_counts() {
        let wanted = json!({"spec": {"ports": [{"port": 1}], "selector": {"a": "1"}, "x": {}}});
        for (live, at) in [
            (
                json!({"spec": {"ports": [{"port": 2}], "selector": {"a": "1"}}}),
                "spec.ports.0.port",
            ),
            (
                json!({"spec": {"ports": [], "selector": {"a": "1"}}}),
                "spec.ports",
            ),
            (json!({"spec": {"ports": [{"port": 1}]}}), "spec.selector"),
            (
                json!({"spec": {"ports": [{"port": 1}], "selector": {"a": "1", "b": "2"}}}),
                "spec.selector",
            ),
            (json!({}), "spec"),
        ] {
            assert!(!covers(&wanted, &live), "{live}");
            assert_eq!(difference(&wanted, &live).as_deref(), Some(at));
        }
    }

    #[test]
    fn a_projection_has_what_the_server_made_of_each_field() {
        let wanted = json!({"memory": "1024Mi", "cpu": "1"});
        let live = json!({"memory": "1Gi", "cpu": "1", "other": 1});
        assert_eq!(
            projected(&wanted, &live),
            json!({"memory": "1Gi", "cpu": "1"})
        );
    }
}
