//! The topics a broker makes at its start (`TopicConfigManager.init`).

use rmq_protocol::body::TopicConfig;
use rmq_types::system;

use crate::config::Settings;

/// May be read.
pub(crate) const PERM_READ: i32 = 4;
/// May be written.
pub(crate) const PERM_WRITE: i32 = 2;
/// Other topics may inherit its settings.
pub(crate) const PERM_INHERIT: i32 = 1;

/// Queues of the schedule topic: one per delay level.
const SCHEDULE_QUEUES: i32 = 18;
/// Queues of the pop revive topic.
const REVIVE_QUEUES: i32 = 8;

/// All system topics of a broker with these settings.
#[must_use]
pub(crate) fn system_topics(settings: &Settings) -> Vec<TopicConfig> {
    let cluster = &settings.broker_cluster_name;
    let broker = &settings.broker_name;
    let inherit = |usable: bool| PERM_INHERIT | if usable { PERM_READ | PERM_WRITE } else { 0 };
    let plain = PERM_READ | PERM_WRITE;
    let mut topics = vec![
        topic(system::SELF_TEST_TOPIC, 1, plain),
        topic(system::BENCHMARK_TOPIC, 1024, plain),
        topic(cluster, 16, inherit(settings.cluster_topic_enable)),
        topic(broker, 1, inherit(settings.broker_topic_enable)),
        topic(system::OFFSET_MOVED_TOPIC, 1, plain),
        topic(system::SCHEDULE_TOPIC, SCHEDULE_QUEUES, plain),
        topic(
            &format!("{cluster}{}", system::REPLY_TOPIC_SUFFIX),
            1,
            plain,
        ),
        topic(
            &format!("{}{cluster}", system::REVIVE_TOPIC_PREFIX),
            REVIVE_QUEUES,
            plain,
        ),
        topic(
            &format!("{}{broker}", system::SYNC_MEMBER_TOPIC_PREFIX),
            1,
            PERM_INHERIT,
        ),
        topic(system::TRANS_HALF_TOPIC, 1, plain),
        topic(system::TRANS_OP_HALF_TOPIC, 1, plain),
        topic(system::TIMER_TOPIC, 1, plain),
    ];
    if settings.auto_create_topic_enable {
        let queues = settings.default_topic_queue_nums.get() as i32;
        topics.push(topic(system::AUTO_CREATE_TOPIC, queues, inherit(true)));
    }
    if settings.trace_topic_enable {
        topics.push(topic(&settings.msg_trace_topic_name, 1, plain));
    }
    topics
}

fn topic(name: &str, queues: i32, perm: i32) -> TopicConfig {
    TopicConfig {
        read_queue_nums: queues,
        write_queue_nums: queues,
        perm,
        ..TopicConfig::named(name)
    }
}
