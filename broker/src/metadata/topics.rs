//! Rules for the settings of a topic: queue counts, permission, attributes.

use std::collections::BTreeMap;

use rmq_protocol::body::TopicConfig;
use rmq_types::limits;

/// What is wrong with settings that a client asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TopicProblem {
    /// Not a permission.
    #[error("perm {0} is illegal: 2, 4 or 6, plus 1 to let other topics inherit")]
    Perm(i32),
    /// Too many or a negative number of queues.
    #[error("{which} {count} is out of 0..={max}")]
    Queues {
        /// Which of the two counts.
        which: &'static str,
        /// What was asked.
        count: i32,
        /// The limit.
        max: u32,
    },
    /// The text is no list of `+key=value` and `-key`.
    #[error("attribute {0:?} is neither +key=value nor -key")]
    Syntax(String),
    /// No such attribute.
    #[error("unsupported attribute: {0}")]
    UnknownAttribute(String),
    /// The value is none of the attribute's.
    #[error("attribute {key} can not be {value:?}")]
    AttributeValue {
        /// The attribute.
        key: String,
        /// What was asked.
        value: String,
    },
    /// The attribute is set once and for all.
    #[error("attempt to update an unchangeable attribute: {0}")]
    Unchangeable(String),
    /// The same attribute stands twice.
    #[error("key duplication: {0}")]
    Duplicate(String),
    /// `-key` of an attribute that is not set, or while the topic is made.
    #[error("attempt to delete a nonexistent key: {0}")]
    Missing(String),
}

/// Checks counts and permission of a topic that a client wants to create or change.
pub(crate) fn check_settings(topic: &TopicConfig) -> Result<(), TopicProblem> {
    if !matches!(topic.perm & !1, 2 | 4 | 6) || !(0..8).contains(&topic.perm) {
        return Err(TopicProblem::Perm(topic.perm));
    }
    for (which, count) in [
        ("readQueueNums", topic.read_queue_nums),
        ("writeQueueNums", topic.write_queue_nums),
    ] {
        if u32::try_from(count).is_ok_and(|count| count <= limits::QUEUES_MAX) {
            continue;
        }
        return Err(TopicProblem::Queues {
            which,
            count,
            max: limits::QUEUES_MAX,
        });
    }
    Ok(())
}

struct Rule {
    key: &'static str,
    changeable: bool,
    allowed: fn(&str) -> bool,
}

const RULES: [Rule; 4] = [
    Rule {
        key: "queue.type",
        changeable: false,
        allowed: |v| matches!(v, "SimpleCQ" | "BatchCQ"),
    },
    Rule {
        key: "cleanup.policy",
        changeable: false,
        allowed: |v| matches!(v, "DELETE" | "COMPACTION"),
    },
    Rule {
        key: "message.type",
        changeable: true,
        allowed: |v| {
            matches!(
                v,
                "UNSPECIFIED" | "NORMAL" | "FIFO" | "DELAY" | "TRANSACTION" | "MIXED"
            )
        },
    },
    Rule {
        key: "reserve.time",
        changeable: true,
        allowed: |v| v.parse::<i64>().is_ok_and(|time| time >= -1),
    },
];

/// Applies `+key=value,-key` to the attributes in force; `None` stands for a new topic.
pub(crate) fn check_attributes(
    text: &str,
    current: Option<&BTreeMap<String, String>>,
) -> Result<BTreeMap<String, String>, TopicProblem> {
    let mut next = current.cloned().unwrap_or_default();
    let mut seen: Vec<&str> = Vec::new();
    for item in text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        let (key, value) = match (item.strip_prefix('+'), item.strip_prefix('-')) {
            (Some(pair), _) => {
                let (key, value) = pair
                    .split_once('=')
                    .ok_or_else(|| TopicProblem::Syntax(item.to_owned()))?;
                (key, Some(value))
            }
            (None, Some(key)) => (key, None),
            (None, None) => return Err(TopicProblem::Syntax(item.to_owned())),
        };
        if seen.contains(&key) {
            return Err(TopicProblem::Duplicate(key.to_owned()));
        }
        seen.push(key);
        let rule = RULES
            .iter()
            .find(|rule| rule.key == key)
            .ok_or_else(|| TopicProblem::UnknownAttribute(key.to_owned()))?;
        let same = value.is_some() && next.get(key).map(String::as_str) == value;
        if current.is_some() && !rule.changeable && !same {
            return Err(TopicProblem::Unchangeable(key.to_owned()));
        }
        match value {
            Some(value) if (rule.allowed)(value) => {
                next.insert(key.to_owned(), value.to_owned());
            }
            Some(value) => {
                return Err(TopicProblem::AttributeValue {
                    key: key.to_owned(),
                    value: value.to_owned(),
                });
            }
            None => {
                next.remove(key)
                    .ok_or_else(|| TopicProblem::Missing(key.to_owned()))?;
            }
        }
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn permissions_and_queue_counts_out_of_range_are_refused() {
        for perm in [0, 1, 8, -1] {
            let topic = TopicConfig {
                perm,
                ..TopicConfig::named("t")
            };
            assert_eq!(check_settings(&topic), Err(TopicProblem::Perm(perm)));
        }
        for perm in [2, 4, 6, 7] {
            assert!(
                check_settings(&TopicConfig {
                    perm,
                    ..TopicConfig::named("t")
                })
                .is_ok()
            );
        }
        for count in [-1, 100_000] {
            let topic = TopicConfig {
                read_queue_nums: count,
                ..TopicConfig::named("t")
            };
            assert!(check_settings(&topic).is_err());
        }
    }

    #[test]
    fn no_attributes_leave_those_in_force_alone() {
        let current = map(&[("message.type", "FIFO")]);
        assert_eq!(check_attributes("", Some(&current)).unwrap(), current);
    }

    #[test]
    fn bad_attribute_lists_are_refused() {
        let current = map(&[]);
        for text in [
            "+message.type=BAD",
            "-message.type",
            "+a=1",
            "message.type=FIFO",
            "+x",
            "+message.type=FIFO,-message.type",
            "+queue.type=BatchCQ",
        ] {
            assert!(check_attributes(text, Some(&current)).is_err(), "{text}");
        }
        assert!(check_attributes("+queue.type=BatchCQ", None).is_ok());
        assert!(check_attributes("+message.type=FIFO", Some(&current)).is_ok());
    }
}
