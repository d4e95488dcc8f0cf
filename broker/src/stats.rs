//! Counters by name and key, with windows of a minute, an hour and a day (`BrokerStatsManager`).
//!
//! Adding is two atomic adds behind a shared lock; a ticker takes samples every ten seconds.
//! Bounded by the number of topics and groups: deleting one drops its counters.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rmq_protocol::body::{BrokerStatsData, BrokerStatsItem};
use rmq_types::{Timestamp, system};
use rustc_hash::FxHashMap;

use crate::metrics::{MessageType, TopicTraffic};

/// Seconds between two samples.
pub(crate) const SAMPLE_SECONDS: u64 = 10;
const MINUTE_SAMPLES: usize = 6;
const LONG_SAMPLES: usize = 60;
const HOUR_STEP: u64 = 60;
const DAY_STEP: u64 = 360;

macro_rules! names {
    ($($variant:ident = $text:literal,)*) => {
        /// What is counted; the key of each is given in the comment of its Java name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Stat {
            $(#[doc = concat!("`", $text, "`.")] $variant,)*
        }
        const NAMES: &[&str] = &[$($text,)*];
    };
}
names! {
    TopicPutNums = "TOPIC_PUT_NUMS",
    TopicPutSize = "TOPIC_PUT_SIZE",
    GroupGetNums = "GROUP_GET_NUMS",
    GroupGetSize = "GROUP_GET_SIZE",
    SendBackNums = "SNDBCK_PUT_NUMS",
    DlqPutNums = "DLQ_PUT_NUMS",
    GroupAckNums = "GROUP_ACK_NUMS",
    GroupCkNums = "GROUP_CK_NUMS",
    BrokerAckNums = "BROKER_ACK_NUMS",
    BrokerCkNums = "BROKER_CK_NUMS",
    BrokerPutNums = "BROKER_PUT_NUMS",
    BrokerGetNums = "BROKER_GET_NUMS",
    UserPutNums = "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC",
    UserGetNums = "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC",
}

/// Counters of the whole broker: their key is the cluster.
const WHOLE: [Stat; 6] = [
    Stat::BrokerAckNums,
    Stat::BrokerCkNums,
    Stat::BrokerPutNums,
    Stat::BrokerGetNums,
    Stat::UserPutNums,
    Stat::UserGetNums,
];

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: i64,
    value: u64,
    times: u64,
}

#[derive(Debug, Default)]
struct Windows {
    short: VecDeque<Sample>,
    hour: VecDeque<Sample>,
    day: VecDeque<Sample>,
    ticks: u64,
}

/// One counter.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    value: AtomicU64,
    times: AtomicU64,
    windows: Mutex<Windows>,
}

impl Counter {
    /// Adds `value`, `times` times together.
    pub(crate) fn add(&self, value: u64, times: u64) {
        self.value.fetch_add(value, Ordering::Relaxed);
        self.times.fetch_add(times, Ordering::Relaxed);
    }

