//! Telemetry, heartbeats, health, reflection and the end of a gateway.

#[cfg(test)]
mod common;

use common::{Client, Stage, call, connect, named, receive, received};
use rmq_proxy::proto::v2::settings::PubSub;
use rmq_proxy::proto::v2::telemetry_command::Command;
use rmq_proxy::proto::v2::{self, ClientType, Code, Settings, TelemetryCommand};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

#[cfg(test)]
fn consumer() -> Settings {
    Settings {
        client_type: Some(ClientType::PushConsumer.into()),
        pub_sub: Some(PubSub::Subscription(v2::Subscription {
            group: named("g"),
            subscriptions: vec![v2::SubscriptionEntry {
                topic: named("t"),
                expression: None,
            }],
            ..v2::Subscription::default()
        })),
        ..Settings::default()
    }
}

struct Stream {
    sender: mpsc::Sender<TelemetryCommand>,
    answers: Streaming<TelemetryCommand>,
}

#[cfg(test)]
impl Stream {
    async fn open(client: &mut Client) -> Self {
        let (sender, receiver) = mpsc::channel(8);
        let answers = client
            .telemetry(call(ReceiverStream::new(receiver)))
            .await
            .unwrap()
            .into_inner();
        Self { sender, answers }
    }

    async fn tell(
        &mut self,
        settings: Settings,
    ) -> Result<Option<TelemetryCommand>, tonic::Status> {
        let told = TelemetryCommand {
            status: None,
            command: Some(Command::Settings(settings)),
        };
        self.sender.send(told).await.unwrap();
        self.answers.message().await
    }
}

#[cfg(test)]
async fn heartbeat(client: &mut Client, kind: ClientType) -> Code {
    let request = call(v2::HeartbeatRequest {
        group: named("g"),
        client_type: kind.into(),
    });
    let answer = client.heartbeat(request).await.unwrap().into_inner();
    answer.status.unwrap().code()
}

#[tokio::test]
async fn a_consumer_is_told_its_groups_terms_again_and_again() {
    let mut stage = Stage::new().await;
    let mut stream = Stream::open(&mut stage.client).await;
    for _ in 0..2 {
        let answer = stream.tell(consumer()).await.unwrap().unwrap();
        assert_eq!(answer.status.unwrap().code(), Code::Ok);
        let Some(Command::Settings(told)) = answer.command else {
            panic!("no settings");
        };
        assert_eq!(told.backoff_policy.unwrap().max_attempts, 17);
        let Some(PubSub::Subscription(it)) = told.pub_sub else {
            panic!("no subscription");
        };
        assert_eq!((it.fifo, it.receive_batch_size), (Some(false), Some(32)));
    }
}

#[tokio::test]
async fn bad_settings_and_words_before_settings_end_the_stream() {
    let mut stage = Stage::new().await;
    for settings in [Settings::default(), {
        let mut bad = consumer();
        if let Some(PubSub::Subscription(it)) = &mut bad.pub_sub {
            it.group = None;
        }
        bad
    }] {
        let mut stream = Stream::open(&mut stage.client).await;
        let end = stream.tell(settings).await.unwrap_err();
        assert_eq!(end.code(), tonic::Code::InvalidArgument);
    }
    let mut stream = Stream::open(&mut stage.client).await;
    stream
        .sender
        .send(TelemetryCommand::default())
        .await
        .unwrap();
    let end = stream.answers.message().await.unwrap_err();
    assert_eq!(end.code(), tonic::Code::InvalidArgument);
    let (_sender, receiver) = mpsc::channel::<TelemetryCommand>(1);
    let nobody = tonic::Request::new(ReceiverStream::new(receiver));
    let end = stage.client.telemetry(nobody).await.unwrap_err();
    assert_eq!(end.code(), tonic::Code::InvalidArgument);
}

