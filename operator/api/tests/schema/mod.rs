//! What an API server checks of a structural schema before it runs rules, as far as ours use it.

use regex::Regex;
use serde_json::{Map, Value};

/// Fills in defaults, outermost first, as an API server does.
pub(crate) fn fill_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, part) in properties(schema) {
                if !fields.contains_key(name)
                    && let Some(default) = part.get("default")
                {
                    fields.insert(name.clone(), default.clone());
                }
                if let Some(field) = fields.get_mut(name) {
                    fill_defaults(part, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(part) = schema.get("items") {
                for item in items {
                    fill_defaults(part, item);
                }
            }
        }
        _ => {}
    }
}

/// Everything that is wrong, each with its path.
pub(crate) fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (name, part) in properties(schema) {
        if name == "spec" {
            check(
                part,
                value.get("spec").unwrap_or(&Value::Null),
                "spec",
                &mut found,
            );
        }
    }
    found
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

fn check(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    let mut add = |text: String| found.push(format!("{path}: {text}"));
    if let Some(words) = schema.get("enum").and_then(Value::as_array)
        && !words.contains(value)
    {
        add(format!(
            "Unsupported value: {value}: supported values: {words:?}"
        ));
        return;
    }
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    let kind = schema.get("type").and_then(Value::as_str);
    match (kind, value) {
        (Some("object"), Value::Object(fields)) => {
            if number("maxProperties").is_some_and(|max| fields.len() as f64 > max) {
                add("Too many".to_owned());
            }
            object(schema, fields, path, found);
        }
        (Some("array"), Value::Array(items)) => {
            if number("maxItems").is_some_and(|max| items.len() as f64 > max)
                || number("minItems").is_some_and(|min| (items.len() as f64) < min)
            {
                add("Too many or too few".to_owned());
            }
            let part = schema.get("items").unwrap_or(&Value::Null);
            for (index, item) in items.iter().enumerate() {
                check(part, item, &format!("{path}[{index}]"), found);
            }
        }
        (Some("string"), Value::String(text)) => string(schema, text, path, found),
        (Some("integer"), Value::Number(given)) if given.is_i64() => {
            let given = given.as_f64().unwrap_or_default();
            if number("maximum").is_some_and(|max| given > max)
                || number("minimum").is_some_and(|min| given < min)
            {
                add(format!("Invalid value: {given}: out of bounds"));
            }
        }
        (Some("boolean"), Value::Bool(_)) | (None, _) => {}
        (Some(kind), value) => add(format!("Invalid value: {value}: must be of type {kind}")),
    }
}

fn object(schema: &Value, fields: &Map<String, Value>, path: &str, found: &mut Vec<String>) {
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            found.push(format!("{path}.{name}: Required value"));
        }
    }
    let more = schema.get("additionalProperties");
    for (name, value) in fields {
        let path = format!("{path}.{name}");
        let part = schema.pointer(&format!("/properties/{}", name.replace('/', "~1")));
        match (part, more) {
            (Some(part), _) | (None, Some(part)) => check(part, value, &path, found),
            (None, None) => found.push(format!("{path}: unknown field")),
        }
    }
}

fn string(schema: &Value, text: &str, path: &str, found: &mut Vec<String>) {
    let number = |key: &str| schema.get(key).and_then(Value::as_u64);
    let length = text.chars().count() as u64;
    if number("maxLength").is_some_and(|max| length > max)
        || number("minLength").is_some_and(|min| length < min)
    {
        found.push(format!(
            "{path}: Invalid value: {text:?}: too long or too short"
        ));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && !Regex::new(pattern)
            .expect("patterns of the schema are expressions")
            .is_match(text)
    {
        found.push(format!(
            "{path}: Invalid value: {text:?}: should match {pattern}"
        ));
    }
}