    /// All since the start.
    #[must_use]
    pub(crate) fn total(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    fn now(&self, at: Timestamp) -> Sample {
        Sample {
            at: at.millis(),
            value: self.value.load(Ordering::Relaxed),
            times: self.times.load(Ordering::Relaxed),
        }
    }

    fn sample(&self, now: Timestamp) {
        let sample = self.now(now);
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let ticks = windows.ticks;
        windows.ticks += 1;
        push(&mut windows.short, sample, LONG_SAMPLES);
        if ticks.is_multiple_of(HOUR_STEP) {
            push(&mut windows.hour, sample, 6);
        }
        if ticks.is_multiple_of(DAY_STEP) {
            push(&mut windows.day, sample, 24);
        }
    }

    /// A second, over the last `samples` samples.
    #[must_use]
    pub(crate) fn per_second(&self, now: Timestamp, samples: usize) -> f64 {
        let windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let from = windows.short.iter().rev().nth(samples.saturating_sub(1));
        item(from.or(windows.short.front()), self.now(now)).tps
    }

    fn data(&self, now: Timestamp) -> BrokerStatsData {
        let windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.now(now);
        let minute = windows
            .short
            .iter()
            .rev()
            .nth(MINUTE_SAMPLES - 1)
            .or(windows.short.front());
        BrokerStatsData {
            stats_minute: item(minute, current),
            stats_hour: item(windows.hour.front(), current),
            stats_day: item(windows.day.front(), current),
        }
    }
}

fn push(window: &mut VecDeque<Sample>, sample: Sample, max: usize) {
    if window.len() >= max {
        window.pop_front();
    }
    window.push_back(sample);
}

fn item(from: Option<&Sample>, to: Sample) -> BrokerStatsItem {
    let from = from.copied().unwrap_or(Sample {
        at: to.at,
        ..Sample::default()
    });
    let sum = to.value.saturating_sub(from.value);
    let times = to.times.saturating_sub(from.times);
    let millis = to.at.saturating_sub(from.at);
    BrokerStatsItem {
        sum: i64::try_from(sum).unwrap_or(i64::MAX),
        tps: if millis > 0 {
            sum as f64 * 1000.0 / millis as f64
        } else {
            0.0
        },
        avgpt: if times > 0 {
            sum as f64 / times as f64
        } else {
            0.0
        },
    }
}

/// Totals at the last two midnights (UTC), for the figures "today" and "yesterday".
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DayMarks {
    day: i64,
    /// Stored and given out until yesterday's midnight.
    pub yesterday_morning: (u64, u64),
    /// Stored and given out until today's midnight.
    pub today_morning: (u64, u64),
}

type Family = RwLock<FxHashMap<Box<str>, Arc<Counter>>>;

fn find_or_make(family: &Family, key: &str) -> Arc<Counter> {
    let found = {
        let map = family.read().unwrap_or_else(PoisonError::into_inner);
        map.get(key).map(Arc::clone)
    };
    found.unwrap_or_else(|| {
        let mut map = family.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(map.entry(key.into()).or_default())
    })
}

/// All counters.
#[derive(Debug)]
pub(crate) struct Stats {
    families: Vec<Family>,
    /// `TOPIC_PUT_NUMS` and `TOPIC_PUT_SIZE` of each topic and more, found at once.
    topics: RwLock<FxHashMap<Box<str>, Arc<TopicTraffic>>>,
    /// Messages stored, also found as `BROKER_PUT_NUMS`.
    pub puts: Arc<Counter>,
    /// Bytes of bodies stored.
    pub put_bytes: Counter,
    /// Messages given out, also found as `BROKER_GET_NUMS`.
    pub gets: Arc<Counter>,
    /// Bytes given out.
    pub get_bytes: Counter,
    /// Messages stored in topics that are not the system's.
    pub user_puts: Arc<Counter>,
    /// Messages given out of such topics.
    pub user_gets: Arc<Counter>,
    /// Reads that found something.
    pub get_found: Counter,
    /// Reads that found nothing.
    pub get_miss: Counter,
    /// Sends that were refused.
    pub put_failures: Counter,
    days: Mutex<DayMarks>,
}

impl Stats {
    /// Counters of a broker; those of the whole broker have its cluster's name for a key, as in Java.
    #[must_use]
    pub(crate) fn new(cluster: &str) -> Self {
        let families: Vec<Family> = NAMES.iter().map(|_| Family::default()).collect();
        let whole = |stat: Stat| find_or_make(&families[stat as usize], cluster);
        let (puts, gets) = (whole(Stat::BrokerPutNums), whole(Stat::BrokerGetNums));
        let (user_puts, user_gets) = (whole(Stat::UserPutNums), whole(Stat::UserGetNums));
        Self {
            families,
            topics: RwLock::default(),
            puts,
            put_bytes: Counter::default(),
            gets,
            user_puts,
            user_gets,
            get_bytes: Counter::default(),
            get_found: Counter::default(),
            get_miss: Counter::default(),
            put_failures: Counter::default(),
            days: Mutex::default(),
        }
    }

    fn family(&self, stat: Stat) -> &Family {
        &self.families[stat as usize]
    }

    /// The counter of a key, made when needed.
    #[must_use]
    pub(crate) fn counter(&self, stat: Stat, key: &str) -> Arc<Counter> {
        find_or_make(self.family(stat), key)
    }

    /// What a topic takes in. Who stores many messages keeps it for them all.
    #[must_use]
    pub(crate) fn topic(&self, topic: &str) -> Arc<TopicTraffic> {
        let found = {
            let map = self.topics.read().unwrap_or_else(PoisonError::into_inner);
            map.get(topic).map(Arc::clone)
        };
        found.unwrap_or_else(|| {
            let made = || {
                let counter = |stat| self.counter(stat, topic);
                let (nums, size) = (Stat::TopicPutNums, Stat::TopicPutSize);
                Arc::new(TopicTraffic::new(topic, counter(nums), counter(size)))
            };
            let mut map = self.topics.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(map.entry(topic.into()).or_insert_with(made))
        })
    }

    /// Counts messages that were stored in a topic by one send.
    pub(crate) fn stored(&self, topic: &str, kind: MessageType, (messages, bytes): (u64, u64)) {
        self.topic(topic).add(kind, messages, bytes);
        self.stored_anywhere(topic, messages, bytes);
    }

