//! Leader election by a Lease of the API server.
//!
//! **Invariant:** clocks of machines are never compared: a lease of somebody else counts as free
//! only after this process has itself seen it unchanged for as long as it is valid. A leader that
//! could not renew in time has lost, whatever the reason, and the process ends. This is
//! coordination, not fencing: every write of the operator is safe if two operators overlap.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client, Error as ApiError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long a lease is valid without being renewed.
pub(crate) const VALID: Duration = Duration::from_secs(15);
/// A leader that has not renewed for this long has lost. Shorter than [`VALID`], so that it has
/// stopped before another begins.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// Between two looks at the lease.
const PERIOD: Duration = Duration::from_secs(2);

/// Why somebody is not, or no longer, the leader.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The lease could not be renewed in time.
    #[error("lost the lease {name}: {reason}")]
    Lost {
        /// Its name.
        name: String,
        /// What happened.
        reason: String,
    },
    /// The operator may not use Leases.
    #[error("cannot use the lease {name}: {source}")]
    Refused {
        /// Its name.
        name: String,
        /// What the server said.
        source: ApiError,
    },
}

/// One who wants to lead.
pub(crate) struct Candidate {
    api: Api<Lease>,
    name: String,
    identity: String,
}

/// What to do about a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// There is none: make it.
    Create,
    /// It is free: take it.
    Take,
    /// It is ours: renew it.
    Renew,
    /// Somebody else has it.
    Wait,
}

fn evaluate(lease: Option<&LeaseSpec>, identity: &str, unchanged_for: Duration) -> Verdict {
    let Some(lease) = lease else {
        return Verdict::Create;
    };
    let holder = lease.holder_identity.as_deref().unwrap_or_default();
    let valid = lease
        .lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(VALID, Duration::from_secs);
    if holder == identity {
        Verdict::Renew
    } else if holder.is_empty() || unchanged_for > valid {
        Verdict::Take
    } else {
        Verdict::Wait
    }
}

