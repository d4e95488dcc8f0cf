//! The service: each call of a client, admitted, answered and counted.
//!
//! **Invariant:** an error of a call travels in the answer's status while gRPC says OK; only
//! telemetry and calls that nobody has yet end with a gRPC error. A call holds a seat from its
//! admission to its answer, a receive to the end of its stream.

mod ack;
mod context;
mod delivery;
mod query;
mod receive;
mod send;
mod sessions;
mod telemetry;
mod transaction;

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmq_types::{Clock, Timestamp};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_stream::Stream;
use tonic::{Request, Response, Streaming};

use crate::backend::Cluster;
use crate::config::Options;
use crate::incoming::Seats;
use crate::metrics::{Gauges, Metrics};
use crate::proto::v2::messaging_service_server::MessagingService;
use crate::proto::v2::{self, Code, Status};
use crate::rules::refusal::Refusal;
use crate::rules::renewal::Renewals;
use crate::rules::transactions::Transactions;
use crate::tasks::Tasks;

pub(crate) use context::Context;
pub(crate) use delivery::Deliveries;
pub(crate) use sessions::Sessions;

/// Half messages that are remembered.
const TRANSACTIONS_MAX: usize = 100_000;

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) cluster: Cluster,
    pub(crate) options: Options,
    pub(crate) clock: SharedClock,
    pub(crate) sessions: Sessions,
    pub(crate) deliveries: Deliveries,
    pub(crate) tasks: Tasks,
    pub(crate) metrics: Metrics,
    pub(crate) seats: Seats,
    /// True once the gateway is to end.
    pub(crate) stopping: watch::Sender<bool>,
    /// Rings when renewals have ended.
    pub(crate) renewed: Notify,
    renewals: Mutex<Renewals>,
    transactions: Mutex<Transactions>,
    /// Counts messages without a group, to go round the queues.
    turn: AtomicUsize,
    requests: Arc<Semaphore>,
    receives: Arc<Semaphore>,
    telemetries: Arc<Semaphore>,
    /// Whether brokers could be found at the last look.
    reachable: Mutex<Result<(), String>>,
    /// Receives whose clients wait for a broker.
    waiting: AtomicUsize,
}

/// The clock, which is nothing to print.
#[derive(Clone)]
pub(crate) struct SharedClock(pub(crate) Arc<dyn Clock>);

