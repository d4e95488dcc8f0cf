//! fastjson's references: `{"$ref":"$.a.b[0]"}` where one object appears twice in what was written.
//!
//! Java servers and clients before 5.4 may write them; each is replaced by a copy of what it names.
//!
//! **Invariant:** what is copied is bounded in number, bytes and depth, so that a short text cannot
//! grow without end; a reference to something around itself is refused.

use rmq_types::limits::JSON_DEPTH_MAX;
use serde_json::Value;

use super::JsonError;

/// Longest text with references: it is built as a tree of values, which costs far more than text.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Most references of one text.
const REFERENCES_MAX: usize = 256;
/// Most bytes, as counted by [`measure`], that references may add to a text.
const COPIED_BYTES_MAX: usize = 1024 * 1024;

/// Replaces every reference of a strict text; `at` is where the first one stood.
pub(super) fn resolve(strict: &[u8], at: usize) -> Result<Vec<u8>, JsonError> {
    let refused = || JsonError::Reference { at };
    if strict.len() > TEXT_BYTES_MAX {
        return Err(refused());
    }
    let mut root: Value = serde_json::from_slice(strict).map_err(JsonError::Shape)?;
    let mut pending = Vec::new();
    collect(&root, &mut Vec::new(), &mut pending);
    if pending.len() > REFERENCES_MAX {
        return Err(refused());
    }
    let mut budget = COPIED_BYTES_MAX;
    // A reference may name an object that holds one itself: take those first.
    while !pending.is_empty() {
        let before = pending.len();
        let mut left = Vec::new();
        for reference in pending {
            match reference.target(&root) {
                Found::Ready(value, size) => {
                    budget = budget.checked_sub(size).ok_or_else(refused)?;
                    *step_into(&mut root, &reference.place).ok_or_else(refused)? = value;
                }
                Found::NotYet => left.push(reference),
                Found::Never => return Err(refused()),
            }
        }
        if left.len() == before {
            return Err(refused());
        }
        pending = left;
    }
    Ok(super::to_vec(&root))
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

struct Reference {
    place: Vec<Step>,
    names: Vec<Step>,
}

enum Found {
    Ready(Value, usize),
    NotYet,
    Never,
}

impl Reference {
    fn target(&self, root: &Value) -> Found {
        if self.place.starts_with(&self.names) {
            return Found::Never;
        }
        let mut value = root;
        for step in &self.names {
            match child(value, step) {
                Some(inner) => value = inner,
                // It may lie inside what another reference stands for.
                None if named(value).is_some() => return Found::NotYet,
                None => return Found::Never,
            }
        }
        match measure(value, JSON_DEPTH_MAX.saturating_sub(self.place.len())) {
            Some(Measure::Size(size)) => Found::Ready(value.clone(), size),
            Some(Measure::HoldsReference) => Found::NotYet,
            None => Found::Never,
        }
    }
}

fn child<'v>(value: &'v Value, step: &Step) -> Option<&'v Value> {
    match (value, step) {
        (Value::Array(items), Step::Index(index)) => items.get(*index),
        (Value::Object(members), Step::Index(index)) => members.get(&index.to_string()),
        (Value::Object(members), Step::Key(key)) => members.get(key),
        _ => None,
    }
}

fn step_into<'v>(root: &'v mut Value, place: &[Step]) -> Option<&'v mut Value> {
    place
        .iter()
        .try_fold(root, |value, step| match (value, step) {
            (Value::Array(items), Step::Index(index)) => items.get_mut(*index),
            (Value::Object(members), Step::Key(key)) => members.get_mut(key),
            _ => None,
        })
}

/// The path in `{"$ref":"path"}`.
fn named(value: &Value) -> Option<&Value> {
    value.as_object().and_then(|members| members.get("$ref"))
}

fn collect(value: &Value, place: &mut Vec<Step>, found: &mut Vec<Reference>) {
    if let Some(path) = named(value) {
        // A path that is no text names the root, which is around the reference: refused later.
        let names = path.as_str().and_then(parse).unwrap_or_default();
        found.push(Reference {
            place: place.clone(),
            names,
        });
        return;
    }
    let mut visit = |step, inner| {
        place.push(step);
        collect(inner, place, found);
        place.pop();
    };
    match value {
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                visit(Step::Index(index), inner);
            }
        }
        Value::Object(members) => {
            for (key, inner) in members {
                visit(Step::Key(key.clone()), inner);
            }
        }
        _ => {}
    }
}

/// `$.key.other[0]`, a backslash before each character of a key that is no letter or digit.
/// `..` and `@` point at what is around the reference; they have no form here.
fn parse(path: &str) -> Option<Vec<Step>> {
    let mut characters = path.strip_prefix('$')?.chars().peekable();
    let mut steps = Vec::new();
    while let Some(opening) = characters.next() {
        let mut text = String::new();
        if opening == '[' {
            while let Some(digit) = characters.next_if(char::is_ascii_digit) {
                text.push(digit);
            }
            characters.next_if_eq(&']')?;
            steps.push(Step::Index(text.parse().ok()?));
            continue;
        }
        if opening != '.' {
            return None;
        }
        while let Some(character) = characters.next_if(|next| !matches!(next, '.' | '[')) {
            text.push(if character == '\\' {
                characters.next()?
            } else {
                character
            });
        }
        steps.push(Step::Key(text));
    }
    Some(steps)
}

enum Measure {
    Size(usize),
    HoldsReference,
}

/// Bytes that a copy of `value` counts for; `None` if it is nested deeper than `depth_left`.
fn measure(value: &Value, depth_left: usize) -> Option<Measure> {
    if named(value).is_some() {
        return Some(Measure::HoldsReference);
    }
    let mut size = 16;
    let mut add = |extra: usize, inner: &Value| match measure(inner, depth_left.checked_sub(1)?)? {
        Measure::Size(inner) => {
            size += extra + inner;
            Some(true)
        }
        Measure::HoldsReference => Some(false),
    };
    match value {
        Value::String(text) => size += text.len(),
        Value::Array(items) => {
            for inner in items {
                if !add(0, inner)? {
                    return Some(Measure::HoldsReference);
                }
            }
        }
        Value::Object(members) => {
            for (key, inner) in members {
                if !add(key.len(), inner)? {
                    return Some(Measure::HoldsReference);
                }
            }
        }
        _ => {}
    }
    Some(Measure::Size(size))
}
