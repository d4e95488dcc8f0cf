//! The event lines of `go test -json`.
//!
//! **Invariant:** a test counts once; events of packages and of sub-tests are not tests.

use super::{Case, Outcome};
use serde::Deserialize;
use std::collections::BTreeMap;

const DETAIL_CHARS_MAX: usize = 500;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    test: String,
    #[serde(default)]
    output: String,
}

/// Every test with how it ended.
pub(super) fn read(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut outputs: BTreeMap<String, String> = BTreeMap::new();
    for event in text
        .lines()
        .filter_map(|line| serde_json::from_str::<Event>(line).ok())
    {
        if event.test.is_empty() || event.test.contains('/') {
            continue;
        }
        let outcome = match event.action.as_str() {
            "output" => {
                outputs
                    .entry(event.test)
                    .or_default()
                    .push_str(&event.output);
                continue;
            }
            "pass" => Outcome::Passed,
            "fail" => Outcome::Failed,
            "skip" => Outcome::Skipped,
            _ => continue,
        };
        let said = outputs.remove(&event.test).unwrap_or_default();
        let detail = if outcome == Outcome::Failed {
            said
        } else {
            String::new()
        };
        cases.push(Case {
            name: event.test,
            outcome,
            detail: detail.chars().take(DETAIL_CHARS_MAX).collect(),
        });
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_keeps_what_it_said() {
        let text = r#"{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"a_test.go:1: why\n"}
{"Action":"fail","Test":"TestA"}
{"Action":"pass","Test":"TestB"}
{"Action":"pass","Package":"p"}
no json"#;
        let cases = read(text);
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[0].outcome, Outcome::Failed);
        assert!(cases[0].detail.contains("why"));
        assert_eq!(cases[1].outcome, Outcome::Passed);
    }
}
