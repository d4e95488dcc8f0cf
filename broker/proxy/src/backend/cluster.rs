//! A cluster as its NameServers tell it: routes, kinds of topics, terms of groups, calls to masters.
//!
//! **Invariant:** NameServers are asked in turn until one answers; a route is asked anew when a call
//! to a broker of it fails. Nothing here knows gRPC but the codes of refusals.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmq_net::CallError;
use rmq_protocol::body::{ClusterInfo, SubscriptionGroupConfig, TopicConfig, TopicRouteData};
use rmq_protocol::header::{DecodeHeader, EncodeHeader, GetRoute, GroupHeader, TopicHeader};
use rmq_protocol::remoting::{Command, request_code, response_code};

use super::Upstream;
use super::cache::Cache;
use crate::proto::v2::Code;
use crate::rules::kind::{ATTRIBUTE, TopicKind};
use crate::rules::refusal::Refusal;
use crate::rules::route::Route;
use crate::rules::settings::GroupTerms;

/// A request to a broker or NameServer that does not wait for messages.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Names kept of each kind.
const NAMES_MAX: usize = 20_000;
const FRESH: Duration = Duration::from_secs(20);
const STALE: Duration = Duration::from_mins(5);
/// Brokers asked for a group's settings before it counts as unknown.
const GROUP_ASKS_MAX: usize = 8;

/// See the module.
#[derive(Debug)]
pub(crate) struct Cluster {
    upstream: Arc<dyn Upstream>,
    name_servers: Vec<String>,
    routes: Cache<Arc<Route>>,
    kinds: Cache<TopicKind>,
    groups: Cache<Arc<GroupTerms>>,
    masters: Cache<Arc<Vec<String>>>,
}

impl Cluster {
    pub(crate) fn new(upstream: Arc<dyn Upstream>, name_servers: Vec<String>) -> Self {
        Self {
            upstream,
            name_servers,
            routes: Cache::new(NAMES_MAX, FRESH, STALE),
            kinds: Cache::new(NAMES_MAX, FRESH, STALE),
            groups: Cache::new(NAMES_MAX, FRESH, STALE),
            masters: Cache::new(1, FRESH, STALE),
        }
    }

    /// Asks `addr`; any code is an answer.
    pub(crate) async fn exchange(
        &self,
        addr: &str,
        cmd: Command,
        within: Duration,
    ) -> Result<Command, CallError> {
        let code = cmd.code;
        let answer = self.upstream.call(addr, cmd, within).await;
        if let Err(error) = &answer {
            tracing::debug!(addr, request = code, %error, "no answer");
        }
        answer
    }

    /// Asks `addr`; only success is an answer.
    pub(crate) async fn ask(
        &self,
        addr: &str,
        cmd: Command,
        within: Duration,
    ) -> Result<Command, Refusal> {
        let answer = self.exchange(addr, cmd, within).await;
        let answer = answer.map_err(|error| Refusal::of_call(&error))?;
        if answer.code == response_code::SUCCESS {
            return Ok(answer);
        }
        Err(Refusal::of_answer(answer.code, answer.remark.as_deref()))
    }

    async fn ask_name_servers(&self, cmd: &Command) -> Result<Command, Refusal> {
        let mut last = Refusal::internal("no NameServer is known");
        for addr in &self.name_servers {
            match self.exchange(addr, cmd.clone(), REQUEST_TIMEOUT).await {
                Ok(answer) if answer.code == response_code::SUCCESS => return Ok(answer),
                Ok(answer) => {
                    return Err(Refusal::of_answer(answer.code, answer.remark.as_deref()));
                }
                Err(error) => last = Refusal::of_call(&error),
            }
        }
        Err(Refusal::internal(format!(
            "no NameServer answers: {}",
            last.message
        )))
    }

    /// Where a topic is.
    pub(crate) async fn route(&self, topic: &str) -> Result<Arc<Route>, Refusal> {
        let ask = async {
            let header = GetRoute {
                topic: topic.to_owned().into(),
                accept_standard_json_only: Some(true),
            };
            let cmd = request(request_code::GET_ROUTEINFO_BY_TOPIC, &header);
            let answer = self.ask_name_servers(&cmd).await?;
            let data = TopicRouteData::from_json(&answer.body).map_err(broken)?;
            if data.queue_datas.is_empty() {
                let text = format!("topic {topic} has no queue");
                return Err(Refusal::new(Code::TopicNotFound, text));
            }
            Ok(Arc::new(Route::new(data)))
        };
        self.routes.get(topic, Instant::now(), ask).await
    }

