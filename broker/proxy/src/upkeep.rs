//! What the gateway does by itself: renewals, streams that stand still, clients that are gone.
//!
//! **Invariant:** one loop, one beat a second; renewals run beside it, at most [`AT_A_TIME`] each
//! beat's share at once, and every one ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;

use crate::rpc::Gateway;
use crate::rules::renewal::{Due, Step};

const BEAT: Duration = Duration::from_secs(1);
/// Renewals that are at brokers at a time.
const AT_A_TIME: usize = 256;

/// Runs until the gateway is stopping.
pub(crate) async fn run(gateway: Arc<Gateway>) {
    let mut stopping = gateway.stopping.subscribe();
    loop {
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(BEAT) => beat(&gateway),
        }
    }
}

/// Looks for brokers until the gateway is stopping.
pub(crate) async fn look(gateway: Arc<Gateway>) {
    let mut stopping = gateway.stopping.subscribe();
    let looks = async {
        loop {
            gateway.look().await;
            tokio::time::sleep(BEAT).await;
        }
    };
    tokio::select! {
        biased;
        _ = stopping.wait_for(|stop| *stop) => {}
        () = looks => {}
    }
}

/// One beat.
pub(crate) fn beat(gateway: &Arc<Gateway>) {
    let now = gateway.now();
    for (owner, parcels) in gateway.deliveries.stalled(now) {
        tracing::info!(
            client = owner.client,
            group = owner.group,
            messages = parcels.len(),
            "a receive stood still, its messages are given back"
        );
        gateway.give_back(owner, parcels);
    }
    for client in gateway.sessions.gone(now) {
        tracing::info!(client, "a client is gone");
        gateway.release(&client);
    }
    let due = gateway.renewals().due(now);
    if !due.is_empty() {
        let renewing = Arc::clone(gateway);
        gateway.tasks.spawn(async move {
            let renewals = due.into_iter().map(|due| renew(&renewing, due));
            futures::stream::iter(renewals)
                .buffer_unordered(AT_A_TIME)
                .collect::<()>()
                .await;
        });
    }
}

async fn renew(gateway: &Gateway, due: Due) {
    let kept = &due.kept;
    let time = match due.step {
        Step::Renew(time) => time,
        Step::GiveUp => match gateway.cluster.group(&due.owner.group).await {
            Ok(terms) => terms.delay(kept.consumed),
            Err(_) => Duration::from_secs(1),
        },
    };
    let outcome = gateway
        .change(&due.owner.group, &kept.topic, &kept.handle, time)
        .await;
    let outcome = match outcome {
        Ok(renewed) => {
            gateway.metrics.renewed.fetch_add(1, Ordering::Relaxed);
            Some(renewed)
        }
        Err(refusal) => {
            tracing::debug!(topic = kept.topic, %refusal, "not renewed");
            None
        }
    };
    let now = gateway.now();
    gateway.renewals().done(&due, outcome, now);
    gateway.renewed.notify_waiters();
}
