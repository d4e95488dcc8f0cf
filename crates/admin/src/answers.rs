//! Answers of several brokers that were asked at once.
//!
//! **Invariant:** one entry per broker asked, in the order of the targets, whatever came of it; at
//! most [`IN_FLIGHT_MAX`] requests wait at a time.

use std::future::Future;

use tokio::task::JoinSet;

use crate::{AskError, Target};

/// Brokers asked at the same time.
pub(crate) const IN_FLIGHT_MAX: usize = 64;

/// What one broker answered.
#[derive(Debug)]
pub struct Answer<T> {
    /// Who was asked.
    pub target: Target,
    /// What came of it.
    pub outcome: Result<T, AskError>,
}

/// What all brokers answered.
#[derive(Debug)]
pub struct Answers<T>(Vec<Answer<T>>);

impl<T> Answers<T> {
    /// All answers, in the order of the brokers' names.
    pub fn iter(&self) -> std::slice::Iter<'_, Answer<T>> {
        self.0.iter()
    }

    /// How many brokers were asked.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if nobody was asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The answers that are none: who failed and why.
    pub fn failures(&self) -> impl Iterator<Item = (&Target, &AskError)> {
        self.0
            .iter()
            .filter_map(|answer| Some((&answer.target, answer.outcome.as_ref().err()?)))
    }

    /// The answers of those that did not fail.
    pub fn successes(&self) -> impl Iterator<Item = (&Target, &T)> {
        self.0
            .iter()
            .filter_map(|answer| Some((&answer.target, answer.outcome.as_ref().ok()?)))
    }

    /// True if nobody failed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failures().next().is_none()
    }
}

impl<T> IntoIterator for Answers<T> {
    type Item = Answer<T>;
    type IntoIter = std::vec::IntoIter<Answer<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Answers<T> {
    type Item = &'a Answer<T>;
    type IntoIter = std::slice::Iter<'a, Answer<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Asks every target by `work`, which gets the target's address. A group without a master is an
/// error of its own.
pub(crate) async fn ask_all<T, F, W>(targets: Vec<Target>, work: F) -> Answers<T>
where
    T: Send + 'static,
    W: Future<Output = Result<T, AskError>> + Send + 'static,
    F: Fn(Target, String) -> W,
{
    let answers = in_parallel(targets, |target| {
        let asked = target.addr.clone().map(|addr| work(target.clone(), addr));
        async move {
            let outcome = match asked {
                Some(answer) => answer.await,
                None => Err(AskError::NoMaster {
                    broker: target.label().to_owned(),
                }),
            };
            Answer { target, outcome }
        }
    });
    Answers(answers.await)
}

/// Does `work` for every item, at most [`IN_FLIGHT_MAX`] at a time; results in the order of items.
pub(crate) async fn in_parallel<I, T, F, W>(items: Vec<I>, work: F) -> Vec<T>
where
    T: Send + 'static,
    W: Future<Output = T> + Send + 'static,
    F: Fn(I) -> W,
{
    let mut results: Vec<Option<T>> = items.iter().map(|_| None).collect();
    let mut running = JoinSet::new();
    let mut waiting = items.into_iter().enumerate();
    loop {
        while running.len() < IN_FLIGHT_MAX
            && let Some((index, item)) = waiting.next()
        {
            let task = work(item);
            running.spawn(async move { (index, task.await) });
        }
        let Some(joined) = running.join_next().await else {
            break;
        };
        match joined {
            Ok((index, result)) => {
                if let Some(place) = results.get_mut(index) {
                    *place = Some(result);
                }
            }
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {}
        }
    }
    results.into_iter().flatten().collect()
}
