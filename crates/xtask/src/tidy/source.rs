//! Rules about single files: size, header, names, ignored tests, machine paths.
//!
//! **Invariant:** the size limit counts what ships; the trailing test module of a file does not.

use super::Finding;
use super::tokens;
use std::path::Path;

const PRODUCTION_LINES_MAX: usize = 800;
const TEST_LINES_MAX: usize = 1000;
const ENDINGS: &[&str] = &[
    "Manager", "Impl", "Util", "Utils", "Helper", "Wrapper", "Service",
];
/// Names that come from outside: bodies of the protocol, and the trait that every server implements.
const NAMES_ALLOWED: &[&str] = &[
    "Service",
    "OffsetWrapper",
    "TopicConfigWrapper",
    "TopicConfigSerializeWrapper",
    "TopicConfigAndMappingSerializeWrapper",
    "SubscriptionGroupWrapper",
    "ConsumerOffsetSerializeWrapper",
    "MessageRequestModeSerializeWrapper",
];

/// Whether a program wrote the file: then its generator is what is judged.
pub(super) fn is_generated(text: &str) -> bool {
    let mut first = text.lines().take(5);
    first.any(|line| line.contains(concat!("@", "generated")))
}

/// Every rule for one Rust file.
pub(super) fn check(path: &Path, text: &str) -> Vec<Finding> {
    if is_generated(text) {
        return Vec::new();
    }
    let code = tokens::code(text);
    let mut findings = header(path, text);
    findings.extend(size(path, text));
    findings.extend(names(path, &code));
    findings.extend(ignored_tests(path, &code, text));
    findings
}

fn header(path: &Path, text: &str) -> Vec<Finding> {
    if text.starts_with("//! ") {
        return Vec::new();
    }
    let problem = "the first line must begin with `//! ` and say what the file owns; then one \
                   invariant, and what it does not do";
    vec![Finding::new(path, 1, problem)]
}

fn size(path: &Path, text: &str) -> Vec<Finding> {
    let (lines, limit, what) = if is_test_file(path) {
        (text.lines().count(), TEST_LINES_MAX, "lines")
    } else {
        (
            production_lines(text),
            PRODUCTION_LINES_MAX,
            "lines before its tests",
        )
    };
    if lines <= limit {
        return Vec::new();
    }
    let problem = format!(
        "{lines} {what}, at most {limit}: the file has two jobs, give one a file of its own"
    );
    vec![Finding::new(path, limit, problem)]
}

/// A file that holds nothing but tests.
pub(super) fn is_test_file(path: &Path) -> bool {
    let in_folder = path.components().any(|part| {
        matches!(
            part.as_os_str().to_str(),
            Some("tests" | "testing" | "benches" | "fuzz")
        )
    });
    let stem = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    in_folder || stem == "tests" || stem.ends_with("_tests")
}

/// Lines before the trailing test module.
pub(super) fn production_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines.windows(2).rposition(|pair| match pair {
        [attribute, module] => {
            attribute.trim_start().starts_with("#[cfg(test)]")
                && module.trim_start().starts_with("mod ")
                && module.contains('{')
        }
        _ => false,
    });
    tests.unwrap_or(lines.len())
}

fn names(path: &Path, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let Some(name) = declared_type(line) else {
            continue;
        };
        let ending = ENDINGS.iter().find(|ending| name.ends_with(**ending));
        if let Some(ending) = ending.filter(|_| !NAMES_ALLOWED.contains(&name)) {
            let problem = format!(
                "type {name} ends with {ending}, which says nothing: name it for what it does or holds \
                 (wire names stand in crates/xtask/src/tidy/source.rs)"
            );
            findings.push(Finding::new(path, index + 1, problem));
        }
    }
    findings
}

/// The name after `struct`, `enum`, `trait`, `union` or `type` at the start of a line.
fn declared_type(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let keyword = words.find(|word| {
        !word.starts_with("pub") && !matches!(*word, "unsafe" | "in" | "crate)" | "super)")
    })?;
    if !matches!(keyword, "struct" | "enum" | "trait" | "union" | "type") {
        return None;
    }
    words.next()?.split(|c: char| !c.is_alphanumeric()).next()
}

fn ignored_tests(path: &Path, code: &str, text: &str) -> Vec<Finding> {
    let lines = code.lines().zip(text.lines()).enumerate();
    lines
        .filter(|(_, (code, _))| code.contains("#[ignore"))
        .filter(|(_, (_, text))| !text.contains("#[ignore = \""))
        .map(|(index, _)| {
            let problem =
                "an ignored test without a reason: write `#[ignore = \"since when and why\"]`";
            Finding::new(path, index + 1, problem)
        })
        .collect()
}

/// Paths of somebody's computer in a committed file.
pub(super) fn machine_paths(path: &Path, text: &str) -> Vec<Finding> {
    // In pieces, so that this file does not find itself.
    let places = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/tmp/", "team"),
        concat!("/Us", "ers/"),
    ];
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for place in places {
            if names_machine_path(line, place) {
                let problem = format!(
                    "names {place}, a path of one computer: say it relative to the project"
                );
                findings.push(Finding::new(path, index + 1, problem));
            }
        }
    }
    findings
}

/// The path at the start of a path, not in the middle of another (as in `a/work/b`).
fn names_machine_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|c| {
            !c.is_alphanumeric() && !matches!(c, '.' | '-' | '_' | '}' | ')' | '*' | '~' | '$')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let findings = check(Path::new("crates/x/src/a.rs"), text);
        findings
            .into_iter()
            .map(|finding| finding.problem)
            .collect()
    }

    #[test]
    fn a_file_says_first_what_it_owns() {
        assert!(problems("//! Owns x.\n").is_empty());
        assert_eq!(problems("use x;\n").len(), 1);
    }

    #[test]
    fn empty_names_are_found_and_wire_names_are_not() {
        assert_eq!(
            problems("//! A.\npub(crate) struct TopicManager;\n").len(),
            1
        );
        assert!(problems("//! A.\npub struct TopicConfigWrapper {}\n").is_empty());
        assert!(problems("//! A.\n// struct TopicManager\nlet a = \"struct XImpl\";\n").is_empty());
    }

    #[test]
    fn tests_at_the_end_do_not_count_for_the_size() {
        let body = "let x = 1;\n".repeat(700);
        let text = format!("//! A.\n{body}#[cfg(test)]\nmod tests {{\n{body}}}\n");
        assert!(problems(&text).is_empty());
        assert_eq!(problems(&format!("//! A.\n{body}{body}")).len(), 1);
    }

    #[test]
    fn an_ignored_test_needs_a_reason() {
        assert_eq!(problems("//! A.\n#[ignore]\nfn t() {}\n").len(), 1);
        assert!(problems("//! A.\n#[ignore = \"2026-11: slow\"]\nfn t() {}\n").is_empty());
    }

    #[test]
    fn a_path_of_one_computer_is_found() {
        let line = format!("see {}main/x", concat!("/wo", "rk/"));
        assert_eq!(machine_paths(Path::new("README.md"), &line).len(), 1);
        let line = format!("see net{}main/x", concat!("/wo", "rk/"));
        assert!(machine_paths(Path::new("README.md"), &line).is_empty());
    }
}
