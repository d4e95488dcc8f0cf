//! Which messages a follower wants.
//!
//! **Invariant:** brokers select by the hash of a tag; the text is compared here once more, so a tag
//! with the same hash never comes through.

use std::collections::BTreeSet;

/// A filter as subscriptions have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TagFilter {
    /// Every message.
    #[default]
    All,
    /// Messages with one of these tags.
    Tags(BTreeSet<String>),
    /// An SQL92 expression over properties; only the broker looks at it.
    Sql(String),
}

impl TagFilter {
    /// Reads `A || B`; nothing or `*` is every message.
    #[must_use]
    pub fn tags(text: &str) -> Self {
        let tags: BTreeSet<_> = text
            .split("||")
            .map(str::trim)
            .filter(|tag| !tag.is_empty())
            .map(str::to_owned)
            .collect();
        if tags.is_empty() || tags.contains("*") {
            Self::All
        } else {
            Self::Tags(tags)
        }
    }

    /// The expression for a pull.
    pub(crate) fn expression(&self) -> String {
        match self {
            Self::All => "*".to_owned(),
            Self::Tags(tags) => tags
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(" || "),
            Self::Sql(expression) => expression.clone(),
        }
    }

    /// Its kind, as Java names it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::All | Self::Tags(_) => "TAG",
            Self::Sql(_) => "SQL92",
        }
    }

    /// Whether a message the broker let through is really wanted.
    pub(crate) fn wants(&self, tags: Option<&str>) -> bool {
        match self {
            Self::All | Self::Sql(_) => true,
            Self::Tags(wanted) => tags.is_some_and(|tags| wanted.contains(tags)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_separated_by_two_bars_and_a_star_is_everything() {
        let filter = TagFilter::tags("red||  blue ||");
        assert_eq!(filter.expression(), "blue || red");
        assert!(filter.wants(Some("red")));
        assert!(!filter.wants(Some("green")) && !filter.wants(None));
        for text in ["", "*", " red || * "] {
            assert_eq!(TagFilter::tags(text), TagFilter::All, "{text:?}");
        }
    }

    #[test]
    fn a_tag_with_the_same_hash_does_not_come_through() {
        assert_eq!(rmq_types::java_hash("Aa"), rmq_types::java_hash("BB"));
        assert!(!TagFilter::tags("Aa").wants(Some("BB")));
    }
}
