//! What a client and the gateway agree on (telemetry's settings).
//!
//! **Invariant:** the client's part is sent back as it came, the gateway's part is set whatever the
//! client wrote there. Sizes of what a client may tell are bounded.

use std::time::Duration;

use rmq_protocol::body::{GroupRetryPolicyType, SubscriptionGroupConfig};

use crate::proto::v2::settings::PubSub;
use crate::proto::v2::{
    ClientType, Code, CustomizedBackoff, ExponentialBackoff, Metric, RetryPolicy, Settings,
    retry_policy::Strategy,
};
use crate::rules::refusal::Refusal;
use crate::rules::{polling, validate};

/// Most topics of a producer or subscriptions of a consumer.
const TOPICS_MAX: usize = 4_096;
/// Most messages of a receive.
pub(crate) const RECEIVE_BATCH_MAX: i32 = 32;
/// A client's request timeout if it names none.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Delays between deliveries where a group has none of its own, in seconds.
const BACKOFF_SECONDS: [u64; 18] = [
    1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200,
];

/// What a group's configuration means to its consumers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupTerms {
    /// Messages of a group come in order.
    pub(crate) fifo: bool,
    /// Deliveries before the dead-letter topic.
    pub(crate) max_attempts: i32,
    backoff: Strategy,
}

impl GroupTerms {
    pub(crate) fn new(group: &SubscriptionGroupConfig) -> Self {
        let policy = &group.group_retry_policy;
        let customized = policy.customized_retry_policy.as_ref();
        let backoff = match policy.kind {
            GroupRetryPolicyType::Exponential => {
                let it = policy.exponential_retry_policy.clone().unwrap_or_default();
                Strategy::ExponentialBackoff(ExponentialBackoff {
                    initial: Some(wire_millis(it.initial)),
                    max: Some(wire_millis(it.max)),
                    multiplier: it.multiplier as f32,
                })
            }
            GroupRetryPolicyType::Customized => Strategy::CustomizedBackoff(CustomizedBackoff {
                next: match customized.filter(|it| !it.next.is_empty()) {
                    Some(it) => it.next.iter().map(|one| wire_millis(*one)).collect(),
                    None => BACKOFF_SECONDS
                        .iter()
                        .map(|one| wire(Duration::from_secs(*one)))
                        .collect(),
                },
            }),
        };
        Self {
            fifo: group.consume_message_orderly,
            max_attempts: group.retry_max_times.saturating_add(1),
            backoff,
        }
    }

    /// The wait before the next delivery of a message that was consumed `consumed` times.
    pub(crate) fn delay(&self, consumed: i32) -> Duration {
        let times = usize::try_from(consumed).unwrap_or(0);
        let wait = match &self.backoff {
            Strategy::CustomizedBackoff(list) => list
                .next
                .get(times)
                .or(list.next.last())
                .and_then(polling::duration),
            Strategy::ExponentialBackoff(it) => {
                let part = |wire: &Option<prost_types::Duration>| {
                    wire.as_ref()
                        .and_then(polling::duration)
                        .unwrap_or_default()
                };
                let factor = f64::from(it.multiplier).powi(times.min(64) as i32);
                let grown = part(&it.initial).as_secs_f64() * factor;
                let max = part(&it.max);
                Some(Duration::try_from_secs_f64(grown).unwrap_or(max).min(max))
            }
        };
        wait.unwrap_or(Duration::from_secs(1))
    }
}

fn wire(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: duration.subsec_nanos().cast_signed(),
    }
}

fn wire_millis(millis: i64) -> prost_types::Duration {
    wire(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
}

/// What a client's settings say to the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Sends to these topics.
    Producer(Vec<String>),
    /// Receives for a group.
    Consumer { group: String, kind: ClientType },
}

/// Checks a client's settings.
pub(crate) fn check(settings: &Settings) -> Result<Role, Refusal> {
    let bad = |text: &str| Refusal::new(Code::BadRequest, text);
    match &settings.pub_sub {
        None => Err(bad("the settings say neither publishing nor subscription")),
        Some(PubSub::Publishing(it)) => {
            if it.topics.len() > TOPICS_MAX {
                return Err(bad("too many topics"));
            }
            let topics = it.topics.iter().map(|one| validate::topic(Some(one)));
            Ok(Role::Producer(topics.collect::<Result<_, _>>()?))
        }
        Some(PubSub::Subscription(it)) => {
            if it.subscriptions.len() > TOPICS_MAX {
                return Err(bad("too many subscriptions"));
            }
            for entry in &it.subscriptions {
                validate::topic(entry.topic.as_ref())?;
            }
            let group = validate::group(it.group.as_ref())?;
            let kind = settings.client_type();
            Ok(Role::Consumer { group, kind })
        }
    }
}

/// The client's request timeout.
pub(crate) fn request_timeout(settings: &Settings) -> Duration {
    let told = settings.request_timeout.as_ref();
    told.and_then(polling::duration)
        .filter(|told| !told.is_zero())
        .unwrap_or(REQUEST_TIMEOUT)
}

