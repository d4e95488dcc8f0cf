//! Telemetry, heartbeats and the end of clients.
//!
//! **Invariant:** a stream of telemetry keeps at most [`QUEUE`] commands for a client that does not
//! read; one more ends it. Settings come first; what is wrong in them ends the stream.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::proto::v2::telemetry_command::Command;
use crate::proto::v2::{
    ClientType, Code, HeartbeatRequest, HeartbeatResponse, NotifyClientTerminationRequest,
    NotifyClientTerminationResponse, Settings, TelemetryCommand,
};
use crate::rpc::{Context, Gateway, no_seat};
use crate::rules::refusal::{self, Refusal};
use crate::rules::settings::{self, Role};
use crate::rules::validate;

/// Commands that may wait for a client.
const QUEUE: usize = 16;

type Sender = mpsc::Sender<Result<TelemetryCommand, tonic::Status>>;

/// Opens a stream.
pub(super) fn open(
    gateway: &Arc<Gateway>,
    context: Result<Context, Refusal>,
    inbound: Streaming<TelemetryCommand>,
) -> Result<ReceiverStream<Result<TelemetryCommand, tonic::Status>>, tonic::Status> {
    let context = context.map_err(|refusal| ended(&refusal))?;
    let seat = Arc::clone(&gateway.telemetries)
        .try_acquire_owned()
        .map_err(|_| ended(&no_seat()))?;
    let (sender, receiver) = mpsc::channel(QUEUE);
    let stream = Telemetry {
        gateway: Arc::clone(gateway),
        client: context.client,
        sender,
        told: false,
        _seat: seat,
    };
    gateway.tasks.spawn(stream.run(inbound));
    Ok(ReceiverStream::new(receiver))
}

/// How a stream ends for this reason.
fn ended(refusal: &Refusal) -> tonic::Status {
    match refusal.code as i32 {
        40_000..=42_899 => tonic::Status::invalid_argument(refusal.message.clone()),
        42_900..=42_999 => tonic::Status::resource_exhausted(refusal.message.clone()),
        _ => tonic::Status::internal(refusal.message.clone()),
    }
}

struct Telemetry {
    gateway: Arc<Gateway>,
    client: String,
    sender: Sender,
    /// Settings were told on this stream.
    told: bool,
    _seat: OwnedSemaphorePermit,
}

impl Telemetry {
    async fn run(mut self, mut inbound: Streaming<TelemetryCommand>) {
        let mut stopping = self.gateway.stopping.subscribe();
        loop {
            let command = tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => break,
                () = self.sender.closed() => break,
                command = inbound.message() => command,
            };
            let Ok(Some(command)) = command else { break };
            let taken = self.take(command).await;
            self.gateway.metrics.count("Telemetry", code_of(&taken));
            let sent = match taken {
                Ok(None) => true,
                Ok(Some(answer)) => self.sender.try_send(Ok(answer)).is_ok(),
                Err(refusal) => {
                    // The stream ends: nobody needs to know if even this does not fit.
                    let _ = self.sender.try_send(Err(ended(&refusal)));
                    false
                }
            };
            if !sent {
                break;
            }
        }
        if self.told {
            let now = self.gateway.now();
            self.gateway.sessions.stream_ended(&self.client, now);
        }
    }

    async fn take(
        &mut self,
        command: TelemetryCommand,
    ) -> Result<Option<TelemetryCommand>, Refusal> {
        match command.command {
            Some(Command::Settings(told)) => {
                let merged = self.settings(told).await?;
                Ok(Some(TelemetryCommand {
                    status: Some(refusal::ok()),
                    command: Some(Command::Settings(merged)),
                }))
            }
            _ if !self.told => Err(Refusal::new(Code::BadRequest, "settings come first")),
            // Answers to commands that this gateway does not send yet.
            _ => {
                self.gateway.sessions.seen(&self.client, self.gateway.now());
                Ok(None)
            }
        }
    }

    async fn settings(&mut self, told: Settings) -> Result<Settings, Refusal> {
        let role = settings::check(&told)?;
        let merged = match &role {
            Role::Producer(_) => {
                settings::for_producer(told.clone(), self.gateway.options.limits.body_bytes_max)
            }
            Role::Consumer { group, .. } => {
                let terms = self.gateway.cluster.group(group).await?;
                settings::for_consumer(told.clone(), &terms)
            }
        };
        let now = self.gateway.now();
        let sessions = &self.gateway.sessions;
        sessions.told(&self.client, told, !self.told, now)?;
        self.told = true;
        Ok(merged)
    }
}

fn code_of(taken: &Result<Option<TelemetryCommand>, Refusal>) -> i32 {
    match taken {
        Ok(_) => Code::Ok.into(),
        Err(refusal) => refusal.code.into(),
    }
}

fn unrecognized(text: &str) -> Refusal {
    Refusal::new(Code::UnrecognizedClientType, text)
}

pub(super) async fn heartbeat(
    gateway: Arc<Gateway>,
    context: Context,
    request: HeartbeatRequest,
) -> Result<HeartbeatResponse, Refusal> {
    match request.client_type() {
        ClientType::Producer => {}
        ClientType::PushConsumer | ClientType::SimpleConsumer => {
            validate::group(request.group.as_ref())?;
        }
        ClientType::Unspecified
        | ClientType::PullConsumer
        | ClientType::LitePushConsumer
        | ClientType::LiteSimpleConsumer => {
            return Err(unrecognized("clients of this type are not served"));
        }
    }
    let known = gateway.sessions.seen(&context.client, gateway.now());
    if known.is_none() {
        return Err(unrecognized("the client has not told its settings"));
    }
    Ok(HeartbeatResponse {
        status: Some(refusal::ok()),
    })
}

pub(super) async fn terminate(
    gateway: Arc<Gateway>,
    context: Context,
    request: NotifyClientTerminationRequest,
) -> Result<NotifyClientTerminationResponse, Refusal> {
    if request.group.is_some() {
        validate::group(request.group.as_ref())?;
    }
    if !gateway.sessions.leave(&context.client) {
        return Err(unrecognized("the client has not told its settings"));
    }
    gateway.release(&context.client);
    Ok(NotifyClientTerminationResponse {
        status: Some(refusal::ok()),
    })
}
