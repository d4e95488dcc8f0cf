//! Sharing a topic's queues among the members of a group: the asker's share (400), pull or pop
//! (401), the table of modes (402).
//!
//! The shares themselves are computed by pure functions. **Invariant:** members that see the same
//! members and queues get shares that do not overlap and leave no queue out.

use std::sync::Arc;

use rmq_protocol::body::{
    MessageModel, MessageQueue, MessageQueueAssignment, MessageRequestMode, QueryAssignmentRequest,
    QueryAssignmentResponse, SetMessageRequestMode,
};
use rmq_types::{TopicName, system};

use super::body_of;
use crate::{
    answer::{Answer, Failure, success},
    config::{RequestMode, Settings},
    core::{Core, lock},
    handler::Call,
};

/// Queue number that stands for all queues of a broker under pop.
const ALL_QUEUES: i32 = -1;

/// How queues are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// Neighbouring queues stay together.
    Average,
    /// Queues are dealt one by one.
    Circle,
}

impl Sharing {
    fn from_strategy(name: &str) -> Option<Self> {
        match name {
            "AVG" => Some(Self::Average),
            "AVG_BY_CIRCLE" => Some(Self::Circle),
            _ => None,
        }
    }

    /// The queues of member `index` of `members`.
    fn share(self, queues: &[MessageQueue], index: usize, members: usize) -> Vec<MessageQueue> {
        match self {
            Self::Circle => queues
                .iter()
                .skip(index)
                .step_by(members.max(1))
                .cloned()
                .collect(),
            Self::Average => {
                let (each, more) = (queues.len() / members.max(1), queues.len() % members.max(1));
                let (start, count) = if index < more {
                    (index * (each + 1), each + 1)
                } else {
                    (index * each + more, each)
                };
                queues.iter().skip(start).take(count).cloned().collect()
            }
        }
    }
}

/// Code 400.
pub(super) fn query(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let what = "topic, consumerGroup, clientId, strategyName, messageModel";
    let asked = QueryAssignmentRequest::from_json(body_of(call, what)?)?;
    for (name, value) in [
        ("topic", &asked.topic),
        ("consumerGroup", &asked.consumer_group),
        ("clientId", &asked.client_id),
    ] {
        if value.trim().is_empty() {
            return Err(Failure::system(format!(
                "the field {name} of the body is empty"
            )));
        }
    }
    TopicName::check(&asked.topic)?;
    let settings = core.settings.get();
    let mode = mode_of(core, &settings, &asked);
    let share = share_of(core, &settings, &asked, &mode);
    let assignments = share.map(|queues| {
        let assigned = |message_queue| MessageQueueAssignment {
            attachments: None,
            message_queue,
            mode: mode.mode,
        };
        queues.into_iter().map(assigned).collect()
    });
    let body = QueryAssignmentResponse {
        message_queue_assignments: assignments,
    };
    Ok(success().with_body(body.to_json()))
}

/// What was set for the topic and group, else the broker's default; retry topics are pulled.
fn mode_of(
    core: &Core,
    settings: &Settings,
    asked: &QueryAssignmentRequest,
) -> SetMessageRequestMode {
    if let Some(mode) = core.modes.get(&asked.topic, &asked.consumer_group) {
        return mode;
    }
    let is_pop = settings.default_message_request_mode == RequestMode::Pop
        && !asked.topic.starts_with(system::RETRY_PREFIX);
    SetMessageRequestMode {
        consumer_group: asked.consumer_group.clone(),
        mode: if is_pop {
            MessageRequestMode::Pop
        } else {
            MessageRequestMode::Pull
        },
        pop_share_queue_num: if is_pop {
            settings.default_pop_share_queue_num.get() as i32
        } else {
            0
        },
        topic: asked.topic.clone(),
    }
}

/// `None`: nothing can be said, the client keeps what it has.
fn share_of(
    core: &Core,
    settings: &Settings,
    asked: &QueryAssignmentRequest,
    mode: &SetMessageRequestMode,
) -> Option<Vec<MessageQueue>> {
    let all = if asked.topic.starts_with(system::LMQ_PREFIX) {
        let broker_name = core.identity.name.to_string();
        Arc::new(vec![MessageQueue {
            broker_name,
            queue_id: 0,
            topic: asked.topic.clone(),
        }])
    } else {
        core.routes.queues(core, &asked.topic)?
    };
    match asked.message_model {
        MessageModel::Broadcasting => return Some(all.to_vec()),
        MessageModel::LiteSelective => return None,
        MessageModel::Clustering if !settings.server_load_balancer_enable => {
            return Some(all.to_vec());
        }
        MessageModel::Clustering => {}
    }
    let members = lock(&core.consumers).client_ids(&asked.consumer_group);
    let strategy = Sharing::from_strategy(&asked.strategy_name)?;
    if members.is_empty() || all.is_empty() {
        return None;
    }
    let index = members.iter().position(|id| *id == asked.client_id);
    Some(match mode.mode {
        MessageRequestMode::Pop => shared_by_pop(
            strategy,
            &all,
            index,
            members.len(),
            mode.pop_share_queue_num,
        ),
        MessageRequestMode::Pull => {
            index.map_or_else(Vec::new, |index| strategy.share(&all, index, members.len()))
        }
    })
}

