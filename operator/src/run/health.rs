//! Whether the operator works, for probes.
//!
//! **Invariant:** an operator that waits for the lease is ready: it is there to take over. Only one
//! that leads and does not know its objects yet is not.

use super::metrics::Metrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const STANDBY: u8 = 1;
const READING: u8 = 2;
const SYNCED: u8 = 3;

/// How far it has come; 0 until it was started.
#[derive(Debug, Default)]
pub(crate) struct State(AtomicU8);

impl State {
    pub(crate) fn started(&self) {
        self.0.store(STANDBY, Ordering::Release);
    }

    pub(crate) fn leads(&self) {
        self.0.store(READING, Ordering::Release);
    }

    pub(crate) fn synced(&self) {
        self.0.store(SYNCED, Ordering::Release);
    }
}

/// Answers for the health of an operator.
#[derive(Clone, Debug)]
pub struct OperatorProbe {
    state: Arc<State>,
    metrics: Metrics,
}

impl OperatorProbe {
    pub(crate) fn new(state: Arc<State>, metrics: Metrics) -> Self {
        Self { state, metrics }
    }

    /// Whether it can do its work, or stands by.
    pub fn ready(&self) -> Result<(), String> {
        match self.state.0.load(Ordering::Acquire) {
            STANDBY | SYNCED => Ok(()),
            READING => Err("reads the objects of the cluster".to_owned()),
            _ => Err("starting".to_owned()),
        }
    }

    /// Figures in the Prometheus text form.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let mut text = String::new();
        self.metrics.text(&mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_stands_by_is_ready_and_one_that_reads_is_not() {
        let state = Arc::new(State::default());
        let probe = OperatorProbe::new(Arc::clone(&state), Metrics::new().unwrap());
        assert!(probe.ready().is_err());
        state.started();
        assert!(probe.ready().is_ok());
        state.leads();
        assert!(probe.ready().unwrap_err().contains("reads"));
        state.synced();
        assert!(probe.ready().is_ok());
    }
}
