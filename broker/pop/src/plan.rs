//! Which queues a pop looks at, and in which order.
//!
//! **Invariant:** every queue that the pop may read is named once. Ordered pops never read retry
//! topics. Chance comes in as a number, so the same number gives the same order.

use rmq_types::pop::PopTopic;

/// A pop, and what there is to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanAsk {
    /// The queue asked for; `None` for every queue (−1 on the wire).
    pub queue: Option<u32>,
    /// Whether the group consumes in order.
    pub order: bool,
    /// Read queues of the topic.
    pub queues: u32,
    /// Read queues of the group's retry topic of the first form; 0 if there is none.
    pub retry_v1_queues: u32,
    /// Read queues of the one of the second form; 0 if there is none.
    pub retry_v2_queues: u32,
    /// How many pops of a hundred look at retry topics first (`popFromRetryProbability`).
    pub retry_percent: u32,
    /// Any number, evenly spread.
    pub random: u32,
}

/// One queue to pop from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// In which topic.
    pub topic: PopTopic,
    /// The queue.
    pub queue: u32,
}

/// The queues to look at until the pop has enough: retry topics first in `retry_percent` of all
/// pops, or else last; every queue beginning at a random one; of two retry topics either is first
/// in half of the pops.
pub fn plan(ask: PlanAsk) -> impl Iterator<Item = Source> {
    let chance = ask.random % 100;
    let first = chance < ask.retry_percent;
    let start = ask.random / 100;
    let retry = retry_sources(ask, start);
    let (before, after) = if first {
        (Some(retry), None)
    } else {
        (None, Some(retry))
    };
    let normal = normal_sources(ask, start);
    before
        .into_iter()
        .flatten()
        .chain(normal)
        .chain(after.into_iter().flatten())
}

fn normal_sources(ask: PlanAsk, start: u32) -> impl Iterator<Item = Source> {
    let one = ask.queue.filter(|&queue| queue < ask.queues);
    let all = if ask.queue.is_none() { ask.queues } else { 0 };
    one.into_iter().chain(ring(start, all)).map(|queue| Source {
        topic: PopTopic::Normal,
        queue,
    })
}

fn retry_sources(ask: PlanAsk, start: u32) -> impl Iterator<Item = Source> {
    let of = move |topic, queues| ring(start, queues).map(move |queue| Source { topic, queue });
    let v1 = (PopTopic::RetryV1, ask.retry_v1_queues);
    let v2 = (PopTopic::RetryV2, ask.retry_v2_queues);
    let mut pair = if ask.random.is_multiple_of(2) {
        [v1, v2]
    } else {
        [v2, v1]
    };
    if ask.order {
        pair = [(PopTopic::RetryV1, 0), (PopTopic::RetryV2, 0)];
    }
    pair.into_iter()
        .flat_map(move |(topic, queues)| of(topic, queues))
}

fn ring(start: u32, queues: u32) -> impl Iterator<Item = u32> {
    let start = start.checked_rem(queues).unwrap_or(0);
    (start..queues).chain(0..start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const ASK: PlanAsk = PlanAsk {
        queue: None,
        order: false,
        queues: 4,
        retry_v1_queues: 1,
        retry_v2_queues: 1,
        retry_percent: 20,
        random: 0,
    };

    fn kinds(ask: PlanAsk) -> Vec<PopTopic> {
        plan(ask).map(|source| source.topic).collect()
    }

    #[test]
    fn twenty_pops_of_a_hundred_look_at_retry_topics_first_and_all_look_at_them() {
        let mut first = 0;
        for random in 0..1000 {
            let kinds = kinds(PlanAsk { random, ..ASK });
            first += usize::from(kinds[0].is_retry());
            assert_eq!(kinds.iter().filter(|kind| kind.is_retry()).count(), 2);
        }
        assert_eq!(first, 200);
    }

    #[test]
    fn every_queue_is_named_once_and_each_is_first_equally_often() {
        let mut first = [0; 4];
        for random in 0..8000 {
            let queues: Vec<u32> = plan(PlanAsk { random, ..ASK })
                .filter(|source| !source.topic.is_retry())
                .map(|source| source.queue)
                .collect();
            assert_eq!(queues.iter().collect::<BTreeSet<_>>().len(), 4);
            assert_eq!(queues.len(), 4);
            first[queues[0] as usize] += 1;
        }
        assert_eq!(first, [2000; 4]);
    }

    #[test]
    fn ordered_pops_read_no_retry_topic_and_a_queue_that_was_taken_away_is_not_read() {
        let ordered = PlanAsk { order: true, ..ASK };
        assert!(kinds(ordered).iter().all(|kind| !kind.is_retry()));
        let gone = PlanAsk {
            queue: Some(4),
            ..ASK
        };
        assert!(kinds(gone).iter().all(|kind| kind.is_retry()));
        let one = PlanAsk {
            queue: Some(3),
            retry_v1_queues: 0,
            retry_v2_queues: 0,
            random: 99,
            ..ASK
        };
        assert_eq!(
            plan(one).map(|source| source.queue).collect::<Vec<_>>(),
            [3]
        );
    }

    #[test]
    fn a_topic_without_queues_gives_an_empty_plan() {
        let none = PlanAsk {
            queues: 0,
            retry_v1_queues: 0,
            retry_v2_queues: 0,
            ..ASK
        };
        assert_eq!(plan(none).count(), 0);
    }
}
