//! Surefire's XML reports.
//!
//! **Invariant:** reads what Surefire writes (attributes in double quotes, one `testcase` element a
//! test), not XML in general.

use super::{Case, Outcome};
use anyhow::Context as _;
use std::path::Path;

const DETAIL_CHARS_MAX: usize = 500;

/// Every test of every `TEST-*.xml` in the folder.
pub(super) fn read(folder: &Path) -> anyhow::Result<Vec<Case>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context("cannot list the reports"),
    };
    let mut cases = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "xml") {
            let text = std::fs::read_to_string(&path)?;
            cases.extend(parse(&text));
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

fn parse(xml: &str) -> Vec<Case> {
    let elements = xml.split("<testcase ").skip(1);
    elements.filter_map(case).collect()
}

fn case(element: &str) -> Option<Case> {
    let head = element.split('>').next()?;
    let name = attribute(head, "name")?;
    let class = attribute(head, "classname")?;
    let class = class.rsplit('.').next().unwrap_or(class);
    let body = match element.split_once("</testcase>") {
        Some((body, _)) if !head.ends_with('/') => body,
        _ => "",
    };
    let failure = ["<failure", "<error", "<flakyFailure"]
        .iter()
        .find_map(|tag| body.split_once(tag));
    let outcome = match failure {
        Some(_) => Outcome::Failed,
        None if body.contains("<skipped") => Outcome::Skipped,
        None => Outcome::Passed,
    };
    let detail = failure.map_or("", |(_, rest)| attribute(rest, "message").unwrap_or(rest));
    Some(Case {
        name: format!("{class}: {}", unescape(name).replace('_', " ")),
        outcome,
        detail: unescape(detail).chars().take(DETAIL_CHARS_MAX).collect(),
    })
}

fn attribute<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    // A space before the name: "name" must not be found inside "classname".
    let padded = text.strip_prefix(&format!("{name}=\""));
    let rest = padded.or_else(|| {
        text.split_once(&format!(" {name}=\""))
            .map(|(_, rest)| rest)
    })?;
    rest.split('"').next()
}

fn unescape(text: &str) -> String {
    text.replace("&#10;", "\n")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_failed_and_skipped_tests_are_told_apart() {
        let xml = r#"<testsuite tests="3">
          <testcase name="it_holds" classname="a.b.CTest" time="1"/>
          <testcase name="it_does_not" classname="a.b.CTest" time="1">
            <failure message="1 &lt; 2&#10;so" type="x"><![CDATA[at x]]></failure>
          </testcase>
          <testcase name="it_waits" classname="a.b.CTest" time="1"><skipped message="m"/></testcase>
        </testsuite>"#;
        let cases = parse(xml);
        let outcomes: Vec<_> = cases.iter().map(|case| case.outcome).collect();
        assert_eq!(
            outcomes,
            [Outcome::Passed, Outcome::Failed, Outcome::Skipped]
        );
        assert_eq!(cases[0].name, "CTest: it holds");
        assert_eq!(cases[1].detail, "1 < 2\nso");
    }
}
