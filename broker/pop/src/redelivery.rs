//! Where a message goes whose invisible time is over, and when a failed copy is tried again.
//!
//! **Invariant:** a message has one delivery and `retry_max` redeliveries; after those it goes to
//! the dead-letter topic. A copy that fails is tried for ever: nothing is dropped for trying.

use rmq_types::{
    pop::PopTopic,
    system::{RETRY_PREFIX, dlq_topic},
};

/// Waits after failed copies, seconds; the last one stays.
const AGAIN_AFTER_SECONDS: [u64; 8] = [1, 2, 5, 10, 20, 30, 60, 120];

/// How a group retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRule {
    /// Redeliveries before the dead-letter topic; `None`: never there.
    pub max: Option<u32>,
    /// Whether retry topics get the second form of name (`enableRetryTopicV2`).
    pub v2: bool,
}

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Queue 0 of the retry topic, with the reconsume count given.
    Retry {
        /// The topic.
        topic: String,
        /// `reconsumeTimes` of the copy.
        reconsume_times: u32,
    },
    /// The group's dead-letter topic.
    DeadLetter {
        /// The topic.
        topic: String,
    },
}

/// `retryMaxTimes` of a group as a limit: below zero there is none.
#[must_use]
pub fn retry_max(retry_max_times: i32) -> Option<u32> {
    u32::try_from(retry_max_times).ok()
}

/// Where a message goes that lies in `stored_topic` and was redelivered `reconsume_times` before.
#[must_use]
pub fn destination(
    group: &str,
    stored_topic: &str,
    reconsume_times: u32,
    rule: RetryRule,
) -> Destination {
    if rule.max.is_some_and(|max| reconsume_times >= max) {
        let topic = dlq_topic(group);
        return Destination::DeadLetter { topic };
    }
    let form = if rule.v2 {
        PopTopic::RetryV2
    } else {
        PopTopic::RetryV1
    };
    let topic = if stored_topic.starts_with(RETRY_PREFIX) {
        stored_topic.to_owned()
    } else {
        form.stored_topic(stored_topic, group)
    };
    Destination::Retry {
        topic,
        reconsume_times: reconsume_times.saturating_add(1),
    }
}

/// How long a copy waits after this many failures before it is tried again, ms.
pub(crate) fn again_after_millis(failures: u8) -> u64 {
    let last = AGAIN_AFTER_SECONDS.len() - 1;
    AGAIN_AFTER_SECONDS[usize::from(failures).min(last)] * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_two_retries_the_third_expiry_goes_to_the_dead_letter_topic() {
        let rule = RetryRule {
            max: retry_max(2),
            v2: false,
        };
        let retry = |reconsume_times| Destination::Retry {
            topic: "%RETRY%g_t".into(),
            reconsume_times,
        };
        assert_eq!(destination("g", "t", 0, rule), retry(1));
        assert_eq!(destination("g", "%RETRY%g_t", 1, rule), retry(2));
        let dead = Destination::DeadLetter {
            topic: "%DLQ%g".into(),
        };
        assert_eq!(destination("g", "%RETRY%g_t", 2, rule), dead);
        assert_eq!(destination("g", "%RETRY%g_t", 9, rule), dead);
    }

    #[test]
    fn a_message_of_a_retry_topic_stays_in_the_form_it_has() {
        let rule = RetryRule {
            max: None,
            v2: true,
        };
        let topic = |stored| match destination("g", stored, 7, rule) {
            Destination::Retry { topic, .. } | Destination::DeadLetter { topic } => topic,
        };
        assert_eq!(topic("t"), "%RETRY%g+t");
        assert_eq!(topic("%RETRY%g_t"), "%RETRY%g_t");
    }

    #[test]
    fn a_limit_below_zero_is_none_and_zero_allows_no_redelivery() {
        assert_eq!(retry_max(-1), None);
        let rule = RetryRule {
            max: retry_max(0),
            v2: false,
        };
        assert!(matches!(
            destination("g", "t", 0, rule),
            Destination::DeadLetter { .. }
        ));
    }
}