#[tokio::test]
async fn a_heartbeat_needs_settings_and_a_known_kind_of_client() {
    let mut stage = Stage::new().await;
    let unknown = Code::UnrecognizedClientType;
    assert_eq!(
        heartbeat(&mut stage.client, ClientType::Producer).await,
        unknown
    );
    let mut stream = Stream::open(&mut stage.client).await;
    stream.tell(consumer()).await.unwrap();
    for (kind, wanted) in [
        (ClientType::PushConsumer, Code::Ok),
        (ClientType::SimpleConsumer, Code::Ok),
        (ClientType::Producer, Code::Ok),
        (ClientType::Unspecified, unknown),
        (ClientType::PullConsumer, unknown),
    ] {
        assert_eq!(heartbeat(&mut stage.client, kind).await, wanted, "{kind:?}");
    }
    for wanted in [Code::Ok, unknown] {
        let end = call(v2::NotifyClientTerminationRequest { group: None });
        let answer = stage.client.notify_client_termination(end).await.unwrap();
        assert_eq!(answer.into_inner().status.unwrap().code(), wanted);
    }
}

#[tokio::test]
async fn half_closing_a_stream_closes_it() {
    let mut stage = Stage::new().await;
    let mut stream = Stream::open(&mut stage.client).await;
    stream.tell(consumer()).await.unwrap();
    drop(stream.sender);
    assert!(stream.answers.message().await.unwrap().is_none());
}

#[tokio::test]
async fn streams_beyond_the_bound_are_refused() {
    let mut stage = Stage::with(&[("a", "h:1")], |options| {
        options.limits.clients_max = 1;
    })
    .await;
    let _first = Stream::open(&mut stage.client).await;
    let (_sender, receiver) = mpsc::channel::<TelemetryCommand>(1);
    let second = call(ReceiverStream::new(receiver));
    let end = stage.client.telemetry(second).await.unwrap_err();
    assert_eq!(end.code(), tonic::Code::ResourceExhausted);
}

#[tokio::test]
async fn health_and_reflection_are_served() {
    let stage = Stage::new().await;
    let addr = format!("http://{}", stage.proxy.local_addr());
    let channel = tonic::transport::Channel::from_shared(addr).unwrap();
    let channel = channel.connect().await.unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    for service in ["", "apache.rocketmq.v2.MessagingService"] {
        let request = tonic_health::pb::HealthCheckRequest {
            service: service.into(),
        };
        let answer = health.check(request).await.unwrap().into_inner();
        assert_eq!(answer.status, 1, "{service}");
    }
    let request = tonic_reflection::pb::v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut client = ServerReflectionClient::new(channel);
    let mut answers = client
        .server_reflection_info(tokio_stream::iter([request]))
        .await
        .unwrap()
        .into_inner();
    let answer = answers.message().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("no list");
    };
    let names: Vec<_> = list.service.iter().map(|one| one.name.as_str()).collect();
    assert!(
        names.contains(&"apache.rocketmq.v2.MessagingService"),
        "{names:?}"
    );
}

#[tokio::test]
async fn a_stop_ends_streams_and_waiting_receives_and_frees_the_port() {
    let mut stage = Stage::new().await;
    let mut stream = Stream::open(&mut stage.client).await;
    stream.tell(consumer()).await.unwrap();
    let mut waiting = connect(stage.proxy.local_addr()).await;
    let addr = stage.proxy.local_addr();
    let probe = stage.proxy.probe();
    let receive = received(&mut waiting, call(receive("g", "t")));
    let stop = async {
        stage.fake.until(|state| state.pops_now == 1).await;
        while probe.ready().is_err() {
            tokio::task::yield_now().await;
        }
        let stop = stage.proxy.shutdown();
        let end = async {
            let answer = stream.answers.message().await;
            // The pop that is under way finds nothing.
            stage.fake.set(|state| state.no_wait = true);
            answer
        };
        tokio::join!(stop, end).1
    };
    let (received, end) = tokio::join!(receive, stop);
    assert_eq!(received.unwrap().code(), Code::MessageNotFound);
    assert!(matches!(end, Ok(None)), "{end:?}");
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
    assert!(probe.ready().is_err());
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let stage = Stage::new().await;
    let options = rmq_proxy::Options {
        listen: stage.proxy.local_addr(),
        name_servers: vec!["ns:1".into()],
        ..rmq_proxy::Options::default()
    };
    let clock = std::sync::Arc::new(rmq_types::SystemClock);
    let error = rmq_proxy::Proxy::start(options, clock).await.unwrap_err();
    let addr = stage.proxy.local_addr().to_string();
    assert!(error.to_string().contains(&addr), "{error}");
}
