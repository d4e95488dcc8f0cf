//! Pops that wait: held by group, topic and queue, woken by an arrival, by a redelivery, by an
//! ordered batch that is free again, or by their deadline.
//!
//! **Invariant:** both the pops of one key and all pops together are bounded; one more is refused
//! (`POLLING_FULL`). A pop is given back once: woken, over its time, or cancelled. Waking gives no
//! message away: whoever is woken pops again, so a wake too many costs a look, never a message.

use std::collections::{BTreeMap, BTreeSet};

use rmq_types::{GroupName, Moment, Timestamp, TopicName};

use crate::time::Now;

/// Millis before its end at which a waiting pop is answered.
const ANSWER_AHEAD_MILLIS: i64 = 50;
/// A pop that came this many millis after its end is answered at once.
const LATE_MILLIS: i64 = 500;
/// Waiting pops of one key whose filter an arrival is tried on.
const FILTERS_TRIED: usize = 16;
/// Every so many messages a pop is woken whatever its filter (`popLongPollingForceNotifyInterval`).
const FORCE_EVERY: u64 = 800;

/// Names a waiting pop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PollId(u64);

/// How many pops may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollLimits {
    /// Of one group, topic and queue (`popPollingSize`).
    pub of_key: usize,
    /// Of all (`maxPopPollingSize`).
    pub total: usize,
}

impl Default for PollLimits {
    fn default() -> Self {
        Self {
            of_key: 1024,
            total: 100_000,
        }
    }
}

/// No more pops may wait: `POLLING_FULL`; transient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} pops wait already")]
pub struct PollingFull {
    /// How many, of the key or in all.
    pub waiting: usize,
}

/// What a waiting pop would take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollFilter {
    /// Every message.
    All,
    /// Messages with one of these tag codes.
    Tags(Box<[i64]>),
}

/// What a pop waits for.
#[derive(Clone, Copy, Debug)]
pub struct PollKey<'a> {
    /// The popped topic.
    pub topic: &'a TopicName,
    /// The group.
    pub group: &'a GroupName,
    /// The queue; `None` for every queue.
    pub queue: Option<u32>,
}

/// An arrival in a queue.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The queue.
    pub queue: u32,
    /// The message's offset in it.
    pub offset: u64,
    /// The message's tag code, if known; 0 for none.
    pub tags_code: Option<i64>,
}

/// Until when a pop may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It is over already, or it does not want to wait: `POLLING_TIMEOUT`.
    None,
    /// Until then.
    Until(Moment),
}

/// Until when a pop waits that was born at `born` (client's clock, 0 or less: now) and waits
/// `poll_millis`. A client's clock that is ahead does not make it wait longer than asked.
#[must_use]
pub fn patience(now: Now, born: i64, poll_millis: i64) -> Patience {
    if poll_millis <= 0 {
        return Patience::None;
    }
    let born = Timestamp::from_millis(if born > 0 { born } else { now.wall.millis() });
    let left = born.plus_millis(poll_millis).since(now.wall);
    let left = left.min(poll_millis) - ANSWER_AHEAD_MILLIS;
    if left <= 0 {
        return Patience::None;
    }
    Patience::Until(now.steady.plus_millis(left.unsigned_abs()))
}

/// Whether a pop spent so long on its way that it is answered before anything is looked at.
#[must_use]
pub fn is_late(now: Now, born: i64, poll_millis: i64) -> bool {
    let end = Timestamp::from_millis(born).plus_millis(poll_millis.max(0));
    born > 0 && now.wall.since(end) > LATE_MILLIS
}

#[derive(Debug)]
struct Waiting {
    topic: TopicName,
    group: GroupName,
    queue: Option<u32>,
    deadline: Moment,
}

type Key = BTreeMap<PollId, PollFilter>;

/// All waiting pops of a broker, or of one shard of it.
#[derive(Debug, Default)]
pub struct Polls {
    limits: PollLimits,
    topics: BTreeMap<TopicName, BTreeMap<GroupName, BTreeMap<Option<u32>, Key>>>,
    waiting: BTreeMap<PollId, Waiting>,
    deadlines: BTreeSet<(Moment, PollId)>,
    last: u64,
}

