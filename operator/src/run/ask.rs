//! What NameServers and brokers say when they are asked.
//!
//! **Invariant:** every question has a deadline, all of them are asked at once, and one that is not
//! answered is [`Answer::Unknown`] with its reason: never an empty answer. It is asked a second time
//! before that, so that one connection that ended does not make a cluster look broken.

use crate::observe::{Answer, Backlog, BrokerSeen, NameServerView};
use futures::StreamExt as _;
use rmq_admin::{AdminClient, AskError, ConfigMap};
use rmq_operator_api::ScaleInPolicy;
use std::collections::BTreeMap;

/// Questions of one cluster that wait for an answer at the same time.
const AT_ONCE: usize = 32;

/// A broker to be asked.
#[derive(Clone, Debug)]
pub(crate) struct BrokerToAsk {
    pub(crate) group: i32,
    pub(crate) ordinal: i32,
    /// `host:port` of the pod itself; the error is why it cannot be asked.
    pub(crate) address: Result<String, String>,
    /// What its clients should be told.
    pub(crate) intended: Option<String>,
    /// Name of the group in routes.
    pub(crate) broker_name: String,
    /// Whether the backlog of its consumers is wanted, and what is waited for.
    pub(crate) backlog: Option<ScaleInPolicy>,
}

/// What a broker said.
pub(crate) struct BrokerSaid {
    pub(crate) group: i32,
    pub(crate) ordinal: i32,
    pub(crate) broker: Answer<BrokerSeen>,
    pub(crate) backlog: Option<Answer<Backlog>>,
}

/// A NameServer to be asked.
#[derive(Clone, Debug)]
pub(crate) struct NameServerToAsk {
    /// As brokers and clients know it.
    pub(crate) name: String,
    /// Where it can be asked; the error is why it cannot.
    pub(crate) address: Result<String, String>,
}

