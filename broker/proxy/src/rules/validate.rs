//! Checks of names and texts that clients send.
//!
//! **Invariant:** what passes is legal for a broker too: no control character reaches a properties
//! text, no system name a broker.

use rmq_types::{GroupName, TopicName, limits, system};

use crate::proto::v2::{Code, Resource};
use crate::rules::refusal::Refusal;

/// Longest message group, this many bytes excluded.
const MESSAGE_GROUP_BYTES: usize = 64;
/// Longest id of a message.
const MESSAGE_ID_BYTES: usize = 255;

fn refuse<T>(code: Code, text: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(code, text))
}

/// A resource's name with its namespace before it, as 4.x clients write it.
fn full_name(resource: Option<&Resource>) -> String {
    match resource {
        None => String::new(),
        Some(one) if one.resource_namespace.is_empty() => one.name.clone(),
        Some(one) => format!("{}%{}", one.resource_namespace, one.name),
    }
}

/// The topic of a request that reads.
pub(crate) fn topic(resource: Option<&Resource>) -> Result<String, Refusal> {
    let name = full_name(resource);
    let illegal = |text: String| Refusal::new(Code::IllegalTopic, text);
    TopicName::check_for_client(&name).map_err(|e| illegal(e.to_string()))?;
    if name.len() > limits::TOPIC_BYTES_MAX && !name.starts_with(system::DLQ_PREFIX) {
        return Err(illegal("the topic's name is too long".to_owned()));
    }
    // Retried messages reach a group through its own topics; the retry topic is the broker's.
    if system::is_system_topic(&name) || name.starts_with(system::RETRY_PREFIX) {
        return Err(illegal(format!("{name} is a topic of the system")));
    }
    Ok(name)
}

/// The topic of a request that writes.
pub(crate) fn topic_to_send(resource: Option<&Resource>) -> Result<String, Refusal> {
    let name = topic(resource)?;
    if name.starts_with(system::DLQ_PREFIX) {
        return refuse(
            Code::IllegalTopic,
            format!("{name} takes dead letters only"),
        );
    }
    Ok(name)
}

/// A consumer group.
pub(crate) fn group(resource: Option<&Resource>) -> Result<String, Refusal> {
    let name = full_name(resource);
    let illegal = |text: String| Refusal::new(Code::IllegalConsumerGroup, text);
    GroupName::check(&name).map_err(|e| illegal(e.to_string()))?;
    if name.len() > limits::GROUP_BYTES_MAX {
        return Err(illegal("the group's name is too long".to_owned()));
    }
    if name.starts_with(system::SYSTEM_GROUP_PREFIX) {
        return Err(illegal(format!("{name} is a group of the system")));
    }
    Ok(name)
}

/// Control characters of Java's `Character.isISOControl`.
pub(crate) fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

/// A tag.
pub(crate) fn tag(tag: &str) -> Result<(), Refusal> {
    if tag.trim().is_empty() {
        return refuse(Code::IllegalMessageTag, "the tag is blank");
    }
    if tag.contains('|') || has_control(tag) {
        return refuse(
            Code::IllegalMessageTag,
            "the tag holds '|' or a control character",
        );
    }
    Ok(())
}

/// A key.
pub(crate) fn key(key: &str) -> Result<(), Refusal> {
    if key.trim().is_empty() || has_control(key) {
        return refuse(
            Code::IllegalMessageKey,
            "a key is blank or holds a control character",
        );
    }
    Ok(())
}

/// A message group.
pub(crate) fn message_group(group: &str) -> Result<(), Refusal> {
    if group.trim().is_empty() || has_control(group) {
        return refuse(
            Code::IllegalMessageGroup,
            "the message group is blank or holds a control character",
        );
    }
    if group.len() >= MESSAGE_GROUP_BYTES {
        let text = format!("the message group has {MESSAGE_GROUP_BYTES} bytes or more");
        return refuse(Code::IllegalMessageGroup, text);
    }
    Ok(())
}

/// A message's id.
pub(crate) fn message_id(id: &str) -> Result<(), Refusal> {
    if id.trim().is_empty() || has_control(id) || id.len() > MESSAGE_ID_BYTES {
        return refuse(
            Code::IllegalMessageId,
            "the message id is blank, too long or holds a control character",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Resource {
        Resource {
            resource_namespace: String::new(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn topics_of_the_system_and_names_that_are_none_are_illegal() {
        for bad in [
            "",
            " ",
            "a/b",
            "../x",
            "TBW102",
            "rmq_sys_x",
            "%RETRY%g",
            "SCHEDULE_TOPIC_XXXX",
            &"t".repeat(128),
        ] {
            let refusal = topic(Some(&named(bad))).unwrap_err();
            assert_eq!(refusal.code, Code::IllegalTopic, "{bad}");
        }
        assert_eq!(topic(None).unwrap_err().code, Code::IllegalTopic);
        assert!(topic(Some(&named(&"t".repeat(127)))).is_ok());
    }

    #[test]
    fn dead_letters_are_read_but_not_sent() {
        let dlq = named("%DLQ%g");
        assert!(topic(Some(&dlq)).is_ok());
        assert!(topic_to_send(Some(&dlq)).is_err());
    }

    #[test]
    fn a_namespace_stands_before_the_name() {
        let resource = Resource {
            resource_namespace: "ns".into(),
            name: "t".into(),
        };
        assert_eq!(topic(Some(&resource)).unwrap(), "ns%t");
    }

    #[test]
    fn groups_of_the_system_and_long_ones_are_illegal() {
        for bad in ["", "CID_RMQ_SYS_TRANS", "a b", &"g".repeat(121)] {
            let refusal = group(Some(&named(bad))).unwrap_err();
            assert_eq!(refusal.code, Code::IllegalConsumerGroup, "{bad}");
        }
        assert!(group(Some(&named(&"g".repeat(120)))).is_ok());
    }

    #[test]
    fn texts_have_their_own_codes() {
        for bad in [" ", "a|b", "a\u{1}"] {
            assert_eq!(tag(bad).unwrap_err().code, Code::IllegalMessageTag);
        }
        assert_eq!(key("\u{2}").unwrap_err().code, Code::IllegalMessageKey);
        let long = "g".repeat(64);
        assert_eq!(
            message_group(&long).unwrap_err().code,
            Code::IllegalMessageGroup
        );
        assert!(message_group(&long[1..]).is_ok());
        assert_eq!(message_id(" ").unwrap_err().code, Code::IllegalMessageId);
    }
}
