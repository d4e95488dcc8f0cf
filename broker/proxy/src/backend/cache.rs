//! Answers that are kept for a while: routes, kinds of topics, terms of groups.
//!
//! **Invariant:** at most `max` keys; askers of one key share one question. A value is asked anew
//! once it is older than `fresh`; if that fails for want of an answer, the old one serves until it
//! is older than `stale`. That something does not exist is known for [`ABSENT`] only.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::proto::v2::Code;
use crate::rules::refusal::Refusal;

/// How long a refusal is remembered: a topic made just now is to be found.
const ABSENT: Duration = Duration::from_millis(500);

#[derive(Debug)]
struct Held<V> {
    at: Instant,
    value: Result<V, Refusal>,
}

type Slot<V> = Arc<tokio::sync::Mutex<Option<Held<V>>>>;

/// See the module.
#[derive(Debug)]
pub(super) struct Cache<V> {
    slots: Mutex<HashMap<String, Slot<V>>>,
    max: usize,
    fresh: Duration,
    stale: Duration,
}

impl<V: Clone> Cache<V> {
    pub(super) fn new(max: usize, fresh: Duration, stale: Duration) -> Self {
        Self {
            slots: Mutex::default(),
            max,
            fresh,
            stale,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Slot<V>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot of a key; a key for which there is no room gets one that nobody keeps.
    fn slot(&self, key: &str, now: Instant) -> Slot<V> {
        let mut slots = self.lock();
        if let Some(slot) = slots.get(key) {
            return Arc::clone(slot);
        }
        if slots.len() >= self.max {
            slots.retain(|_, slot| match slot.try_lock() {
                Ok(held) => held.as_ref().is_some_and(|held| {
                    held.value.is_ok() && now.saturating_duration_since(held.at) < self.stale
                }),
                Err(_) => true,
            });
        }
        if slots.len() >= self.max {
            return Slot::default();
        }
        Arc::clone(slots.entry(key.to_owned()).or_default())
    }

    /// The value of a key, asked for if it is not known or old.
    pub(super) async fn get<F>(&self, key: &str, now: Instant, ask: F) -> Result<V, Refusal>
    where
        F: Future<Output = Result<V, Refusal>>,
    {
        let slot = self.slot(key, now);
        let age = |at| now.saturating_duration_since(at);
        let mut held = slot.lock().await;
        if let Some(held) = held.as_ref() {
            let fresh = if held.value.is_ok() {
                self.fresh
            } else {
                ABSENT
            };
            if age(held.at) < fresh {
                return held.value.clone();
            }
        }
        let value = ask.await;
        if let Err(refusal) = &value
            && is_transient(refusal.code)
        {
            // Not remembered, and no reason to forget what was.
            return match held.as_ref() {
                Some(old) if old.value.is_ok() && age(old.at) < self.stale => old.value.clone(),
                _ => value,
            };
        }
        *held = Some(Held {
            at: now,
            value: value.clone(),
        });
        value
    }

    /// Forgets a key, because what it says turned out to be wrong.
    pub(super) fn forget(&self, key: &str) {
        self.lock().remove(key);
    }
}

fn is_transient(code: Code) -> bool {
    matches!(
        code,
        Code::InternalServerError | Code::ProxyTimeout | Code::TooManyRequests
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Duration = Duration::from_secs(20);
    const STALE: Duration = Duration::from_mins(5);

    fn absent() -> Refusal {
        Refusal::new(Code::TopicNotFound, "no")
    }

    #[tokio::test]
    async fn a_value_is_asked_once_while_it_is_fresh() {
        let mut now = Instant::now();
        let cache = Cache::new(4, FRESH, STALE);
        assert_eq!(cache.get("a", now, async { Ok(1) }).await, Ok(1));
        assert_eq!(cache.get("a", now, async { Ok(2) }).await, Ok(1));
        now += FRESH;
        assert_eq!(cache.get("a", now, async { Ok(2) }).await, Ok(2));
    }

    #[tokio::test]
    async fn an_old_value_serves_while_nobody_answers_but_not_for_ever() {
        let mut now = Instant::now();
        let cache = Cache::new(4, FRESH, STALE);
        let down = || async { Err(Refusal::internal("down")) };
        assert_eq!(cache.get("a", now, async { Ok(1) }).await, Ok(1));
        now += FRESH;
        assert_eq!(cache.get("a", now, down()).await, Ok(1));
        now += STALE;
        assert!(cache.get("a", now, down()).await.is_err());
    }

    #[tokio::test]
    async fn what_does_not_exist_is_looked_for_again_soon() {
        let mut now = Instant::now();
        let cache = Cache::new(4, FRESH, STALE);
        assert_eq!(
            cache.get("a", now, async { Err(absent()) }).await,
            Err(absent())
        );
        assert_eq!(cache.get("a", now, async { Ok(1) }).await, Err(absent()));
        now += ABSENT;
        assert_eq!(cache.get("a", now, async { Ok(1) }).await, Ok(1));
    }

    #[tokio::test]
    async fn a_full_cache_forgets_refusals_first_and_then_keeps_nothing_more() {
        let now = Instant::now();
        let cache = Cache::new(2, FRESH, STALE);
        assert!(
            cache
                .get("a", now, async { Err::<i32, _>(absent()) })
                .await
                .is_err()
        );
        assert_eq!(cache.get("b", now, async { Ok(1) }).await, Ok(1));
        assert_eq!(cache.get("c", now, async { Ok(2) }).await, Ok(2));
        assert_eq!(cache.get("d", now, async { Ok(3) }).await, Ok(3));
        assert_eq!(cache.get("d", now, async { Ok(4) }).await, Ok(4));
        assert_eq!(cache.get("b", now, async { Ok(9) }).await, Ok(1));
        assert_eq!(cache.lock().len(), 2);
        cache.forget("b");
        assert_eq!(cache.get("b", now, async { Ok(9) }).await, Ok(9));
    }
}
