//! What one NameServer is to be told next, and when.
//!
//! Pure: time is an argument, counted from the loop's start. **Invariant:** at most one registration
//! of a NameServer is on its way, so that it sees tables in the order of their versions; topics that
//! changed meanwhile follow it. Who registers and how is not decided here.

use std::{collections::BTreeSet, sync::mpsc::SyncSender, time::Duration};

use rmq_protocol::body::DataVersion;

/// Pause before a NameServer that was not reached is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// Threads that wait for a registration: woken when this is dropped.
pub(super) type Waiters = Vec<SyncSender<()>>;

/// A registration to make now.
#[derive(Debug)]
pub(super) enum Job {
    /// The whole topic table.
    Full(Waiters),
    /// Some topics, with the version of the table in which they changed.
    Part {
        /// Their names.
        names: BTreeSet<String>,
        /// The version.
        version: DataVersion,
        /// Who waits.
        waiters: Waiters,
    },
}

/// What a registration changed in the standing with a NameServer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing.
    Same,
    /// It has the broker, and did not before.
    Reached,
    /// It does not, and had it or was new.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    New,
    Reached,
    Failed,
}

/// The standing with one NameServer.
#[derive(Debug)]
pub(super) struct Link {
    standing: Standing,
    /// Connection of the last registration that was taken.
    connection: Option<u64>,
    /// It may have forgotten the broker: topics alone would leave it with those only.
    stale: bool,
    busy: bool,
    started: Duration,
    due: Duration,
    changed: BTreeSet<String>,
    version: DataVersion,
    waiters: Waiters,
}

impl Link {
    /// A NameServer that knows nothing yet.
    pub(super) fn new() -> Self {
        Self {
            standing: Standing::New,
            connection: None,
            stale: true,
            busy: false,
            started: Duration::ZERO,
            due: Duration::ZERO,
            changed: BTreeSet::new(),
            version: DataVersion::default(),
            waiters: Waiters::new(),
        }
    }

    /// Whether it has the broker, as far as is known.
    pub(super) fn is_reached(&self) -> bool {
        self.standing == Standing::Reached
    }

    /// When [`Link::next`] has something to do although nothing happens.
    pub(super) fn wakes_at(&self) -> Option<Duration> {
        (!self.busy).then_some(self.due)
    }

    /// A full registration is due now.
    pub(super) fn refresh(&mut self, now: Duration) {
        self.due = self.due.min(now);
    }

    /// Topics changed. Nobody waits for a NameServer that is not there.
    pub(super) fn change(&mut self, names: &[String], version: DataVersion, done: &SyncSender<()>) {
        self.changed.extend(names.iter().cloned());
        if version.compare(&self.version).is_gt() {
            self.version = version;
        }
        if self.standing != Standing::Failed {
            self.waiters.push(done.clone());
        }
    }

    /// A connection ended; if it was this one's, the NameServer may have dropped the broker.
    pub(super) fn disconnected(&mut self, now: Duration, connection: u64) {
        if self.connection == Some(connection) {
            self.connection = None;
            self.stale = true;
            let soonest = self.started.saturating_add(RETRY);
            self.due = self.due.min(now.max(soonest));
        }
    }

    /// What to do now, if anything; it is on its way from here on.
    pub(super) fn next(&mut self, now: Duration) -> Option<Job> {
        if self.busy {
            return None;
        }
        if now >= self.due {
            self.due = Duration::MAX;
            self.started = now;
            self.busy = true;
            self.changed.clear();
            return Some(Job::Full(std::mem::take(&mut self.waiters)));
        }
        if self.stale || self.changed.is_empty() {
            return None;
        }
        self.busy = true;
        Some(Job::Part {
            names: std::mem::take(&mut self.changed),
            version: self.version,
            waiters: std::mem::take(&mut self.waiters),
        })
    }