/// Asks every NameServer.
pub(crate) async fn name_servers(
    admin: &AdminClient,
    asked: Vec<NameServerToAsk>,
) -> BTreeMap<String, Answer<NameServerView>> {
    futures::stream::iter(asked)
        .map(|ask| async move {
            let view = match &ask.address {
                Ok(address) => answer(twice(|| name_server(admin, address)).await),
                Err(reason) => Answer::Unknown(reason.clone()),
            };
            (ask.name, view)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}

async fn name_server(admin: &AdminClient, address: &str) -> Result<NameServerView, AskError> {
    let (info, config) = tokio::try_join!(
        admin.cluster_info_at(address),
        admin.name_server_config(address)
    )?;
    let brokers = info
        .broker_addr_table
        .into_iter()
        .map(|(name, data)| (name, data.broker_addrs.into_iter().collect()))
        .collect();
    Ok(NameServerView { brokers, config })
}

/// Asks every broker.
pub(crate) async fn brokers(
    admin: &AdminClient,
    cluster: &str,
    asked: Vec<BrokerToAsk>,
) -> Vec<BrokerSaid> {
    futures::stream::iter(asked)
        .map(|ask| async move {
            let (broker, backlog) = match &ask.address {
                Ok(address) => {
                    let seen = answer(twice(|| broker(admin, cluster, address, &ask)).await);
                    let backlog = match ask.backlog {
                        Some(policy) => {
                            Some(answer(twice(|| backlog(admin, address, policy)).await))
                        }
                        None => None,
                    };
                    (seen, backlog)
                }
                Err(reason) => (
                    Answer::Unknown(reason.clone()),
                    ask.backlog.map(|_| Answer::Unknown(reason.clone())),
                ),
            };
            BrokerSaid {
                group: ask.group,
                ordinal: ask.ordinal,
                broker,
                backlog,
            }
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}

/// Asks once more when no answer came; what was answered, be it a refusal, stands.
async fn twice<T, F: Future<Output = Result<T, AskError>>>(
    ask: impl Fn() -> F,
) -> Result<T, AskError> {
    match ask().await {
        Err(AskError::NoAnswer(error)) => {
            tracing::debug!(%error, "asked again");
            ask().await
        }
        other => other,
    }
}

fn answer<T>(result: Result<T, AskError>) -> Answer<T> {
    match result {
        Ok(value) => Answer::Known(value),
        Err(error) => Answer::Unknown(error.to_string()),
    }
}

async fn broker(
    admin: &AdminClient,
    cluster: &str,
    address: &str,
    ask: &BrokerToAsk,
) -> Result<BrokerSeen, AskError> {
    let (config, runtime, metadata) = tokio::try_join!(
        admin.broker_config(address),
        admin.runtime(address),
        admin.metadata(address, cluster, &ask.broker_name)
    )?;
    Ok(BrokerSeen {
        broker_id: number(&config, "brokerId").unwrap_or_default(),
        address: registered(&config),
        intended_address: ask.intended.clone(),
        version: runtime.version().map(str::to_owned),
        metadata: Some(metadata.hashes()),
        max_offset: runtime.log_end().unwrap_or_default(),
        disk_used_permille: runtime
            .disk_ratio()
            .map_or(0, |ratio| (ratio * 1000.0).round() as u32),
        // A broker listens once it has read its files.
        recovered: true,
        risks: Vec::new(),
        rejected: BTreeMap::new(),
        config,
    })
}

fn number(config: &ConfigMap, key: &str) -> Option<i64> {
    config.get(key)?.trim().parse().ok()
}

/// The address that the broker tells everybody.
fn registered(config: &ConfigMap) -> String {
    let text = |key: &str| config.get(key).map(String::as_str).unwrap_or_default();
    let (ip, port) = (text("brokerIP1"), text("listenPort"));
    if ip.contains(':') {
        format!("[{ip}]:{port}")
    } else {
        format!("{ip}:{port}")
    }
}

async fn backlog(
    admin: &AdminClient,
    address: &str,
    policy: ScaleInPolicy,
) -> Result<Backlog, AskError> {
    let (lags, runtime, config) = tokio::try_join!(
        admin.group_lags_at(address),
        admin.runtime(address),
        admin.broker_config(address)
    )?;
    let slowest = lags
        .iter()
        .filter(|(_, lag)| lag.lag > 0)
        .max_by_key(|(_, lag)| lag.lag)
        .map(|(name, _)| name.clone());
    let consumed: i64 = lags.values().map(|lag| lag.lag).sum();
    let later: i64 = runtime
        .0
        .table
        .iter()
        .filter(|(key, _)| key.starts_with("scheduleMessageOffset_"))
        .filter_map(|(_, value)| still_to_come(value))
        .sum();
    let newest_at = if policy == ScaleInPolicy::WaitRetention {
        admin.newest_message_at(address).await?
    } else {
        None
    };
    Ok(Backlog {
        remaining: consumed.saturating_add(later),
        slowest_group: slowest,
        newest_at,
        retention_hours: number(&config, "fileReservedTime").unwrap_or_default(),
    })
}

/// `delivered,last` of a delay level: how many messages wait for their time.
fn still_to_come(text: &str) -> Option<i64> {
    let (delivered, last) = text.split_once(',')?;
    let (delivered, last): (i64, i64) = (delivered.trim().parse().ok()?, last.trim().parse().ok()?);
    Some(last.saturating_sub(delivered).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn messages_that_wait_for_their_time_are_counted() {
        assert_eq!(still_to_come("3,10"), Some(7));
        assert_eq!(still_to_come("10, 3"), Some(0));
        assert_eq!(still_to_come("x"), None);
    }

    #[test]
    fn the_registered_address_is_the_one_in_force() {
        let config = |ip: &str| {
            ConfigMap::from([
                ("brokerIP1".to_owned(), ip.to_owned()),
                ("listenPort".to_owned(), "10911".to_owned()),
            ])
        };
        assert_eq!(registered(&config("10.0.0.1")), "10.0.0.1:10911");
        assert_eq!(registered(&config("fd00::1")), "[fd00::1]:10911");
    }

    #[tokio::test]
    async fn what_was_not_answered_is_asked_once_more_and_a_refusal_is_not() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let admin = crate::run::admin::client(std::slice::from_ref(&address));
        let asked = Cell::new(0);
        let count = || asked.replace(asked.get() + 1);
        let second = twice(|| async {
            match count() {
                0 => admin.runtime(&address).await.map(|_| "none"),
                _ => Ok("the second"),
            }
        });
        assert_eq!((second.await.unwrap(), asked.replace(0)), ("the second", 2));
        let never = twice(|| async {
            count();
            admin.runtime(&address).await
        });
        assert!(matches!(never.await, Err(AskError::NoAnswer(_))));
        assert_eq!(asked.replace(0), 2);
        let refused = twice(|| async {
            count();
            let broker = "broker-0".to_owned();
            Err::<(), _>(AskError::NoMaster { broker })
        });
        assert!(refused.await.is_err());
        assert_eq!(asked.get(), 1);
    }

    #[tokio::test]
    async fn nobody_there_is_unknown_with_the_reason_and_holds_up_nobody() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let admin = crate::run::admin::client(std::slice::from_ref(&address));
        let asked = [Ok(address), Err("its pod is away".to_owned())];
        let asked = asked
            .into_iter()
            .enumerate()
            .map(|(n, address)| NameServerToAsk {
                name: n.to_string(),
                address,
            });
        let views = name_servers(&admin, asked.collect()).await;
        assert!(matches!(&views["0"], Answer::Unknown(reason) if !reason.is_empty()));
        assert_eq!(views["1"], Answer::Unknown("its pod is away".to_owned()));
        let ask = BrokerToAsk {
            group: 0,
            ordinal: 0,
            address: Err("the pod has no address yet".to_owned()),
            intended: None,
            broker_name: "broker-0".to_owned(),
            backlog: Some(ScaleInPolicy::WaitConsumed),
        };
        let said = brokers(&admin, "c", vec![ask]).await;
        let reason = || "the pod has no address yet".to_owned();
        assert_eq!(said[0].broker, Answer::Unknown(reason()));
        assert_eq!(said[0].backlog, Some(Answer::Unknown(reason())));
    }
}
