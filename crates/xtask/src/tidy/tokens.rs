//! Rust text with strings, characters and comments blanked out.
//!
//! **Invariant:** the result has the same length in lines, so that a place in it is a place in the
//! file. It is a rough scan, good for counting braces and finding words, and no parser.

/// Blanks comments, strings and character literals; line breaks stay.
pub(super) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = literal(rest, out.chars().next_back());
        if taken == 0 {
            out.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            continue;
        }
        let (gone, after) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        out.extend(gone.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = after;
    }
    out
}

/// Bytes of the comment or literal at the start of the text; 0 if there is none.
fn literal(text: &str, before: Option<char>) -> usize {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    if text.starts_with('"') {
        return string(text, 1);
    }
    if !in_word {
        for prefix in ["b\"", "c\""] {
            if text.starts_with(prefix) {
                return string(text, prefix.len());
            }
        }
        if let Some(length) = raw_string(text) {
            return length;
        }
    }
    if text.starts_with('\'') {
        return character(text);
    }
    0
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn string(text: &str, opening: usize) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().filter(|(at, _)| *at >= opening) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn raw_string(text: &str) -> Option<usize> {
    let after = ["br", "cr", "r"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))?;
    let hashes = after.chars().take_while(|c| *c == '#').count();
    let body = after.get(hashes..)?.strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    let opening = text.len() - body.len();
    let end = body.find(&closing).map(|at| at + closing.len());
    Some(opening + end.unwrap_or(body.len()))
}

/// A character literal; a lifetime is none.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    let Some((_, first)) = chars.next() else {
        return 0;
    };
    if first == '\\' {
        // What follows the backslash belongs to it, be it a quote.
        let from = text.char_indices().nth(3).map_or(text.len(), |(at, _)| at);
        let end = text.get(from..).and_then(|rest| rest.find('\''));
        return end.map_or(0, |end| from + end + 1);
    }
    match chars.next() {
        Some((at, '\'')) => at + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_in_literals_and_comments_are_gone() {
        let text = "fn f<'a>(x: &'a str) { let s = \"}\\\"}\"; // }\n let c = '{'; /* } /* } */ } */ \
                    let r = r#\"}\"}\"#; let q = '\\''; let u = '\\u{7D}'; }";
        let code = code(text);
        assert_eq!(code.matches('{').count(), 1, "{code}");
        assert_eq!(code.matches('}').count(), 1, "{code}");
        assert_eq!(code.lines().count(), text.lines().count());
        assert!(code.contains("'a str"));
    }
}