    /// A registration was taken, in full if the next one has a `period` to wait for.
    pub(super) fn taken(
        &mut self,
        now: Duration,
        connection: u64,
        period: Option<Duration>,
    ) -> Turn {
        self.busy = false;
        self.connection = Some(connection);
        if let Some(period) = period {
            self.stale = false;
            self.due = self.due.min(now.saturating_add(period));
        }
        match std::mem::replace(&mut self.standing, Standing::Reached) {
            Standing::Reached => Turn::Same,
            Standing::New | Standing::Failed => Turn::Reached,
        }
    }

    /// A registration was refused or not answered.
    pub(super) fn failed(&mut self, now: Duration) -> Turn {
        self.busy = false;
        self.connection = None;
        self.stale = true;
        self.waiters.clear();
        self.due = self.due.min(now.saturating_add(RETRY));
        match std::mem::replace(&mut self.standing, Standing::Failed) {
            Standing::Failed => Turn::Same,
            Standing::New | Standing::Reached => Turn::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{TryRecvError, sync_channel};

    use super::*;

    const PERIOD: Option<Duration> = Some(Duration::from_secs(30));

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn version(counter: i64) -> DataVersion {
        DataVersion {
            counter,
            ..DataVersion::default()
        }
    }

    fn reached() -> Link {
        let mut link = Link::new();
        assert!(matches!(link.next(at(0)), Some(Job::Full(_))));
        assert_eq!(link.taken(at(0), 7, PERIOD), Turn::Reached);
        link
    }

    #[test]
    fn a_registration_is_repeated_after_the_period_and_sooner_when_it_failed() {
        let mut link = reached();
        assert!(link.next(at(29)).is_none());
        assert!(matches!(link.next(at(30)), Some(Job::Full(_))));
        assert_eq!(link.failed(at(31)), Turn::Lost);
        assert!(link.next(at(31)).is_none());
        assert!(matches!(link.next(at(32)), Some(Job::Full(_))));
        assert_eq!(link.failed(at(33)), Turn::Same);
    }

    #[test]
    fn the_end_of_its_own_connection_makes_a_full_registration_due_at_once() {
        let mut link = reached();
        link.disconnected(at(5), 8);
        assert!(link.next(at(5)).is_none());
        link.disconnected(at(5), 7);
        assert!(matches!(link.next(at(5)), Some(Job::Full(_))));
    }

    #[test]
    fn a_name_server_that_closes_every_connection_is_tried_once_a_second() {
        let mut link = reached();
        link.disconnected(at(0), 7);
        assert!(link.next(at(0)).is_none());
        assert!(matches!(link.next(at(1)), Some(Job::Full(_))));
    }

    #[test]
    fn topics_that_change_while_a_registration_is_on_its_way_follow_it() {
        let mut link = Link::new();
        assert!(link.next(at(0)).is_some());
        let (done, waits) = sync_channel(1);
        link.change(&["a".to_owned()], version(2), &done);
        link.change(&["b".to_owned()], version(1), &done);
        drop(done);
        assert!(link.next(at(0)).is_none());
        link.taken(at(0), 7, PERIOD);
        let Some(Job::Part {
            names,
            version,
            waiters,
        }) = link.next(at(0))
        else {
            panic!("no part");
        };
        assert_eq!((names.len(), version.counter), (2, 2));
        assert_eq!(waits.try_recv(), Err(TryRecvError::Empty));
        drop(waiters);
        assert_eq!(waits.try_recv(), Err(TryRecvError::Disconnected));
    }

    #[test]
    fn nobody_waits_for_a_name_server_that_is_not_there_and_it_is_told_everything_later() {
        let mut link = reached();
        link.next(at(30));
        link.failed(at(30));
        let (done, waits) = sync_channel(1);
        link.change(&["a".to_owned()], version(2), &done);
        drop(done);
        assert_eq!(waits.try_recv(), Err(TryRecvError::Disconnected));
        assert!(link.next(at(30)).is_none());
        assert!(matches!(link.next(at(31)), Some(Job::Full(_))));
        link.taken(at(31), 9, PERIOD);
        assert!(link.next(at(31)).is_none());
    }
}
