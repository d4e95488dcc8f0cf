//! What requests and the leader's own work share.
//!
//! **Invariant:** the lock of the lead is taken before the state is looked at and never held while
//! something is waited for. A lead is used only while the node still has the leadership it was made
//! for.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use rmq_controller_fsm::{Detector, State, settings_of};
use rmq_net::Client;
use rmq_raft::{Leadership, Node, NotConfirmed};
use rmq_types::{Clock, Moment, Timestamp};
use tokio::sync::Notify;

use crate::{answer::Refusal, config::ControllerOptions, tasks::Tasks};

/// What lives as long as a leadership.
pub(crate) struct Lead {
    pub(crate) leadership: Leadership,
    pub(crate) detector: Detector,
}

pub(crate) struct Core {
    pub(crate) options: ControllerOptions,
    pub(crate) node: Arc<Node>,
    pub(crate) client: Client,
    pub(crate) tasks: Tasks,
    /// Wakes the leader's work before its next tick.
    pub(crate) due: Notify,
    clock: Arc<dyn Clock>,
    started: Instant,
    lead: Mutex<Option<Lead>>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

impl Core {
    pub(crate) fn new(
        options: ControllerOptions,
        node: Arc<Node>,
        client: Client,
        tasks: Tasks,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            options,
            node,
            client,
            tasks,
            due: Notify::new(),
            clock,
            started: Instant::now(),
            lead: Mutex::default(),
        }
    }

    /// The time of this process, which never steps.
    pub(crate) fn now(&self) -> Moment {
        Moment::from_millis(self.started.elapsed().as_millis() as u64)
    }

    /// The time for people.
    pub(crate) fn wall(&self) -> Timestamp {
        self.clock.now()
    }

    fn lead(&self) -> MutexGuard<'_, Option<Lead>> {
        self.lead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins or ends the lead as the node's leadership did; true if a new one began.
    pub(crate) fn follow_leadership(&self) -> bool {
        let mut lead = self.lead();
        let leadership = self.node.leadership();
        if lead.as_ref().map(|lead| lead.leadership) == leadership {
            return false;
        }
        let now = self.now();
        *lead = leadership.map(|leadership| {
            let detector = self
                .node
                .state(|state| Detector::lead(settings_of(state), now, leadership.term, state));
            Lead {
                leadership,
                detector,
            }
        });
        if let Some(Leadership { term }) = leadership {
            tracing::info!(term, "this controller leads");
        } else {
            tracing::info!("this controller does not lead any more");
        }
        leadership.is_some()
    }

    /// Looks at detector and state, if this controller leads.
    pub(crate) fn leading<T>(
        &self,
        act: impl FnOnce(&mut Detector, &State) -> T,
    ) -> Result<(Leadership, T), Refusal> {
        let mut lead = self.lead();
        let leadership = self.node.leadership();
        match lead.as_mut() {
            Some(lead) if Some(lead.leadership) == leadership => {
                let result = self.node.state(|state| act(&mut lead.detector, state));
                Ok((lead.leadership, result))
            }
            _ => Err(self.not_leader()),
        }
    }

    /// The same, if the leadership is still that one.
    pub(crate) fn still_leading<T>(
        &self,
        leadership: Leadership,
        act: impl FnOnce(&mut Detector, &State) -> T,
    ) -> Result<T, Refusal> {
        let mut lead = self.lead();
        match lead.as_mut() {
            Some(lead) if lead.leadership == leadership => {
                Ok(self.node.state(|state| act(&mut lead.detector, state)))
            }
            _ => Err(self.not_leader()),
        }
    }

    /// Waits until a majority showed, from now on, that this controller leads.
    pub(crate) async fn confirm(&self) -> Result<(), Refusal> {
        self.node.confirm().await.map_err(|error| match error {
            NotConfirmed::NotLeader => self.not_leader(),
            NotConfirmed::NoMajority | NotConfirmed::Busy => Refusal::busy(&error),
        })
    }

    /// Address of the leader, as far as it is known.
    pub(crate) fn leader_address(&self) -> Option<&str> {
        let leader = self.node.leader()?;
        self.options
            .peers
            .get(&leader)
            .map(|peer| peer.address.as_str())
    }

    pub(crate) fn not_leader(&self) -> Refusal {
        Refusal::not_leader(self.leader_address())
    }
}
