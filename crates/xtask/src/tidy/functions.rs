//! How long functions are.
//!
//! **Invariant:** counted from the signature to the closing brace, outside of tests.

use super::Finding;
use super::source::{is_generated, is_test_file, production_lines};
use super::tokens;
use std::path::Path;

const LINES_MAX_CORE: usize = 70;
const LINES_MAX_SHELL: usize = 100;
/// The last layer with the shorter limit.
const CORE: u8 = 2;

/// Findings about long functions of a file in a crate of the layer.
pub(super) fn check(path: &Path, text: &str, layer: u8) -> Vec<Finding> {
    if is_test_file(path) || is_generated(text) {
        return Vec::new();
    }
    let limit = if layer <= CORE {
        LINES_MAX_CORE
    } else {
        LINES_MAX_SHELL
    };
    let production: Vec<&str> = text.lines().take(production_lines(text)).collect();
    let code = tokens::code(&production.join("\n"));
    lengths(&code)
        .into_iter()
        .filter(|(_, _, lines)| *lines > limit)
        .map(|(line, name, lines)| {
            let problem = format!(
                "function {name} has {lines} lines, at most {limit}: take a step with a name of its own out of it"
            );
            Finding::new(path, line, problem)
        })
        .collect()
}

/// First line, name and number of lines of every function with a body.
fn lengths(code: &str) -> Vec<(usize, String, usize)> {
    let mut found = Vec::new();
    let lines: Vec<&str> = code.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        if let Some(length) = body_length(lines.get(index..).unwrap_or_default()) {
            found.push((index + 1, name, length));
        }
    }
    found
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    words.find(|word| *word == "fn")?;
    let name: String = words
        .next()?
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    (!name.is_empty()).then_some(name)
}

/// Lines until the braces that open first are closed; nothing for a signature without a body.
fn body_length(lines: &[&str]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut brackets = 0_usize;
    for (index, line) in lines.iter().enumerate() {
        for c in line.chars() {
            match c {
                '{' => depth += 1,
                '}' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(index + 1);
                    }
                }
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets = brackets.saturating_sub(1),
                ';' if depth == 0 && brackets == 0 => return None,
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_and_declarations_are_not() {
        let code =
            "trait T {\n  fn declared(a: [u8; 4]);\n  fn given() {\n    1;\n  }\n}\nfn one() {}\n";
        let found = lengths(code);
        assert_eq!(
            found,
            [(3, "given".to_owned(), 3), (7, "one".to_owned(), 1)]
        );
    }

    #[test]
    fn a_long_function_is_reported_where_it_starts() {
        let text = format!("fn long() {{\n{}}}\n", "  step();\n".repeat(90));
        let path = Path::new("crates/x/src/lib.rs");
        assert_eq!(check(path, &text, 1)[0].line, 1);
        assert!(check(path, &text, 3).is_empty());
        assert!(check(Path::new("crates/x/tests/t.rs"), &text, 1).is_empty());
    }
}
