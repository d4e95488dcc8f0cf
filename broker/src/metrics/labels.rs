//! Labels that the user gives every series (`metricsLabel=zone:a,team:pay`).
//!
//! **Invariant:** they can be told apart from the page's own: a name that the page uses itself, or
//! that is none for Prometheus, is refused when the broker starts.

/// Names that the page uses itself.
const OWN: [&str; 22] = [
    "aggregation",
    "cluster",
    "consume_mode",
    "consumer_group",
    "invocation_status",
    "is_long_polling",
    "is_retry",
    "is_system",
    "language",
    "le",
    "message_type",
    "node_id",
    "node_type",
    "processor",
    "protocol_type",
    "request_code",
    "response_code",
    "result",
    "storage_medium",
    "storage_type",
    "topic",
    "version",
];

/// Names with their values, in the order of the text. The error says what is wrong with which item.
pub(crate) fn parse(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut labels: Vec<(&str, &str)> = Vec::new();
    for item in text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        let wrong = |what: &str| Err(format!("metricsLabel: {item:?} {what}"));
        let Some((name, value)) = item.split_once(':') else {
            return wrong("is no name:value");
        };
        let (name, value) = (name.trim(), value.trim());
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || name.as_bytes()[0].is_ascii_digit() || !name.bytes().all(letters) {
            return wrong("has a name of other things than letters, digits and _");
        }
        if name.starts_with("__") || OWN.contains(&name) {
            return wrong("has a name that is in use already");
        }
        if labels.iter().any(|(known, _)| *known == name) {
            return wrong("names a label for the second time");
        }
        labels.push((name, value));
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_java_writes_them() {
        assert_eq!(parse("").unwrap(), []);
        assert_eq!(
            parse("zone:a-1, team:pay,,").unwrap(),
            [("zone", "a-1"), ("team", "pay")]
        );
    }

    #[test]
    fn labels_that_would_break_the_page_are_refused_by_name() {
        for (text, word) in [
            ("zone", "no name:value"),
            ("a b:c", "letters"),
            ("1a:c", "letters"),
            (":c", "letters"),
            ("topic:x", "in use"),
            ("le:x", "in use"),
            ("__name__:x", "in use"),
            ("zone:a,zone:b", "second time"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