impl Polls {
    /// Nobody waits.
    #[must_use]
    pub fn new(limits: PollLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Holds a pop. The shell looks for messages once more after this, so that one that arrived
    /// meanwhile is not waited for.
    pub fn hold(
        &mut self,
        key: PollKey<'_>,
        deadline: Moment,
        filter: PollFilter,
    ) -> Result<PollId, PollingFull> {
        let (held, total) = (self.held(key), self.waiting.len());
        if held >= self.limits.of_key {
            return Err(PollingFull { waiting: held });
        }
        if total >= self.limits.total {
            return Err(PollingFull { waiting: total });
        }
        self.last += 1;
        let id = PollId(self.last);
        self.topics
            .entry(key.topic.clone())
            .or_default()
            .entry(key.group.clone())
            .or_default()
            .entry(key.queue)
            .or_default()
            .insert(id, filter);
        self.deadlines.insert((deadline, id));
        let waiting = Waiting {
            topic: key.topic.clone(),
            group: key.group.clone(),
            queue: key.queue,
            deadline,
        };
        self.waiting.insert(id, waiting);
        Ok(id)
    }

    /// How many pops wait for this key (`POLLING_INFO`).
    #[must_use]
    pub fn held(&self, key: PollKey<'_>) -> usize {
        let groups = self.topics.get(key.topic);
        let keys = groups.and_then(|groups| groups.get(key.group));
        keys.and_then(|keys| keys.get(&key.queue))
            .map_or(0, Key::len)
    }

    /// How many pops wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no pop waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A message arrived: of each group one pop that waits for every queue and one that waits for
    /// this queue are woken, the longest waiting ones whose filter takes it.
    pub fn arrived(&mut self, arrival: Arrival<'_>, woken: &mut Vec<PollId>) {
        let force = arrival.offset.is_multiple_of(FORCE_EVERY);
        let tags_code = arrival.tags_code.filter(|_| !force);
        let Some(groups) = self.topics.get(arrival.topic) else {
            return;
        };
        let first = woken.len();
        for keys in groups.values() {
            for queue in [None, Some(arrival.queue)] {
                woken.extend(keys.get(&queue).and_then(|key| first_match(key, tags_code)));
            }
        }
        for &id in &woken[first..] {
            self.take(id);
        }
    }

    /// Something other than an arrival makes it worth looking: a redelivery to the group's retry
    /// topic, an ordered batch that is free again (with its queue), or messages left over.
    pub fn wake(&mut self, topic: &str, group: &str, queue: Option<u32>, woken: &mut Vec<PollId>) {
        let groups = self.topics.get(topic);
        let Some(keys) = groups.and_then(|groups| groups.get(group)) else {
            return;
        };
        let any = keys.get(&None).and_then(|key| first_match(key, None));
        let own = queue.and_then(|queue| keys.get(&Some(queue)));
        let own = own.and_then(|key| first_match(key, None));
        // A redelivery is of no queue: those who wait for one queue read retry topics too.
        let other = || keys.values().find_map(|key| first_match(key, None));
        let found = any
            .or(own)
            .or_else(|| queue.is_none().then(other).flatten());
        for id in [found, own.filter(|_| any.is_some())].into_iter().flatten() {
            self.take(id);
            woken.push(id);
        }
    }

    /// Gives back the pops whose time is over.
    pub fn expire(&mut self, now: Moment, woken: &mut Vec<PollId>) {
        while let Some(&(deadline, id)) = self.deadlines.first() {
            if deadline > now {
                return;
            }
            self.take(id);
            woken.push(id);
        }
    }

    /// When the next pop's time is over.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Forgets a pop, whose client is gone; `false` if it was given back before.
    pub fn cancel(&mut self, id: PollId) -> bool {
        self.take(id)
    }

    /// Gives back every pop of a topic that was deleted.
    pub fn drop_topic(&mut self, topic: &str, woken: &mut Vec<PollId>) {
        let groups = self.topics.get(topic).into_iter();
        let keys = groups.flat_map(|groups| groups.values().flat_map(BTreeMap::values));
        let first = woken.len();
        woken.extend(keys.flat_map(Key::keys).copied());
        for &id in &woken[first..] {
            self.take(id);
        }
    }

    fn take(&mut self, id: PollId) -> bool {
        let Some(one) = self.waiting.remove(&id) else {
            return false;
        };
        self.deadlines.remove(&(one.deadline, id));
        if let Some(groups) = self.topics.get_mut(&one.topic) {
            if let Some(keys) = groups.get_mut(&one.group) {
                if let Some(key) = keys.get_mut(&one.queue) {
                    key.remove(&id);
                    if key.is_empty() {
                        keys.remove(&one.queue);
                    }
                }
                if keys.is_empty() {
                    groups.remove(&one.group);
                }
            }
            if groups.is_empty() {
                self.topics.remove(&one.topic);
            }
        }
        true
    }
}

fn first_match(key: &Key, tags_code: Option<i64>) -> Option<PollId> {
    let takes = |filter: &PollFilter| match (filter, tags_code) {
        (PollFilter::All, _) | (_, None) => true,
        (PollFilter::Tags(codes), Some(code)) => codes.contains(&code),
    };
    let mut tried = key.iter().take(FILTERS_TRIED);
    tried.find(|(_, filter)| takes(filter)).map(|(&id, _)| id)
}