    /// Asks for the topic's route anew next time: a broker of it did not answer.
    pub(crate) fn forget_route(&self, topic: &str) {
        self.routes.forget(topic);
    }

    /// Which messages a topic takes, as one of its brokers says.
    pub(crate) async fn kind(&self, topic: &str, route: &Route) -> Result<TopicKind, Refusal> {
        let ask = async {
            let header = TopicHeader {
                topic: topic.to_owned().into(),
            };
            let mut last = Refusal::internal("the topic has no master");
            for (_, addr) in route.masters() {
                let cmd = request(request_code::GET_TOPIC_CONFIG, &header);
                match self.ask(addr, cmd, REQUEST_TIMEOUT).await {
                    Ok(answer) => {
                        let config = TopicConfig::from_json(&answer.body).map_err(broken)?;
                        let kind = config.attributes.get(ATTRIBUTE);
                        return Ok(TopicKind::parse(kind.map(String::as_str)));
                    }
                    Err(refusal) => last = refusal,
                }
            }
            Err(last)
        };
        self.kinds.get(topic, Instant::now(), ask).await
    }

    /// What a group's configuration means to its consumers; Java's defaults while there is none,
    /// since brokers make a group when it first consumes.
    pub(crate) async fn group(&self, group: &str) -> Result<Arc<GroupTerms>, Refusal> {
        let ask = async {
            let header = GroupHeader {
                group: group.to_owned().into(),
            };
            let masters = self.masters().await?;
            for addr in masters.iter().take(GROUP_ASKS_MAX) {
                let cmd = request(request_code::GET_SUBSCRIPTIONGROUP_CONFIG, &header);
                match self.ask(addr, cmd, REQUEST_TIMEOUT).await {
                    Ok(answer) => {
                        let config =
                            SubscriptionGroupConfig::from_json(&answer.body).map_err(broken)?;
                        return Ok(Arc::new(GroupTerms::new(&config)));
                    }
                    Err(refusal) if refusal.code == Code::ConsumerGroupNotFound => {}
                    Err(refusal) => tracing::debug!(addr, %refusal, "no settings of a group"),
                }
            }
            let text = format!("group {group} does not exist");
            Err(Refusal::new(Code::ConsumerGroupNotFound, text))
        };
        match self.groups.get(group, Instant::now(), ask).await {
            Err(refusal) if refusal.code == Code::ConsumerGroupNotFound => {
                let config = SubscriptionGroupConfig::named(group);
                Ok(Arc::new(GroupTerms::new(&config)))
            }
            known => known,
        }
    }

    async fn masters(&self) -> Result<Arc<Vec<String>>, Refusal> {
        let ask = async {
            let cmd = Command::request(request_code::GET_BROKER_CLUSTER_INFO);
            let answer = self.ask_name_servers(&cmd).await?;
            let info = ClusterInfo::from_json(&answer.body).map_err(broken)?;
            let masters = info.broker_addr_table.into_values();
            let masters: Vec<_> = masters
                .filter_map(|mut broker| broker.broker_addrs.remove(&0))
                .collect();
            if masters.is_empty() {
                return Err(Refusal::internal("no broker is there"));
            }
            Ok(Arc::new(masters))
        };
        self.masters.get("", Instant::now(), ask).await
    }

    /// Whether the NameServers answer and know a master.
    pub(crate) async fn is_reachable(&self) -> Result<(), String> {
        let found = self.masters().await;
        found.map(drop).map_err(|refusal| refusal.message)
    }

    /// The address of a broker's master: by the topic's route, or by that of the topic that every
    /// broker has under its own name.
    pub(crate) async fn master(&self, topic: &str, broker: &str) -> Result<String, Refusal> {
        for name in [topic, broker] {
            if let Ok(route) = self.route(name).await
                && let Some(addr) = route.master(broker)
            {
                return Ok(addr.to_owned());
            }
        }
        let text = format!("there is no broker {broker}");
        Err(Refusal::new(Code::BadRequest, text))
    }
}

/// A request with a typed header.
pub(crate) fn request(code: i32, header: &impl EncodeHeader) -> Command {
    Command::request(code).with_header(header)
}

/// The typed header of a broker's answer.
pub(crate) fn fields<'a, T: DecodeHeader<'a>>(answer: &'a Command) -> Result<T, Refusal> {
    T::decode(&answer.ext).map_err(broken)
}

fn broken(error: impl std::fmt::Display) -> Refusal {
    Refusal::internal(format!("an answer cannot be read: {error}"))
}