impl std::fmt::Debug for SharedClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl Gateway {
    pub(crate) fn new(cluster: Cluster, options: Options, clock: Arc<dyn Clock>) -> Self {
        let limits = &options.limits;
        Self {
            cluster,
            clock: SharedClock(clock),
            sessions: Sessions::new(limits.clients_max),
            deliveries: Deliveries::new(limits.delivery_bytes_max),
            tasks: Tasks::default(),
            metrics: Metrics::default(),
            seats: Seats::new(limits.connections_max),
            stopping: watch::Sender::new(false),
            renewed: Notify::new(),
            renewals: Mutex::new(Renewals::new(limits.renewed_max)),
            transactions: Mutex::new(Transactions::new(TRANSACTIONS_MAX)),
            turn: AtomicUsize::new(0),
            requests: Arc::new(Semaphore::new(limits.requests_max)),
            receives: Arc::new(Semaphore::new(limits.receives_max)),
            telemetries: Arc::new(Semaphore::new(limits.clients_max)),
            reachable: Mutex::new(Err("no NameServer was asked yet".to_owned())),
            waiting: AtomicUsize::new(0),
            options,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.0.now()
    }

    pub(crate) fn renewals(&self) -> MutexGuard<'_, Renewals> {
        self.renewals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn transactions(&self) -> MutexGuard<'_, Transactions> {
        self.transactions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether brokers can be found.
    pub(crate) async fn look(&self) {
        let found = self.cluster.is_reachable().await;
        *self
            .reachable
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// What the last look found.
    pub(crate) fn reachable(&self) -> Result<(), String> {
        let found = self.reachable.lock();
        found.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn gauges(&self) -> Gauges {
        Gauges {
            connections: self.seats.taken(),
            clients: self.sessions.len(),
            waiting: self.waiting.load(Ordering::Relaxed),
            kept: self.renewals().len(),
            delivery_bytes: self.deliveries.bytes(),
        }
    }
}

/// An answer whose status says how the call ended.
trait Outcome: Default {
    fn with_status(self, status: Status) -> Self;
    fn code(&self) -> i32;
}

macro_rules! outcomes {
    ($($name:ident),+ $(,)?) => {$(
        impl Outcome for v2::$name {
            fn with_status(mut self, status: Status) -> Self {
                self.status = Some(status);
                self
            }
            fn code(&self) -> i32 {
                self.status.as_ref().map_or(0, |status| status.code)
            }
        }
    )+};
}
outcomes!(
    QueryRouteResponse,
    HeartbeatResponse,
    SendMessageResponse,
    QueryAssignmentResponse,
    AckMessageResponse,
    ForwardMessageToDeadLetterQueueResponse,
    EndTransactionResponse,
    NotifyClientTerminationResponse,
    ChangeInvisibleDurationResponse,
    RecallMessageResponse,
    SyncLiteSubscriptionResponse,
);

/// The refusal of a call for which there is no seat.
fn no_seat() -> Refusal {
    Refusal::new(
        Code::TooManyRequests,
        "flow limit: too many calls at a time",
    )
}

/// The service of one gateway.
#[derive(Clone, Debug)]
pub(crate) struct Rpc(pub(crate) Arc<Gateway>);

impl Rpc {
    /// Admits a call, has it done, and puts its outcome into the answer.
    async fn answer<I, O, W>(
        &self,
        call: &'static str,
        request: Request<I>,
        work: impl FnOnce(Arc<Gateway>, Context, I) -> W,
    ) -> Result<Response<O>, tonic::Status>
    where
        O: Outcome,
        W: Future<Output = Result<O, Refusal>>,
    {
        let context = Context::of(&request);
        let gateway = &self.0;
        let outcome = match (gateway.requests.try_acquire(), &context) {
            (Err(_), _) => Err(no_seat()),
            (_, Err(refusal)) => Err(refusal.clone()),
            (Ok(_seat), Ok(context)) => {
                work(Arc::clone(gateway), context.clone(), request.into_inner()).await
            }
        };
        let answer = outcome.unwrap_or_else(|refusal| {
            tracing::debug!(call, code = ?refusal.code, reason = refusal.message, "refused");
            O::default().with_status(refusal.status())
        });
        gateway.metrics.count(call, answer.code());
        Ok(Response::new(answer))
    }
}

/// A stream of answers.
type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, tonic::Status>> + Send>>;

type Answered<T> = Result<Response<T>, tonic::Status>;

fn nobody<T>(call: &str) -> Answered<T> {
    Err(tonic::Status::unimplemented(format!(
        "{call} is not served, as in the Java gateway"
    )))
}

#[tonic::async_trait]
impl MessagingService for Rpc {
    type ReceiveMessageStream = Streamed<v2::ReceiveMessageResponse>;
    type PullMessageStream = Streamed<v2::PullMessageResponse>;
    type TelemetryStream = Streamed<v2::TelemetryCommand>;

    async fn query_route(
        &self,
        request: Request<v2::QueryRouteRequest>,
    ) -> Answered<v2::QueryRouteResponse> {
        self.answer("QueryRoute", request, query::route).await
    }

    async fn heartbeat(
        &self,
        request: Request<v2::HeartbeatRequest>,
    ) -> Answered<v2::HeartbeatResponse> {
        self.answer("Heartbeat", request, telemetry::heartbeat)
            .await
    }

    async fn send_message(
        &self,
        request: Request<v2::SendMessageRequest>,
    ) -> Answered<v2::SendMessageResponse> {
        self.answer("SendMessage", request, send::send).await
    }

    async fn query_assignment(
        &self,
        request: Request<v2::QueryAssignmentRequest>,
    ) -> Answered<v2::QueryAssignmentResponse> {
        self.answer("QueryAssignment", request, query::assignment)
            .await
    }

    async fn receive_message(
        &self,
        request: Request<v2::ReceiveMessageRequest>,
    ) -> Answered<Self::ReceiveMessageStream> {
        let context = Context::of(&request);
        let stream = receive::receive(&self.0, context, request.into_inner()).await;
        Ok(Response::new(Box::pin(stream)))
    }

    async fn ack_message(
        &self,
        request: Request<v2::AckMessageRequest>,
    ) -> Answered<v2::AckMessageResponse> {
        self.answer("AckMessage", request, ack::ack).await
    }

    async fn forward_message_to_dead_letter_queue(
        &self,
        request: Request<v2::ForwardMessageToDeadLetterQueueRequest>,
    ) -> Answered<v2::ForwardMessageToDeadLetterQueueResponse> {
        self.answer("ForwardMessageToDeadLetterQueue", request, ack::dead_letter)
            .await
    }

    async fn pull_message(
        &self,
        _request: Request<v2::PullMessageRequest>,
    ) -> Answered<Self::PullMessageStream> {
        nobody("PullMessage")
    }

    async fn update_offset(
        &self,
        _request: Request<v2::UpdateOffsetRequest>,
    ) -> Answered<v2::UpdateOffsetResponse> {
        nobody("UpdateOffset")
    }

    async fn get_offset(
        &self,
        _request: Request<v2::GetOffsetRequest>,
    ) -> Answered<v2::GetOffsetResponse> {
        nobody("GetOffset")
    }

    async fn query_offset(
        &self,
        _request: Request<v2::QueryOffsetRequest>,
    ) -> Answered<v2::QueryOffsetResponse> {
        nobody("QueryOffset")
    }

    async fn end_transaction(
        &self,
        request: Request<v2::EndTransactionRequest>,
    ) -> Answered<v2::EndTransactionResponse> {
        self.answer("EndTransaction", request, transaction::end)
            .await
    }

    async fn telemetry(
        &self,
        request: Request<Streaming<v2::TelemetryCommand>>,
    ) -> Answered<Self::TelemetryStream> {
        let context = Context::of(&request);
        let stream = telemetry::open(&self.0, context, request.into_inner())?;
        Ok(Response::new(Box::pin(stream)))
    }

    async fn notify_client_termination(
        &self,
        request: Request<v2::NotifyClientTerminationRequest>,
    ) -> Answered<v2::NotifyClientTerminationResponse> {
        self.answer("NotifyClientTermination", request, telemetry::terminate)
            .await
    }

    async fn change_invisible_duration(
        &self,
        request: Request<v2::ChangeInvisibleDurationRequest>,
    ) -> Answered<v2::ChangeInvisibleDurationResponse> {
        self.answer("ChangeInvisibleDuration", request, ack::change)
            .await
    }

    async fn recall_message(
        &self,
        request: Request<v2::RecallMessageRequest>,
    ) -> Answered<v2::RecallMessageResponse> {
        self.answer("RecallMessage", request, transaction::recall)
            .await
    }

    async fn sync_lite_subscription(
        &self,
        request: Request<v2::SyncLiteSubscriptionRequest>,
    ) -> Answered<v2::SyncLiteSubscriptionResponse> {
        self.answer("SyncLiteSubscription", request, transaction::lite)
            .await
    }
}
