//! What is worth a line while a cluster runs.
//!
//! **Invariant:** pure: two snapshots in, lines out. A process that only became ready as expected
//! at the start is not news.

use rmq_operator::local::{LocalCluster, Phase, ProcessState};

/// Name and state of each process.
pub(super) type Snapshot = Vec<(String, ProcessState)>;

pub(super) fn snapshot(cluster: &LocalCluster) -> Snapshot {
    cluster
        .states()
        .into_iter()
        .map(|(plan, state)| (plan.name.clone(), state))
        .collect()
}

pub(super) fn all_ready(snapshot: &Snapshot) -> bool {
    snapshot
        .iter()
        .all(|(_, state)| state.phase == Phase::Ready)
}

/// A line for each process that changed in a way people want to know.
pub(super) fn news(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let pairs = before.iter().zip(after);
    pairs
        .filter_map(|((name, old), (_, new))| line(name, old, new))
        .collect()
}

fn line(name: &str, old: &ProcessState, new: &ProcessState) -> Option<String> {
    let reason = new.reason.as_deref().unwrap_or("no reason given");
    match new.phase {
        _ if old.phase == new.phase => None,
        Phase::Ready => {
            let pid = new.pid.unwrap_or_default();
            Some(format!(
                "{name} is ready (pid {pid}, restarts: {})",
                new.restarts
            ))
        }
        Phase::NotReady if old.phase == Phase::Ready => {
            Some(format!("{name} is not ready: {reason}"))
        }
        Phase::BackOff => Some(format!("{name} {reason}; it is started again")),
        Phase::Starting if old.phase == Phase::Ready => {
            Some(format!("{name} is started again: it {reason}"))
        }
        Phase::NotReady | Phase::Starting | Phase::Stopping | Phase::Stopped => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(phase: Phase, reason: Option<&str>) -> ProcessState {
        ProcessState {
            phase,
            pid: Some(7),
            address: None,
            health: None,
            restarts: 1,
            reason: reason.map(str::to_owned),
        }
    }

    fn said(old: ProcessState, new: ProcessState) -> Option<String> {
        news(&vec![("b".to_owned(), old)], &vec![("b".to_owned(), new)]).pop()
    }

    #[test]
    fn a_crash_and_its_recovery_are_told_with_the_reason() {
        let ready = state(Phase::Ready, None);
        let crashed = state(Phase::BackOff, Some("was killed by signal 9"));
        assert_eq!(
            said(ready.clone(), crashed.clone()).as_deref(),
            Some("b was killed by signal 9; it is started again")
        );
        assert_eq!(
            said(crashed, ready).as_deref(),
            Some("b is ready (pid 7, restarts: 1)")
        );
    }

    #[test]
    fn losing_readiness_is_told_but_a_start_taking_its_course_is_not() {
        let ready = state(Phase::Ready, None);
        let not_ready = state(Phase::NotReady, Some("not registered"));
        assert_eq!(
            said(ready.clone(), not_ready.clone()).as_deref(),
            Some("b is not ready: not registered")
        );
        assert_eq!(said(state(Phase::Starting, None), not_ready), None);
        assert_eq!(said(ready.clone(), ready), None);
    }
}
