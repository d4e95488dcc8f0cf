//! Clients that told their settings.
//!
//! **Invariant:** at most `max` clients. A client stays while its stream of telemetry is open and
//! for [`SILENCE`] after its last word; then it counts as gone.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmq_types::Timestamp;

use crate::proto::v2::{Code, Settings};
use crate::rules::refusal::Refusal;

/// A client without a stream that says nothing for so long is gone, in milliseconds: Java clients
/// send heartbeats every 10 s and open a lost stream again within seconds.
const SILENCE: i64 = 60_000;

/// A client.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// What it told.
    pub(crate) settings: Settings,
    seen: Timestamp,
    streams: usize,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Sessions {
    table: Mutex<HashMap<String, Session>>,
    max: usize,
}

impl Sessions {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            table: Mutex::default(),
            max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Takes a client's settings, told on a stream for the first time or again.
    pub(crate) fn told(
        &self,
        client: &str,
        settings: Settings,
        first_on_stream: bool,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let mut table = self.lock();
        if !table.contains_key(client) && table.len() >= self.max {
            return Err(Refusal::new(Code::TooManyRequests, "too many clients"));
        }
        let streams = table.get(client).map_or(0, |known| known.streams);
        let session = Session {
            settings,
            seen: now,
            streams: streams + usize::from(first_on_stream),
        };
        table.insert(client.to_owned(), session);
        Ok(())
    }

    /// A stream on which settings were told has ended.
    pub(crate) fn stream_ended(&self, client: &str, now: Timestamp) {
        if let Some(session) = self.lock().get_mut(client) {
            session.streams = session.streams.saturating_sub(1);
            session.seen = now;
        }
    }

    /// The client, if it told its settings; it is heard of now.
    pub(crate) fn seen(&self, client: &str, now: Timestamp) -> Option<Session> {
        let mut table = self.lock();
        let session = table.get_mut(client)?;
        session.seen = now;
        Some(session.clone())
    }

    /// Takes a client out that says it ends.
    pub(crate) fn leave(&self, client: &str) -> bool {
        self.lock().remove(client).is_some()
    }

    /// Takes out the clients that are gone.
    pub(crate) fn gone(&self, now: Timestamp) -> Vec<String> {
        let mut table = self.lock();
        let is_gone = |session: &Session| session.streams == 0 && now.since(session.seen) > SILENCE;
        let gone: Vec<String> = table
            .iter()
            .filter(|(_, session)| is_gone(session))
            .map(|(client, _)| client.clone())
            .collect();
        for client in &gone {
            table.remove(client);
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Timestamp = Timestamp::from_millis(0);

    fn tell(sessions: &Sessions, client: &str, first: bool) -> Result<(), Refusal> {
        sessions.told(client, Settings::default(), first, T0)
    }

    #[test]
    fn a_client_with_a_stream_stays_and_one_without_goes_after_its_silence() {
        let sessions = Sessions::new(8);
        tell(&sessions, "a", true).unwrap();
        tell(&sessions, "a", false).unwrap();
        assert!(sessions.gone(T0.plus_millis(SILENCE + 1)).is_empty());
        sessions.stream_ended("a", T0);
        assert!(sessions.gone(T0.plus_millis(SILENCE)).is_empty());
        assert_eq!(sessions.gone(T0.plus_millis(SILENCE + 1)), ["a"]);
        assert!(sessions.seen("a", T0).is_none());
    }

    #[test]
    fn a_client_that_opens_a_second_stream_survives_the_end_of_the_first() {
        let sessions = Sessions::new(8);
        tell(&sessions, "a", true).unwrap();
        tell(&sessions, "a", true).unwrap();
        sessions.stream_ended("a", T0);
        assert!(sessions.gone(T0.plus_millis(SILENCE + 1)).is_empty());
    }

    #[test]
    fn beyond_the_bound_only_known_clients_are_taken() {
        let sessions = Sessions::new(1);
        tell(&sessions, "a", true).unwrap();
        let refusal = tell(&sessions, "b", true).unwrap_err();
        assert_eq!(refusal.code, Code::TooManyRequests);
        assert!(tell(&sessions, "a", true).is_ok());
        assert!(sessions.leave("a") && !sessions.leave("a"));
        assert!(tell(&sessions, "b", true).is_ok());
    }
}
