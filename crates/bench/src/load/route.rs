//! Route queries to a NameServer.
//!
//! Invariant: only answers that hold a route count.

use anyhow::{Context, Result, ensure};
use rmq_protocol::remoting::{Command, request_code};
use serde_json::{Map, Value, json};

use super::{describe, now_millis, plan};
use crate::RouteArgs;
use crate::control::{Control, resolve};
use crate::engine::{self, Traffic};
use crate::frames::{Template, topic_names};
use crate::reply::Reply;
use crate::report::Report;

/// See the module.
#[derive(Debug)]
struct Routes {
    templates: Vec<Template>,
    sent: usize,
}

impl Traffic for Routes {
    fn request(&mut self, _lane: usize, opaque: i32, out: &mut Vec<u8>) {
        if let Some(template) = self.templates.get(self.sent % self.templates.len().max(1)) {
            template.write(opaque, 0, out);
        }
        self.sent += 1;
    }

    fn answer(&mut self, _lane: usize, reply: &Reply<'_>) -> Option<u64> {
        (reply.code == 0 && !reply.body().is_empty()).then_some(1)
    }
}

/// Registers a made-up broker with the topics, and one more: a first registration of a single topic
/// is taken for an update and refused.
fn register(control: &mut Control, topics: &[String], queues: u32) -> Result<()> {
    let spare = "bench-spare".to_owned();
    let table: Map<String, Value> = topics
        .iter()
        .chain([&spare])
        .map(|name| {
            let config = json!({
                "topicName": name, "readQueueNums": queues, "writeQueueNums": queues, "perm": 6,
                "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": false,
            });
            (name.clone(), config)
        })
        .collect();
    let version = json!({ "counter": 1, "stateVersion": 0, "timestamp": now_millis() });
    let body = json!({
        "topicConfigSerializeWrapper": { "dataVersion": version, "topicConfigTable": table },
        "filterServerList": [],
    });
    let cmd = Command::request(request_code::REGISTER_BROKER)
        .with_ext("brokerName", "bench-broker")
        .with_ext("brokerAddr", "127.0.0.1:65001")
        .with_ext("clusterName", "bench-cluster")
        .with_ext("haServerAddr", "127.0.0.1:65002")
        .with_ext("brokerId", "0")
        .with_ext("heartbeatTimeoutMillis", "600000")
        .with_ext("compressed", "false")
        .with_ext("bodyCrc32", "0")
        .with_body(body.to_string());
    control.call(cmd).context("cannot register a broker")?;
    Ok(())
}

/// `bench route`.
pub(crate) fn run(args: &RouteArgs) -> Result<Report> {
    let addr = resolve(&args.addr)?;
    let topics = topic_names(&args.topic, args.topics);
    // Registered on a connection that stays open: a NameServer forgets a broker with its channel.
    let mut control = Control::connect(addr)?;
    if args.register {
        register(&mut control, &topics, args.queues)?;
    }
    let templates = topics
        .iter()
        .map(|topic| {
            let fields = [("acceptStandardJsonOnly", "true"), ("topic", topic)];
            Template::new(request_code::GET_ROUTEINFO_BY_TOPIC, &fields, 0)
        })
        .collect();
    let title = format!("route of {} topics, {}", topics.len(), describe(&args.load));
    let plan = plan(title, addr, &args.load);
    let mut routes = Routes { templates, sent: 0 };
    let measured = engine::run(&plan, &mut routes).context("asking for routes")?;
    drop(control);
    let unknown = measured.errors.contains_key(&17);
    ensure!(
        measured.requests > 0 || !unknown,
        "the topic is unknown there: use --register"
    );
    Ok(Report::of(
        plan.title,
        addr.to_string(),
        plan.pid,
        &measured,
    ))
}