/// Under pop a queue may be shared with the next `with` members, or with everybody.
fn shared_by_pop(
    strategy: Sharing,
    queues: &[MessageQueue],
    index: Option<usize>,
    members: usize,
    with: i32,
) -> Vec<MessageQueue> {
    let with = usize::try_from(with).unwrap_or(0);
    if with == 0 || with + 1 >= members {
        let mut brokers: Vec<MessageQueue> = queues
            .iter()
            .map(|queue| MessageQueue {
                queue_id: ALL_QUEUES,
                ..queue.clone()
            })
            .collect();
        brokers.dedup();
        return brokers;
    }
    let Some(index) = index else {
        return Vec::new();
    };
    if members > queues.len() {
        return queues
            .get(index % queues.len())
            .cloned()
            .into_iter()
            .collect();
    }
    (index..=index + with)
        .flat_map(|member| strategy.share(queues, member % members, members))
        .collect()
}

/// Code 401.
pub(super) fn set_mode(core: &Arc<Core>, call: &Call<'_>) -> Answer {
    let what = "topic, consumerGroup, mode, popShareQueueNum";
    let mode = SetMessageRequestMode::from_json(body_of(call, what)?)?;
    if mode.topic.starts_with(system::RETRY_PREFIX) {
        return Err(Failure::no_permission(
            "retry topic is not allowed to set mode",
        ));
    }
    core.topic(&mode.topic)?;
    if !core.groups.contains(&mode.consumer_group) {
        return Err(Failure::no_group(&mode.consumer_group));
    }
    core.modes.set(mode)?;
    Ok(success())
}

/// Code 402.
pub(super) fn all_modes(core: &Arc<Core>, _call: &Call<'_>) -> Answer {
    Ok(success().with_body(core.modes.snapshot().to_json()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::Sharing;
    use super::*;

    fn queues(count: i32) -> Vec<MessageQueue> {
        let queue = |queue_id| MessageQueue {
            broker_name: "b".to_owned(),
            queue_id,
            topic: "t".to_owned(),
        };
        (0..count).map(queue).collect()
    }

    fn ids(queues: &[MessageQueue]) -> Vec<i32> {
        queues.iter().map(|queue| queue.queue_id).collect()
    }

    #[test]
    fn shares_are_those_of_the_java_strategies() {
        let all = queues(5);
        let average: Vec<_> = (0..3)
            .map(|index| ids(&Sharing::Average.share(&all, index, 3)))
            .collect();
        assert_eq!(average, [vec![0, 1], vec![2, 3], vec![4]]);
        let circle: Vec<_> = (0..3)
            .map(|index| ids(&Sharing::Circle.share(&all, index, 3)))
            .collect();
        assert_eq!(circle, [vec![0, 3], vec![1, 4], vec![2]]);
    }

    #[test]
    fn under_pop_everybody_may_take_from_everywhere_unless_a_number_is_set() {
        let all = queues(4);
        assert_eq!(
            ids(&shared_by_pop(Sharing::Average, &all, Some(0), 4, -1)),
            [ALL_QUEUES]
        );
        assert_eq!(
            ids(&shared_by_pop(Sharing::Average, &all, Some(3), 4, 1)),
            [3, 0]
        );
        assert_eq!(
            ids(&shared_by_pop(Sharing::Average, &all, Some(5), 6, 1)),
            [1]
        );
    }

    proptest! {
        #[test]
        fn shares_do_not_overlap_and_leave_no_queue_out(
            count in 0i32..70, members in 1usize..20, circle in any::<bool>()
        ) {
            let strategy = if circle { Sharing::Circle } else { Sharing::Average };
            let all = queues(count);
            let mut seen = BTreeSet::new();
            for index in 0..members {
                for queue in strategy.share(&all, index, members) {
                    prop_assert!(seen.insert(queue));
                }
            }
            prop_assert_eq!(seen.len(), all.len());
        }
    }
}
