//! Tag expressions: `A || B`, read as Java's `FilterAPI` reads them.

use rmq_types::java_hash;

/// Which messages a reader wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TagFilter {
    /// Every message.
    All,
    /// Messages with one of these tags: the hash as it stands in the queue, and the text.
    Tags(Vec<(i64, Box<str>)>),
}

/// Not a tag expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the consumer's subscription can not be parsed: no tag between the bars")]
pub(crate) struct TagExpressionError;

impl TagFilter {
    /// Reads an expression; blank and `*` mean all, empty parts are left out.
    pub(crate) fn parse(expression: &str) -> Result<Self, TagExpressionError> {
        let expression = expression.trim();
        if expression.is_empty() || expression == "*" {
            return Ok(Self::All);
        }
        let tags: Vec<_> = expression
            .split("||")
            .map(str::trim)
            .filter(|tag| !tag.is_empty())
            .map(|tag| (i64::from(java_hash(tag)), tag.into()))
            .collect();
        if tags.is_empty() {
            Err(TagExpressionError)
        } else {
            Ok(Self::Tags(tags))
        }
    }

    /// First check, by the hash in the queue.
    #[must_use]
    pub(crate) fn admits_code(&self, tags_code: i64) -> bool {
        match self {
            Self::All => true,
            Self::Tags(tags) => tags.iter().any(|(code, _)| *code == tags_code),
        }
    }

    /// Second check, by the text: two tags may have one hash.
    #[must_use]
    pub(crate) fn admits_tag(&self, tag: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Tags(tags) => tag.is_some_and(|tag| tags.iter().any(|(_, text)| **text == *tag)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(expression: &str) -> Vec<String> {
        match TagFilter::parse(expression).unwrap() {
            TagFilter::All => vec!["*".to_owned()],
            TagFilter::Tags(tags) => tags.into_iter().map(|(_, text)| text.into()).collect(),
        }
    }

    #[test]
    fn expressions_are_trimmed_and_empty_parts_left_out() {
        assert_eq!(tags("A||B"), ["A", "B"]);
        assert_eq!(tags(" A || B "), ["A", "B"]);
        assert_eq!(tags("A||"), ["A"]);
        for all in ["", " ", "*"] {
            assert_eq!(tags(all), ["*"]);
        }
        assert!(TagFilter::parse("||").is_err());
    }

    #[test]
    fn tags_with_one_hash_are_told_apart_by_their_text() {
        let filter = TagFilter::parse("Aa").unwrap();
        assert!(filter.admits_code(i64::from(java_hash("BB"))));
        assert!(!filter.admits_tag(Some("BB")));
        assert!(filter.admits_tag(Some("Aa")));
        assert!(!filter.admits_tag(None));
    }
}
