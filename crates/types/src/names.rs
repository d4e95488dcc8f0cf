//! Names of topics, groups, brokers and clusters, checked once where they enter.
//!
//! **Invariant:** a name never holds a path separator, a dot or a control byte, so it may become a
//! folder name as it is (CVE-2019-17572 was a topic named `../…`). Names are never URL-decoded.

use std::{borrow::Borrow, fmt, sync::Arc};

use crate::limits;

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing but white space.
    #[error("the specified {kind} is blank")]
    Blank {
        /// What the name was for: `topic`, `group`, …
        kind: &'static str,
    },
    /// More bytes than the kind allows.
    #[error("the specified {kind} is longer than {kind} max length {max}")]
    TooLong {
        /// What the name was for.
        kind: &'static str,
        /// The limit in bytes.
        max: usize,
    },
    /// A byte outside `[%|a-zA-Z0-9_-]`.
    #[error("the specified {kind} contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")]
    IllegalCharacter {
        /// What the name was for.
        kind: &'static str,
    },
}

/// Whether a byte may stand in a topic or group name (`TopicValidator`): letters, digits, `%|_-`.
#[must_use]
pub const fn is_name_byte(byte: u8) -> bool {
    matches!(byte, b'%' | b'|' | b'_' | b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z')
}

fn check(
    text: &str,
    kind: &'static str,
    max: usize,
    allowed: fn(u8) -> bool,
) -> Result<(), NameError> {
    if text.trim().is_empty() {
        return Err(NameError::Blank { kind });
    }
    if text.len() > max {
        return Err(NameError::TooLong { kind, max });
    }
    if !text.bytes().all(allowed) {
        return Err(NameError::IllegalCharacter { kind });
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $max:expr, $allowed:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `text` and keeps it.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                check(text, $kind, $max, $allowed)?;
                Ok(Self(text.into()))
            }

            /// Checks without keeping: for paths where the name is only looked up.
            pub fn check(text: &str) -> Result<(), NameError> {
                check(text, $kind, $max, $allowed)
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl std::str::FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }
    };
}

/// `+` stands only in the second form of pop retry topics, which brokers make themselves.
const fn is_topic_byte(byte: u8) -> bool {
    is_name_byte(byte) || byte == b'+'
}

/// Cluster and broker names may also hold dots (host names are common), but never start a path.
const fn is_broker_byte(byte: u8) -> bool {
    is_name_byte(byte) || byte == b'.'
}

name!(
    /// A topic, system-made names included; what clients may create is narrower:
    /// [`TopicName::parse_for_client`].
    TopicName, "topic", limits::TOPIC_BYTES_HARD_MAX, is_topic_byte
);
name!(
    /// A producer or consumer group.
    GroupName, "group", limits::TOPIC_BYTES_HARD_MAX, is_name_byte
);
name!(
    /// A broker group's name, as in routes.
    BrokerName, "broker name", limits::BROKER_NAME_BYTES_MAX, is_broker_byte
);
name!(
    /// A cluster's name.
    ClusterName, "cluster name", limits::BROKER_NAME_BYTES_MAX, is_broker_byte
);

impl TopicName {
    /// What `TopicValidator.validateTopic` lets a client create or send to: no `+`, at most 127
    /// bytes, or 255 with the `%RETRY%` and `%DLQ%` prefixes.
    pub fn parse_for_client(text: &str) -> Result<Self, NameError> {
        Self::check_for_client(text)?;
        Ok(Self(text.into()))
    }

    /// As [`TopicName::parse_for_client`], without keeping the text.
    pub fn check_for_client(text: &str) -> Result<(), NameError> {
        let own = text.starts_with(crate::system::RETRY_PREFIX)
            || text.starts_with(crate::system::DLQ_PREFIX);
        let max = if own {
            limits::TOPIC_BYTES_HARD_MAX
        } else {
            limits::TOPIC_BYTES_MAX
        };
        check(text, "topic", max, is_name_byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_like_topics_are_refused() {
        for text in [
            "../../x", "a/b", "..", ".", "a\\b", "%2e%2e/x", "a b", "a.b", "主题", "a\0",
        ] {
            assert!(TopicName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn percent_escapes_are_kept_as_they_are() {
        assert_eq!(TopicName::parse("%2e%2e").unwrap().as_str(), "%2e%2e");
    }

    #[test]
    fn a_client_may_use_127_bytes_and_retry_topics_255() {
        assert!(TopicName::parse_for_client(&"t".repeat(127)).is_ok());
        assert!(TopicName::parse_for_client(&"t".repeat(128)).is_err());
        assert!(TopicName::parse_for_client(&format!("%RETRY%{}", "g".repeat(200))).is_ok());
        assert!(TopicName::parse_for_client("g+t").is_err());
    }

    #[test]
    fn blank_and_empty_names_say_which_kind_is_missing() {
        assert_eq!(
            GroupName::parse(" "),
            Err(NameError::Blank { kind: "group" })
        );
    }

    #[test]
    fn broker_names_may_hold_dots_but_no_slash() {
        assert!(BrokerName::parse("broker-0.host").is_ok());
        assert!(BrokerName::parse("a/b").is_err());
    }
}