/// The settings that go back to a producer.
pub(crate) fn for_producer(mut settings: Settings, body_bytes_max: usize) -> Settings {
    settings.backoff_policy = Some(RetryPolicy {
        max_attempts: 3,
        strategy: Some(Strategy::ExponentialBackoff(ExponentialBackoff {
            initial: Some(wire(Duration::from_millis(10))),
            max: Some(wire(Duration::from_secs(1))),
            multiplier: 2.0,
        })),
    });
    if let Some(PubSub::Publishing(it)) = &mut settings.pub_sub {
        it.max_body_size = i32::try_from(body_bytes_max).unwrap_or(i32::MAX);
        it.validate_message_type = true;
    }
    without_metrics(settings)
}

/// The settings that go back to a consumer.
pub(crate) fn for_consumer(mut settings: Settings, terms: &GroupTerms) -> Settings {
    settings.backoff_policy = Some(RetryPolicy {
        max_attempts: terms.max_attempts,
        strategy: Some(terms.backoff.clone()),
    });
    if let Some(PubSub::Subscription(it)) = &mut settings.pub_sub {
        it.fifo = Some(terms.fifo);
        it.receive_batch_size = Some(RECEIVE_BATCH_MAX);
        it.long_polling_timeout = Some(wire(polling::POLLING_MAX));
    }
    without_metrics(settings)
}

fn without_metrics(mut settings: Settings) -> Settings {
    settings.metric = Some(Metric {
        on: false,
        endpoints: None,
    });
    settings
}

#[cfg(test)]
mod tests {
    use rmq_protocol::body::{CustomizedRetryPolicy, ExponentialRetryPolicy};

    use super::*;
    use crate::proto::v2::{Publishing, Resource, Subscription, SubscriptionEntry};

    fn named(name: &str) -> Resource {
        Resource {
            resource_namespace: String::new(),
            name: name.into(),
        }
    }

    fn consumer(group: &str, topic: &str) -> Settings {
        Settings {
            client_type: Some(ClientType::PushConsumer.into()),
            pub_sub: Some(PubSub::Subscription(Subscription {
                group: Some(named(group)),
                subscriptions: vec![SubscriptionEntry {
                    topic: Some(named(topic)),
                    expression: None,
                }],
                ..Subscription::default()
            })),
            ..Settings::default()
        }
    }

    #[test]
    fn settings_without_a_side_or_with_bad_names_are_refused() {
        let code = |settings: Settings| check(&settings).unwrap_err().code;
        assert_eq!(code(Settings::default()), Code::BadRequest);
        assert_eq!(code(consumer("", "t")), Code::IllegalConsumerGroup);
        assert_eq!(code(consumer("g", "a b")), Code::IllegalTopic);
        let many = Settings {
            pub_sub: Some(PubSub::Publishing(Publishing {
                topics: vec![named("t"); TOPICS_MAX + 1],
                ..Publishing::default()
            })),
            ..Settings::default()
        };
        assert_eq!(code(many), Code::BadRequest);
        let role = check(&consumer("g", "t")).unwrap();
        let kind = ClientType::PushConsumer;
        assert_eq!(
            role,
            Role::Consumer {
                group: "g".into(),
                kind
            }
        );
    }

    #[test]
    fn a_consumer_is_told_the_groups_terms_and_keeps_its_own_words() {
        let mut config = SubscriptionGroupConfig::named("g");
        config.consume_message_orderly = true;
        config.retry_max_times = 3;
        let terms = GroupTerms::new(&config);
        let told = for_consumer(consumer("g", "t"), &terms);
        let policy = told.backoff_policy.unwrap();
        assert_eq!(policy.max_attempts, 4);
        assert!(
            matches!(policy.strategy, Some(Strategy::CustomizedBackoff(list)) if list.next.len() == 18)
        );
        let Some(PubSub::Subscription(sub)) = told.pub_sub else {
            panic!("no subscription");
        };
        assert_eq!((sub.fifo, sub.receive_batch_size), (Some(true), Some(32)));
        assert_eq!(sub.subscriptions.len(), 1);
    }

    #[test]
    fn a_producer_is_told_the_longest_body() {
        let settings = Settings {
            pub_sub: Some(PubSub::Publishing(Publishing::default())),
            ..Settings::default()
        };
        let Some(PubSub::Publishing(it)) = for_producer(settings, 4_096).pub_sub else {
            panic!("no publishing");
        };
        assert_eq!((it.max_body_size, it.validate_message_type), (4_096, true));
    }

    #[test]
    fn delays_follow_the_groups_policy() {
        let mut config = SubscriptionGroupConfig::named("g");
        assert_eq!(GroupTerms::new(&config).delay(0), Duration::from_secs(1));
        assert_eq!(GroupTerms::new(&config).delay(99), Duration::from_hours(2));
        config.group_retry_policy.customized_retry_policy =
            Some(CustomizedRetryPolicy { next: vec![70, -1] });
        assert_eq!(GroupTerms::new(&config).delay(0), Duration::from_millis(70));
        assert_eq!(GroupTerms::new(&config).delay(1), Duration::ZERO);
        config.group_retry_policy.kind = GroupRetryPolicyType::Exponential;
        config.group_retry_policy.exponential_retry_policy =
            Some(ExponentialRetryPolicy::default());
        let terms = GroupTerms::new(&config);
        assert_eq!(terms.delay(2), Duration::from_secs(20));
        assert_eq!(terms.delay(i32::MAX), Duration::from_hours(2));
    }
}
