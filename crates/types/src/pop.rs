//! Names of pop consumption: which topic a popped message lies in, retry topics, the revive topic
//! (`KeyBuilder`, `PopAckConstants`).
//!
//! **Invariant:** a name built here from a legal topic and a legal group is a legal topic name.
//! Handles, records and queues are not here: `rmq-protocol` and `rmq-pop` own them.

use crate::system::{RETRY_PREFIX, REVIVE_TOPIC_PREFIX};

/// The group that reads the revive topic.
pub const REVIVE_GROUP: &str = "CID_RMQ_SYS_REVIVE_GROUP";
/// Queues of the revive topic (`reviveQueueNum`).
pub const REVIVE_QUEUES: u32 = 8;
/// The revive queue that stands in handles of ordered pops; no such queue exists.
pub const ORDER_REVIVE_QUEUE: i32 = 999;
/// Most messages of one checkpoint: its bit map has 32 bits.
pub const POP_MESSAGES_MAX: usize = 32;

/// Which of the topics of a group's pop a message lies in: the `t` of handles and offset texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PopTopic {
    /// The topic itself: `0`.
    #[default]
    Normal,
    /// `%RETRY%<group>_<topic>`: `1`.
    RetryV1,
    /// `%RETRY%<group>+<topic>`: `2`.
    RetryV2,
}

impl PopTopic {
    /// The sign in handles and offset texts.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Normal => "0",
            Self::RetryV1 => "1",
            Self::RetryV2 => "2",
        }
    }

    /// The kind that a sign stands for.
    #[must_use]
    pub fn from_sign(sign: &str) -> Option<Self> {
        match sign {
            "0" => Some(Self::Normal),
            "1" => Some(Self::RetryV1),
            "2" => Some(Self::RetryV2),
            _ => None,
        }
    }

    /// The kind of a stored topic.
    #[must_use]
    pub fn of(topic: &str) -> Self {
        match topic.strip_prefix(RETRY_PREFIX) {
            None => Self::Normal,
            Some(rest) if rest.contains('+') => Self::RetryV2,
            Some(_) => Self::RetryV1,
        }
    }

    /// The stored topic of this kind for a group's pop of `topic`.
    #[must_use]
    pub fn stored_topic(self, topic: &str, group: &str) -> String {
        match self {
            Self::Normal => topic.to_owned(),
            Self::RetryV1 => format!("{RETRY_PREFIX}{group}_{topic}"),
            Self::RetryV2 => format!("{RETRY_PREFIX}{group}+{topic}"),
        }
    }

    /// Whether it is a retry topic.
    #[must_use]
    pub const fn is_retry(self) -> bool {
        !matches!(self, Self::Normal)
    }
}

/// The topic that a group popped, given the stored topic; a topic that is no retry topic of the
/// group is returned as it is.
#[must_use]
pub fn popped_topic<'t>(stored: &'t str, group: &str) -> &'t str {
    stored
        .strip_prefix(RETRY_PREFIX)
        .and_then(|rest| rest.strip_prefix(group))
        .and_then(|rest| rest.strip_prefix(['+', '_']))
        .filter(|topic| !topic.is_empty())
        .unwrap_or(stored)
}

/// Group and topic of a retry topic of the second form; the first form cannot be taken apart,
/// since `_` may stand in both names.
#[must_use]
pub fn split_retry_v2(stored: &str) -> Option<(&str, &str)> {
    stored.strip_prefix(RETRY_PREFIX)?.split_once('+')
}

/// The revive topic of a cluster.
#[must_use]
pub fn revive_topic(cluster: &str) -> String {
    format!("{REVIVE_TOPIC_PREFIX}{cluster}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TopicName;

    #[test]
    fn retry_topics_of_both_forms_lead_back_to_the_popped_topic() {
        for kind in [PopTopic::Normal, PopTopic::RetryV1, PopTopic::RetryV2] {
            let stored = kind.stored_topic("my_topic", "my_group");
            assert_eq!(PopTopic::of(&stored), kind);
            assert_eq!(popped_topic(&stored, "my_group"), "my_topic");
            assert_eq!(PopTopic::from_sign(kind.sign()), Some(kind));
            assert!(TopicName::parse(&stored).is_ok());
        }
        assert_eq!(PopTopic::from_sign("3"), None);
    }

    #[test]
    fn only_the_second_form_can_be_taken_apart_without_the_group() {
        assert_eq!(split_retry_v2("%RETRY%g+t"), Some(("g", "t")));
        assert_eq!(split_retry_v2("%RETRY%g_t"), None);
        assert_eq!(split_retry_v2("g+t"), None);
    }

    #[test]
    fn a_topic_that_is_no_retry_topic_of_the_group_stays_as_it_is() {
        for stored in ["t", "%RETRY%other_t", "%RETRY%g", "%RETRY%g_", "%RETRY%gx"] {
            assert_eq!(popped_topic(stored, "g"), stored);
        }
    }

    #[test]
    fn the_longest_legal_names_make_a_legal_retry_topic() {
        let stored = PopTopic::RetryV2.stored_topic(&"t".repeat(127), &"g".repeat(120));
        assert!(TopicName::parse(&stored).is_ok());
    }
}
