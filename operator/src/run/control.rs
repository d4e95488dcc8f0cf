//! One loop for one kind: which object is looked at when.
//!
//! **Invariant:** an object is never looked at twice at the same time; one that does not parse, or
//! whose look fails, is put aside and holds up no other.

use super::context::{Context, ReconcileError};
use super::scope::{Guarded, Queue, Watched};
use futures::StreamExt as _;
use kube::runtime::applier;
use kube::runtime::controller::{Action, Config, ReconcileRequest};
use kube::runtime::reflector::Store;
use kube::{Resource, ResourceExt};
use rmq_operator_api::EventReason;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::time::Instant;

/// What is done with an object of a kind.
pub(crate) trait Reconcile: Watched {
    /// Makes the world as the object says, as far as one pass goes.
    fn reconcile(
        &self,
        context: &Context,
    ) -> impl Future<Output = Result<Action, ReconcileError>> + Send;
}

/// Runs the loop of a kind until `stop`; what is being looked at then comes to its end.
pub(crate) async fn run<K: Reconcile>(
    store: Store<Guarded<K>>,
    queue: Queue<K>,
    context: Arc<Context>,
    stop: impl Future<Output = ()> + Send,
) {
    let config = Config::default().concurrency(context.options.concurrency);
    let queue = futures::stream::unfold(queue, |mut queue| async move {
        let next = queue.recv().await?;
        Some((Ok::<_, Infallible>(ReconcileRequest::from(next)), queue))
    });
    let queue = Box::pin(queue).take_until(Box::pin(stop));
    let begin = |object, context| Box::pin(look::<K>(object, context));
    let done = applier(begin, failed::<K>, context, store, queue, config);
    let mut done = std::pin::pin!(done);
    while let Some(result) = done.next().await {
        if let Err(error) = result {
            // Failures of a look are told by `failed`; what is left are objects that are gone.
            tracing::debug!(kind = %K::kind(&()), %error, "loop");
        }
    }
}

async fn look<K: Reconcile>(
    object: Arc<Guarded<K>>,
    context: Arc<Context>,
) -> Result<Action, ReconcileError> {
    let kind = K::kind(&());
    let begun = Instant::now();
    context.metrics.running(&kind, 1);
    let result = match &object.0 {
        Ok(object) => Box::pin(object.reconcile(&context)).await,
        Err(invalid) => {
            let about = object.object_ref(&());
            let name = object.name_any();
            let error = &invalid.error;
            tracing::warn!(%kind, name, error, "does not parse and is left alone");
            context
                .events
                .tell(&about, EventReason::InvalidSpec, error)
                .await;
            Ok(Action::await_change())
        }
    };
    context.metrics.running(&kind, -1);
    context.metrics.reconciled(&kind, begun.elapsed());
    result
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the form of kube's error policy"
)]
fn failed<K: Reconcile>(
    object: Arc<Guarded<K>>,
    error: &ReconcileError,
    context: Arc<Context>,
) -> Action {
    context.failed(&*object, error)
}
