//! How far each group is behind in each topic, for the page.
//!
//! **Invariant:** a group that does not share messages (broadcasting) has no series, since its
//! members keep their own progress; neither has one that was deleted, nor what is left of a
//! subscription that was given up. Topic by topic: no table is copied whole, nor locked for long.

use std::collections::{BTreeSet, HashMap};

use rmq_protocol::body::MessageModel;

use crate::{
    core::{Core, lock},
    metadata::QueueProgress,
    session::Subscribed,
};

/// One group in one topic.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lag {
    /// The topic.
    pub(crate) topic: Box<str>,
    /// The group.
    pub(crate) group: Box<str>,
    /// Messages not yet committed.
    pub(crate) behind: i64,
    /// Age of the oldest of them in ms.
    pub(crate) behind_millis: i64,
    /// Messages that were given out and not yet committed.
    pub(crate) inflight: i64,
    /// Messages not yet given out.
    pub(crate) ready: i64,
    /// Age of the oldest of them in ms.
    pub(crate) ready_millis: i64,
}

/// Of every group that has progress or is online.
pub(crate) fn all(core: &Core) -> Vec<Lag> {
    let online: HashMap<String, Subscribed> = lock(&core.consumers).subscribed().collect();
    let mut lags = Vec::new();
    let mut seen: BTreeSet<(Box<str>, Box<str>)> = BTreeSet::new();
    for topic in core.offsets.topics() {
        if !core.topics.contains(&topic) {
            continue;
        }
        for (group, queues) in core.offsets.progress_in(&topic) {
            let wanted = match online.get(&*group) {
                Some(of) => {
                    of.model != MessageModel::Broadcasting
                        && (of.topics.is_empty() || of.topics.contains(&*topic))
                }
                None => core.groups.contains(&group),
            };
            if wanted {
                lags.push(of_queues(core, &topic, &group, &queues));
                seen.insert((topic.clone(), group));
            }
        }
    }
    for (group, of) in online {
        if of.model == MessageModel::Broadcasting {
            continue;
        }
        for topic in of.topics {
            let key = (topic.into_boxed_str(), group.clone().into_boxed_str());
            if core.topics.contains(&key.0) && !seen.contains(&key) {
                // As in Java a group that never committed is behind by nothing.
                lags.push(of_queues(core, &key.0, &key.1, &[]));
            }
        }
    }
    lags.sort_by(|one, other| (&one.topic, &one.group).cmp(&(&other.topic, &other.group)));
    lags
}

fn of_queues(core: &Core, topic: &str, group: &str, queues: &[(i32, QueueProgress)]) -> Lag {
    let mut lag = Lag {
        topic: topic.into(),
        group: group.into(),
        behind: 0,
        behind_millis: 0,
        inflight: 0,
        ready: 0,
        ready_millis: 0,
    };
    let popped = core.pops.of_group(topic, group);
    for (queue, progress) in queues {
        let Ok(queue) = u32::try_from(*queue) else {
            continue;
        };
        let Some(end) = core.store.max_queue_offset(topic, queue) else {
            continue;
        };
        let start = core.store.min_queue_offset(topic, queue).unwrap_or(0);
        let place = Place::of(*progress, (start, end));
        let popped = popped.iter().find(|one| one.queue == queue);
        let (inflight, ready) = match popped {
            Some(one) => (one.in_flight, one.ready(progress.committed, end)),
            None => (place.given - place.committed, end - place.given),
        };
        lag.behind += inflight + ready;
        lag.inflight += inflight;
        lag.ready += ready;
        let place = match popped {
            Some(one) => one.place(place, end),
            None => place,
        };
        let age = |from: i64| {
            let oldest = (from < end).then(|| core.store.store_time_of(topic, queue, from));
            oldest.flatten().map_or(0, |at| core.now().since(at).max(0))
        };
        lag.behind_millis = lag.behind_millis.max(age(place.committed));
        lag.ready_millis = lag.ready_millis.max(if place.given == place.committed {
            age(place.committed)
        } else {
            age(place.given)
        });
    }
    lag
}

/// Where a group stands in a queue: `committed` ≤ `given` ≤ the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Consumed below this.
    pub(crate) committed: i64,
    /// Given out below this.
    pub(crate) given: i64,
}

impl Place {
    /// What was expired counts as consumed; a commit is also a pull, since the note of pulls does
    /// not live as long as that of commits.
    fn of(progress: QueueProgress, (start, end): (i64, i64)) -> Self {
        let inside = |offset: i64| offset.clamp(start.min(end), end);
        let committed = progress.committed.or(progress.pulled).map_or(end, inside);
        let given = progress.pulled.map_or(committed, inside).max(committed);
        Self { committed, given }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(committed: Option<i64>, pulled: Option<i64>) -> (i64, i64) {
        let place = Place::of(QueueProgress { committed, pulled }, (2, 10));
        (place.committed, place.given)
    }

    #[test]
    fn a_place_is_what_was_committed_and_what_was_given_out_since() {
        assert_eq!(place(Some(4), Some(6)), (4, 6));
        // After a restart only commits are known.
        assert_eq!(place(Some(4), None), (4, 4));
        // A group that never committed is behind by nothing, as in Java.
        assert_eq!(place(None, None), (10, 10));
        assert_eq!(place(None, Some(6)), (6, 6));
        // The retention took what it had not read.
        assert_eq!(place(Some(0), Some(0)), (2, 2));
        // A reset put it back behind what it had pulled: that is not in flight.
        assert_eq!(place(Some(9), Some(3)), (9, 9));
    }

    proptest! {
        #[test]
        fn no_figure_is_ever_below_zero(
            committed in proptest::option::of(-5i64..30), pulled in proptest::option::of(-5i64..30),
            start in 0i64..20, length in 0i64..20,
        ) {
            let end = start + length;
            let place = Place::of(QueueProgress { committed, pulled }, (start, end));
            prop_assert!(start <= place.committed);
            prop_assert!(place.committed <= place.given && place.given <= end);
        }
    }
}
