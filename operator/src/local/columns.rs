//! The columns that `kubectl get` shows for a kind, taken from the kind's own definition.
//!
//! **Invariant:** heads and paths come from the definition that is applied to a cluster, so this
//! computer and Kubernetes cannot show different columns. A value that is not there is a dash. Of
//! JSONPath only what such columns use is read: members, and a filter for equality.

use kube::CustomResourceExt;
use serde_json::Value;
use std::time::Duration;

/// Heads and cells of one object, or of several of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// In capitals, as `kubectl` writes them.
    pub head: Vec<String>,
    /// A row for each object.
    pub rows: Vec<Vec<String>>,
}

/// What is not part of an object as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// `metadata.name`; without it there is no column NAME.
    pub name: Option<String>,
    /// How old the object is; without it there is no column AGE.
    pub age: Option<Duration>,
}

/// The columns of kind `K` for these objects.
#[must_use]
pub fn columns<K: CustomResourceExt>(objects: &[(Extra, Value)]) -> Columns {
    let definition = K::crd();
    let version = definition.spec.versions.into_iter().next();
    let all = version.and_then(|version| version.additional_printer_columns);
    let mut shown: Vec<(String, String, bool)> = all
        .unwrap_or_default()
        .into_iter()
        // Those with a priority are for `-o wide`.
        .filter(|column| column.priority.unwrap_or(0) == 0)
        .map(|column| {
            (
                column.name.to_uppercase(),
                column.json_path,
                column.type_ == "date",
            )
        })
        .collect();
    let has_age = objects.iter().any(|(extra, _)| extra.age.is_some());
    shown.retain(|(_, _, is_date)| has_age || !is_date);
    let has_name = objects.iter().any(|(extra, _)| extra.name.is_some());
    let name_head = has_name.then(|| "NAME".to_owned());
    let heads = shown.iter().map(|(head, _, _)| head.clone());
    let row = |(extra, object): &(Extra, Value)| {
        let name = has_name.then(|| extra.name.clone().unwrap_or_else(dash));
        let cells = shown.iter().map(|(_, path, is_date)| {
            if *is_date {
                extra.age.map_or_else(dash, age)
            } else {
                cell(find(object, path))
            }
        });
        name.into_iter().chain(cells).collect()
    };
    Columns {
        rows: objects.iter().map(row).collect(),
        head: name_head.into_iter().chain(heads).collect(),
    }
}

fn dash() -> String {
    "-".to_owned()
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => dash(),
        Some(Value::String(text)) if text.is_empty() => dash(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// `.a.b`, `.list[?(@.type=="Ready")].status`.
fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut found = object;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("[?(@.") {
            let (filter, after) = after.split_once(")]")?;
            let (member, wanted) = filter.split_once("==")?;
            let wanted = wanted.trim_matches('"');
            let list = found.as_array()?;
            let is_wanted =
                |item: &&Value| item.get(member).and_then(Value::as_str) == Some(wanted);
            found = list.iter().find(is_wanted)?;
            rest = after;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (member, after) = after.split_at(end);
            found = found.get(member)?;
            rest = after;
        }
    }
    Some(found)
}

/// An age as `kubectl` writes it: the two largest units while they are small.
fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: u64, unit: char, small: u64, small_unit: char| {
        if small == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit}{small}{small_unit}")
        }
    };
    match (seconds, minutes, hours, days) {
        (0..120, ..) => format!("{seconds}s"),
        (_, 0..10, ..) => two(minutes, 'm', seconds % 60, 's'),
        (_, 0..180, ..) => format!("{minutes}m"),
        (_, _, 0..8, _) => two(hours, 'h', minutes % 60, 'm'),
        (_, _, 0..48, _) => format!("{hours}h"),
        (_, _, _, 0..8) => two(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmq_operator_api::{BrokerGroup, RocketMQCluster};
    use serde_json::json;

    #[test]
    fn a_cluster_has_the_columns_of_its_definition_after_its_name() {
        let status = json!({
            "conditions": [{"type": "Available", "status": "False"}, {"type": "Ready", "status": "True"}],
            "groups": {"summary": "2/2", "writable": 2},
            "version": {"current": "0.1.0"},
            "phase": "Ready",
        });
        let extra = Extra {
            name: Some("a".to_owned()),
            age: Some(Duration::from_secs(3)),
        };
        let columns = columns::<RocketMQCluster>(&[(extra, json!({ "status": status }))]);
        let column = |name: &str| {
            let at = columns.head.iter().position(|head| head == name).unwrap();
            columns.rows[0][at].as_str()
        };
        assert_eq!(columns.head[0], "NAME");
        for (head, cell) in [
            ("NAME", "a"),
            ("READY", "True"),
            ("GROUPS", "2/2"),
            ("WRITABLE", "2"),
            ("VERSION", "0.1.0"),
            ("STATUS", "Ready"),
            ("AGE", "3s"),
        ] {
            assert_eq!(column(head), cell, "{head}");
        }
        assert!(
            !columns.head.iter().any(|head| head == "NAMESERVERS"),
            "that is for -o wide"
        );
    }

    #[test]
    fn without_name_and_age_these_columns_are_left_out_and_what_is_missing_is_a_dash() {
        let columns = columns::<BrokerGroup>(&[(Extra::default(), json!({}))]);
        for absent in ["NAME", "AGE"] {
            assert!(
                !columns.head.iter().any(|head| head == absent),
                "{columns:?}"
            );
        }
        assert!(
            columns.head.iter().any(|head| head == "MASTER"),
            "{columns:?}"
        );
        assert!(
            columns.rows[0].iter().all(|cell| cell == "-"),
            "{columns:?}"
        );
    }

    #[test]
    fn every_path_of_a_definition_is_one_that_is_understood() {
        let all = [RocketMQCluster::crd(), BrokerGroup::crd()];
        let columns = all.into_iter().filter_map(|definition| {
            let version = definition.spec.versions.into_iter().next();
            version.and_then(|version| version.additional_printer_columns)
        });
        for column in columns.flatten() {
            let mut path = column.json_path.as_str();
            // What remains when members and filters are taken away must be nothing.
            while let Some(after) = path.strip_prefix('.').or(path.strip_prefix("[?(@.")) {
                let end = if path.starts_with('.') {
                    after.find(['.', '[']).unwrap_or(after.len())
                } else {
                    after.find(")]").map_or(after.len(), |at| at + 2)
                };
                path = &after[end..];
            }
            assert_eq!(path, "", "{}", column.json_path);
        }
    }

    #[test]
    fn ages_are_written_as_kubectl_writes_them() {
        let said: Vec<String> = [
            3, 119, 120, 130, 601, 10_800, 10_860, 90_000, 180_000, 900_000,
        ]
        .map(|seconds| age(Duration::from_secs(seconds)))
        .into();
        assert_eq!(
            said,
            [
                "3s", "119s", "2m", "2m10s", "10m", "3h", "3h1m", "25h", "2d2h", "10d"
            ]
        );
    }
}