    /// As [`Stats::stored`], of a topic whose own figures are counted already.
    pub(crate) fn stored_anywhere(&self, topic: &str, messages: u64, bytes: u64) {
        self.puts.add(messages, 1);
        self.put_bytes.add(bytes, messages);
        if !system::is_system_topic(topic) {
            self.user_puts.add(messages, 1);
        }
    }

    /// Every topic that took something in, sorted, for the metrics page.
    #[must_use]
    pub(crate) fn traffic(&self) -> Vec<Arc<TopicTraffic>> {
        let map = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        let mut list: Vec<_> = map.values().map(Arc::clone).collect();
        drop(map);
        list.sort_by(|one, other| one.topic().cmp(other.topic()));
        list
    }

    /// Adds to the counter of a key.
    pub(crate) fn add(&self, stat: Stat, key: &str, value: u64) {
        let family = self.family(stat);
        if let Some(counter) = family
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
        {
            counter.add(value, 1);
            return;
        }
        self.counter(stat, key).add(value, 1);
    }

    /// The windows of one counter by Java's name; `None`: nothing of that name and key.
    #[must_use]
    pub(crate) fn view(&self, now: Timestamp, name: &str, key: &str) -> Option<BrokerStatsData> {
        let index = NAMES.iter().position(|known| *known == name)?;
        let map = self
            .families
            .get(index)?
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        map.get(key).map(|counter| counter.data(now))
    }

    /// Every counter of a family, for the metrics page.
    #[must_use]
    pub(crate) fn list(&self, stat: Stat) -> Vec<(Box<str>, u64)> {
        let map = self
            .family(stat)
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        map.iter()
            .map(|(key, counter)| (key.clone(), counter.total()))
            .collect()
    }

    /// Totals at the last two midnights.
    #[must_use]
    pub(crate) fn days(&self) -> DayMarks {
        *self.days.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn_day(&self, now: Timestamp) {
        let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        let day = now.millis().div_euclid(86_400_000);
        if day > days.day {
            let totals = (self.user_puts.total(), self.user_gets.total());
            // A broker that started today had nothing at midnight.
            let first = days.day == 0;
            days.yesterday_morning = days.today_morning;
            days.today_morning = if first { (0, 0) } else { totals };
            days.day = day;
        }
    }

    /// Takes one sample of every counter.
    pub(crate) fn sample(&self, now: Timestamp) {
        self.turn_day(now);
        for family in &self.families {
            let map = family.read().unwrap_or_else(PoisonError::into_inner);
            map.values().for_each(|counter| counter.sample(now));
        }
        for counter in [
            &self.put_bytes,
            &self.get_bytes,
            &self.get_found,
            &self.get_miss,
            &self.put_failures,
        ] {
            counter.sample(now);
        }
    }

    /// Drops every counter whose key a topic or group has a part in. The whole broker's stay: a
    /// cluster has a topic of its own name.
    pub(crate) fn forget(&self, name: &str) {
        for (index, family) in self.families.iter().enumerate() {
            if WHOLE.iter().any(|stat| *stat as usize == index) {
                continue;
            }
            let mut map = family.write().unwrap_or_else(PoisonError::into_inner);
            map.retain(|key, _| key.split('@').all(|part| part != name));
        }
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        topics.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_counts_what_came_since_its_first_sample() {
        let stats = Stats::new("c");
        let at = Timestamp::from_millis;
        stats.add(Stat::TopicPutNums, "t", 5);
        stats.sample(at(0));
        stats.add(Stat::TopicPutNums, "t", 20);
        let minute = stats
            .view(at(10_000), "TOPIC_PUT_NUMS", "t")
            .unwrap()
            .stats_minute;
        assert_eq!(minute.sum, 20);
        assert!((minute.tps - 2.0).abs() < 1e-9);
    }

    #[test]
    fn unknown_names_and_keys_have_no_figures_and_deleted_ones_lose_them() {
        let stats = Stats::new("c");
        stats.add(Stat::GroupGetNums, "t@g", 1);
        assert!(stats.view(Timestamp::default(), "NOPE", "t").is_none());
        assert!(
            stats
                .view(Timestamp::default(), "GROUP_GET_NUMS", "t@g")
                .is_some()
        );
        stats.puts.add(3, 1);
        for name in ["g", "c"] {
            stats.forget(name);
        }
        assert!(
            stats
                .view(Timestamp::default(), "GROUP_GET_NUMS", "t@g")
                .is_none()
        );
        let whole = stats.view(Timestamp::default(), "BROKER_PUT_NUMS", "c");
        assert_eq!(whole.unwrap().stats_minute.sum, 3);
    }
}