impl Candidate {
    pub(crate) fn new(client: Client, namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            identity: identity.to_owned(),
        }
    }

    /// Waits until this one leads.
    pub(crate) async fn lead(&self) -> Result<(), LeaseError> {
        let mut seen: Option<String> = None;
        let mut since = Instant::now();
        loop {
            match self.look().await {
                Ok(lease) => {
                    let version = lease
                        .as_ref()
                        .and_then(|l| l.metadata.resource_version.clone());
                    if version != seen {
                        (seen, since) = (version, Instant::now());
                    }
                    let spec = lease.as_ref().and_then(|lease| lease.spec.as_ref());
                    match evaluate(spec, &self.identity, since.elapsed()) {
                        Verdict::Wait => {}
                        verdict => {
                            if self.write(lease, verdict).await.is_ok() {
                                tracing::info!(
                                    lease = self.name,
                                    identity = self.identity,
                                    "leading"
                                );
                                return Ok(());
                            }
                        }
                    }
                }
                Err(error) => {
                    if let ApiError::Api(status) = &error
                        && status.is_forbidden()
                    {
                        return Err(self.refused(error));
                    }
                    tracing::warn!(lease = self.name, %error, "cannot read the lease");
                }
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Renews for ever; comes back only when the lease is lost.
    pub(crate) async fn keep(&self) -> LeaseError {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(PERIOD).await;
            let asked = Instant::now();
            let left = RENEW_DEADLINE.saturating_sub(renewed.elapsed());
            let reason = match timeout(left, self.renew()).await {
                Ok(Ok(true)) => {
                    renewed = asked;
                    continue;
                }
                Ok(Ok(false)) => return self.lost("somebody else has it"),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "the API server did not answer in time".to_owned(),
            };
            if renewed.elapsed() + PERIOD >= RENEW_DEADLINE {
                return self.lost(&reason);
            }
            tracing::warn!(lease = self.name, reason, "could not renew, trying again");
        }
    }

    /// Gives the lease back, so that another need not wait; a failure costs only that wait.
    pub(crate) async fn release(&self) {
        let given_back = async {
            if let Some(mut lease) = self.look().await?
                && let Some(spec) = &mut lease.spec
                && spec.holder_identity.as_deref() == Some(&self.identity)
            {
                spec.holder_identity = None;
                self.api
                    .replace(&self.name, &PostParams::default(), &lease)
                    .await?;
            }
            Ok::<(), ApiError>(())
        };
        match timeout(PERIOD, given_back).await {
            Ok(Ok(())) => tracing::info!(lease = self.name, "given back"),
            Ok(Err(error)) => tracing::debug!(lease = self.name, %error, "not given back"),
            Err(_) => tracing::debug!(lease = self.name, "not given back in time"),
        }
    }

    async fn look(&self) -> Result<Option<Lease>, ApiError> {
        self.api.get_opt(&self.name).await
    }

    /// Whether it is still ours.
    async fn renew(&self) -> Result<bool, ApiError> {
        let lease = self.look().await?;
        let spec = lease.as_ref().and_then(|lease| lease.spec.as_ref());
        match evaluate(spec, &self.identity, Duration::ZERO) {
            verdict @ (Verdict::Renew | Verdict::Take | Verdict::Create) => {
                self.write(lease, verdict).await.map(|()| true)
            }
            Verdict::Wait => Ok(false),
        }
    }

    async fn write(&self, lease: Option<Lease>, verdict: Verdict) -> Result<(), ApiError> {
        let now = MicroTime(Timestamp::now());
        let old = lease.as_ref().and_then(|lease| lease.spec.clone());
        let old = old.unwrap_or_default();
        let taken = verdict != Verdict::Renew;
        let turns = old.lease_transitions.unwrap_or(0);
        let spec = LeaseSpec {
            acquire_time: if taken {
                Some(now.clone())
            } else {
                old.acquire_time
            },
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(VALID.as_secs()).ok(),
            lease_transitions: Some(if taken {
                turns.saturating_add(1)
            } else {
                turns
            }),
            renew_time: Some(now),
            ..LeaseSpec::default()
        };
        let params = PostParams::default();
        if let Some(mut lease) = lease {
            // With the resource version that was read: whoever writes second is refused.
            lease.spec = Some(spec);
            self.api.replace(&self.name, &params, &lease).await?;
            return Ok(());
        }
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(spec),
        };
        self.api.create(&params, &lease).await.map(drop)
    }

    fn lost(&self, reason: &str) -> LeaseError {
        LeaseError::Lost {
            name: self.name.clone(),
            reason: reason.to_owned(),
        }
    }

    fn refused(&self, source: ApiError) -> LeaseError {
        LeaseError::Refused {
            name: self.name.clone(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::mock::pair;
    use serde_json::{Value, json};

    fn spec(holder: Option<&str>) -> LeaseSpec {
        LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_is_taken_only_when_it_is_free_or_was_seen_still_for_its_whole_time() {
        let long = Duration::from_secs(16);
        let short = Duration::from_secs(15);
        assert_eq!(evaluate(None, "a", short), Verdict::Create);
        assert_eq!(evaluate(Some(&spec(None)), "a", short), Verdict::Take);
        assert_eq!(evaluate(Some(&spec(Some("a"))), "a", long), Verdict::Renew);
        assert_eq!(evaluate(Some(&spec(Some("b"))), "a", short), Verdict::Wait);
        assert_eq!(evaluate(Some(&spec(Some("b"))), "a", long), Verdict::Take);
    }

    fn lease(holder: &str) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "l", "resourceVersion": "7"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 2},
        })
    }

    #[tokio::test]
    async fn a_free_lease_is_taken_with_the_version_that_was_read() {
        let (client, mut server) = pair();
        let candidate = Candidate::new(client, "ns", "l", "a");
        let serve = async {
            let asked = server.answer(200, lease("")).await;
            assert_eq!(
                asked.path,
                "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"
            );
            let asked = server.answer(200, lease("a")).await;
            assert_eq!(asked.method, "PUT");
            assert_eq!(asked.body["metadata"]["resourceVersion"], "7");
            assert_eq!(asked.body["spec"]["holderIdentity"], "a");
            assert_eq!(asked.body["spec"]["leaseTransitions"], 3);
        };
        let (led, ()) = tokio::join!(candidate.lead(), serve);
        led.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_whose_lease_has_another_holder_has_lost() {
        let (client, mut server) = pair();
        let candidate = Candidate::new(client, "ns", "l", "a");
        let (lost, _) = tokio::join!(candidate.keep(), server.answer(200, lease("b")));
        assert!(lost.to_string().contains("somebody else"), "{lost}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_gets_no_answer_has_lost_before_its_lease_ends() {
        let (client, server) = pair();
        let candidate = Candidate::new(client, "ns", "l", "a");
        let begun = Instant::now();
        let lost = candidate.keep().await;
        assert!(lost.to_string().contains("in time"), "{lost}");
        assert!(begun.elapsed() < VALID);
        drop(server);
    }

    #[tokio::test]
    async fn an_operator_that_may_not_use_leases_says_so() {
        let (client, mut server) = pair();
        let candidate = Candidate::new(client, "ns", "l", "a");
        let (led, _) = tokio::join!(candidate.lead(), server.refuse(403, "Forbidden"));
        assert!(matches!(led, Err(LeaseError::Refused { .. })));
    }
}
