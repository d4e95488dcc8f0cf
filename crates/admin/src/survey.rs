//! One look at a whole cluster: NameServers, broker groups with their masters and replicas, what
//! each of them takes now.
//!
//! **Invariant:** everything here was said by a NameServer or a broker a moment ago; what nobody
//! said is absent, never assumed. A server that does not answer stays in its list with the reason.

use std::collections::{BTreeMap, BTreeSet};

use rmq_protocol::{
    body::{BrokerData, ClusterInfo, EpochEntryCache, HaRuntimeInfo, TopicRouteData},
    header::GetRoute,
    remoting::{Command, request_code},
};
use rmq_types::{ClusterName, system};

use crate::{
    AdminClient, AskError, BrokerRuntime, NameServerError, TargetError,
    answers::in_parallel,
    client::{body, request},
};

const PERM_WRITE: i32 = 2;
const PERM_READ: i32 = 4;
const MASTER: i64 = 0;

/// What all servers said.
#[derive(Debug)]
pub struct Survey {
    /// The NameServers, in the order in which they were given.
    pub name_servers: Vec<NameServerSight>,
    /// The broker groups, by cluster and name.
    pub groups: Vec<GroupSight>,
}

/// A NameServer.
#[derive(Debug)]
pub struct NameServerSight {
    /// Its address.
    pub addr: String,
    /// How many brokers are registered there, replicas included.
    pub brokers: Result<usize, AskError>,
}

/// A broker group.
#[derive(Debug)]
pub struct GroupSight {
    /// Its cluster.
    pub cluster: String,
    /// Its name.
    pub broker: String,
    /// Its registered members, the master first.
    pub members: Vec<MemberSight>,
    /// What clients may do there (4 reads, 2 writes), as every NameServer that answers agrees;
    /// none if no NameServer says.
    pub perm: Option<i32>,
    /// What the master says of its replicas; none if it does not know the request.
    pub replication: Option<HaRuntimeInfo>,
    /// The master's epoch; none without a controller.
    pub epoch: Option<i32>,
    /// NameServers that answer and do not know every member at its address.
    pub missing_on: Vec<String>,
}

/// A broker.
#[derive(Debug)]
pub struct MemberSight {
    /// Its id; 0 is the master.
    pub id: i64,
    /// Its address.
    pub addr: String,
    /// What it says of itself.
    pub runtime: Result<BrokerRuntime, AskError>,
}

impl GroupSight {
    /// The registered master.
    #[must_use]
    pub fn master(&self) -> Option<&MemberSight> {
        self.members.iter().find(|member| member.id == MASTER)
    }

    /// Whether pulls are served.
    #[must_use]
    pub fn is_readable(&self) -> Option<bool> {
        self.serves(PERM_READ, |_| true)
    }

    /// Whether sends are taken.
    #[must_use]
    pub fn is_writable(&self) -> Option<bool> {
        self.serves(PERM_WRITE, |member| member.id == MASTER)
    }

    fn serves(&self, bit: i32, by: impl Fn(&MemberSight) -> bool) -> Option<bool> {
        let mut able = self.members.iter().filter(|member| by(member));
        if !able.any(MemberSight::is_active) {
            return Some(false);
        }
        self.perm.map(|perm| perm & bit != 0)
    }

    /// How many members are in sync, the master included, and how many there are.
    #[must_use]
    pub fn in_sync(&self) -> Option<(usize, usize)> {
        let all = self.members.len();
        let master = self.master().is_some_and(|master| master.runtime.is_ok());
        if !master {
            return None;
        }
        match (&self.replication, all) {
            (_, 1) => Some((1, 1)),
            (Some(info), _) => {
                let replicas = usize::try_from(info.in_sync_slave_nums).unwrap_or(0);
                Some((replicas.saturating_add(1).min(all), all))
            }
            (None, _) => None,
        }
    }

    /// Bytes of log that the slowest replica lacks; none if there is no replica, or nobody says.
    #[must_use]
    pub fn lag_bytes(&self) -> Option<i64> {
        let end = |member: &MemberSight| member.runtime.as_ref().ok()?.log_end();
        let master = end(self.master()?)?;
        let replicas = self.members.iter().filter(|member| member.id != MASTER);
        replicas
            .filter_map(end)
            .map(|replica| master.saturating_sub(replica).max(0))
            .max()
    }
}

impl MemberSight {
    /// True if it answers and does not stop.
    #[must_use]
    pub fn is_active(&self) -> bool {
        let runtime = self.runtime.as_ref().ok();
        runtime.is_some_and(|runtime| runtime.get("brokerActive") != Some("false"))
    }
}

/// What one NameServer knows.
struct View {
    addr: String,
    info: Result<ClusterInfo, AskError>,
    /// By group; empty if it does not say.
    perms: BTreeMap<String, i32>,
}

impl AdminClient {
    /// Asks every NameServer and then every broker of one cluster or of all (codes 106, 105, 28,
    /// 907 and 1007). Fails if no NameServer answers, or if none knows the cluster that is asked for.
    pub async fn survey(&self, cluster: Option<&ClusterName>) -> Result<Survey, TargetError> {
        let admin = self.clone();
        let addresses = self.name_servers().to_vec();
        let views = in_parallel(addresses, |addr| {
            let admin = admin.clone();
            async move { admin.view(addr).await }
        })
        .await;
        let (groups, known) = merge(&views, cluster);
        let answering = views.iter().any(|view| view.info.is_ok());
        if let (Some(wanted), true, true) = (cluster, answering, groups.is_empty()) {
            return Err(TargetError::NoSuchCluster {
                name: wanted.to_string(),
                known,
            });
        }
        let name_servers = sights(views)?;
        let groups = in_parallel(groups, |group| {
            let admin = admin.clone();
            async move { admin.look(group).await }
        })
        .await;
        Ok(Survey {
            name_servers,
            groups,
        })
    }

    async fn view(&self, addr: String) -> View {
        let code = request_code::GET_BROKER_CLUSTER_INFO;
        let info = match self.ask(&addr, Command::request(code)).await {
            Ok(answer) => body(&addr, code, &answer, ClusterInfo::from_json),
            Err(error) => Err(error),
        };
        let mut perms = BTreeMap::new();
        if info.is_ok() {
            let code = request_code::GET_ROUTEINFO_BY_TOPIC;
            let header = GetRoute {
                topic: system::SELF_TEST_TOPIC.into(),
                accept_standard_json_only: Some(true),
            };
            let answer = self.ask(&addr, request(code, &header)).await;
            let route = answer.and_then(|a| body(&addr, code, &a, TopicRouteData::from_json));
            let queues = route.map(|route| route.queue_datas).unwrap_or_default();
            perms.extend(queues.into_iter().map(|data| (data.broker_name, data.perm)));
        }
        View { addr, info, perms }
    }

    async fn look(&self, found: Found) -> GroupSight {
        let members = in_parallel(found.members, |(id, addr)| {
            let admin = self.clone();
            async move {
                let runtime = admin.runtime(&addr).await;
                MemberSight { id, addr, runtime }
            }
        })
        .await;
        let mut group = GroupSight {
            cluster: found.cluster,
            broker: found.broker,
            members,
            perm: found.perm,
            replication: None,
            epoch: None,
            missing_on: found.missing_on,
        };
        let master = group.master().filter(|master| master.runtime.is_ok());
        if let Some(addr) = master.map(|master| master.addr.clone()) {
            let code = request_code::GET_BROKER_HA_STATUS;
            group.replication = self.may_know(&addr, code, HaRuntimeInfo::from_json).await;
            let code = request_code::GET_BROKER_EPOCH_CACHE;
            let epochs = self.may_know(&addr, code, EpochEntryCache::from_json).await;
            group.epoch = epochs
                .and_then(|cache| cache.epoch_list.iter().map(|entry| entry.epoch).max())
                .filter(|epoch| *epoch > 0);
        }
        group
    }

    /// An answer that servers of some versions or modes refuse.
    async fn may_know<T>(
        &self,
        addr: &str,
        code: i32,
        read: impl Fn(&[u8]) -> Result<T, rmq_protocol::json::JsonError>,
    ) -> Option<T> {
        let answer = self.ask(addr, Command::request(code)).await.ok()?;
        read(&answer.body).ok()
    }
}

fn sights(views: Vec<View>) -> Result<Vec<NameServerSight>, TargetError> {
    if views.iter().any(|view| view.info.is_ok()) {
        let sight = |view: View| NameServerSight {
            addr: view.addr,
            brokers: view.info.map(|info| {
                let groups = info.broker_addr_table.values();
                groups.map(|group| group.broker_addrs.len()).sum()
            }),
        };
        return Ok(views.into_iter().map(sight).collect());
    }
    let addresses = views.iter().map(|view| view.addr.clone()).collect();
    let mut causes: Vec<_> = views
        .into_iter()
        .filter_map(|view| view.info.err())
        .collect();
    // One that answers and refuses says more than several that are not there.
    let refusal = causes.iter().position(|error| error.code().is_some());
    Err(match refusal {
        Some(index) => NameServerError::Refused(causes.swap_remove(index)),
        None => NameServerError::NoneAnswers { addresses, causes },
    }
    .into())
}

/// A group as NameServers know it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    cluster: String,
    broker: String,
    members: Vec<(i64, String)>,
    perm: Option<i32>,
    missing_on: Vec<String>,
}

/// All groups that any NameServer knows, and the names of all clusters.
fn merge(views: &[View], wanted: Option<&ClusterName>) -> (Vec<Found>, Vec<String>) {
    let mut clusters = BTreeSet::new();
    let mut groups: BTreeMap<(String, String), BTreeMap<i64, String>> = BTreeMap::new();
    for (_, info) in infos(views) {
        clusters.extend(info.cluster_addr_table.keys().cloned());
        for data in info.broker_addr_table.values() {
            if wanted.is_some_and(|wanted| wanted.as_str() != data.cluster) {
                continue;
            }
            let key = (data.cluster.clone(), data.broker_name.clone());
            let members = groups.entry(key).or_default();
            for (id, addr) in &data.broker_addrs {
                members.entry(*id).or_insert_with(|| addr.clone());
            }
        }
    }
    let found = groups.into_iter().map(|((cluster, broker), members)| {
        let perms = views.iter().filter_map(|view| view.perms.get(&broker));
        let lacking =
            infos(views).filter(|(_, info)| !knows(info.broker_addr_table.get(&broker), &members));
        Found {
            perm: perms.copied().reduce(|a, b| a & b),
            missing_on: lacking.map(|(addr, _)| addr.to_owned()).collect(),
            cluster,
            broker,
            members: members.into_iter().collect(),
        }
    });
    (found.collect(), clusters.into_iter().collect())
}

/// The NameServers that answered, with what they said.
fn infos(views: &[View]) -> impl Iterator<Item = (&str, &ClusterInfo)> {
    views
        .iter()
        .filter_map(|view| Some((view.addr.as_str(), view.info.as_ref().ok()?)))
}

fn knows(data: Option<&BrokerData>, members: &BTreeMap<i64, String>) -> bool {
    data.is_some_and(|data| {
        let mut all = members.iter();
        all.all(|(id, addr)| data.broker_addrs.get(id) == Some(addr))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmq_protocol::body::KvTable;

    fn view(addr: &str, info: &[u8], perms: &[(&str, i32)]) -> View {
        let perm = |(broker, perm): &(&str, i32)| ((*broker).to_owned(), *perm);
        View {
            addr: addr.to_owned(),
            info: Ok(ClusterInfo::from_json(info).unwrap()),
            perms: perms.iter().map(perm).collect(),
        }
    }

    const BOTH: &[u8] = br#"{"brokerAddrTable":{
        "a":{"brokerAddrs":{0:"h:1",1:"h:2"},"brokerName":"a","cluster":"c"},
        "b":{"brokerAddrs":{0:"h:3"},"brokerName":"b","cluster":"d"}},
        "clusterAddrTable":{"c":["a"],"d":["b"]}}"#;
    const ONE: &[u8] = br#"{"brokerAddrTable":{
        "a":{"brokerAddrs":{0:"h:1"},"brokerName":"a","cluster":"c"}},
        "clusterAddrTable":{"c":["a"]}}"#;

    fn member(id: i64, pairs: &[(&str, &str)]) -> MemberSight {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        MemberSight {
            id,
            addr: format!("h:{id}"),
            runtime: Ok(BrokerRuntime(KvTable {
                table: pairs.iter().map(pair).collect(),
            })),
        }
    }

    fn dead(id: i64) -> MemberSight {
        MemberSight {
            id,
            addr: format!("h:{id}"),
            runtime: Err(AskError::NoMaster {
                broker: "a".to_owned(),
            }),
        }
    }

    fn group(members: Vec<MemberSight>) -> GroupSight {
        GroupSight {
            cluster: "c".to_owned(),
            broker: "a".to_owned(),
            members,
            perm: Some(6),
            replication: None,
            epoch: None,
            missing_on: Vec::new(),
        }
    }

    #[test]
    fn what_one_name_server_lacks_is_found_and_permissions_hold_only_where_all_agree() {
        let views = [
            view("n1", BOTH, &[("a", 6), ("b", 6)]),
            view("n2", ONE, &[("a", 4)]),
        ];
        let (groups, clusters) = merge(&views, None);
        assert_eq!(clusters, ["c", "d"]);
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].members.len(), 2);
        assert_eq!((groups[0].perm, groups[1].perm), (Some(4), Some(6)));
        assert_eq!(groups[0].missing_on, ["n2"]);
        assert_eq!(groups[1].missing_on, ["n2"]);
        let (only, _) = merge(&views, Some(&ClusterName::parse("d").unwrap()));
        assert_eq!(only.len(), 1);
        assert_eq!(only[0].broker, "b");
    }

    #[test]
    fn a_group_is_writable_by_its_master_alone_and_readable_by_any_member() {
        let healthy = group(vec![member(0, &[]), member(1, &[])]);
        assert_eq!(
            (healthy.is_readable(), healthy.is_writable()),
            (Some(true), Some(true))
        );
        let masterless = group(vec![dead(0), member(1, &[])]);
        assert_eq!(
            (masterless.is_readable(), masterless.is_writable()),
            (Some(true), Some(false))
        );
        let stopping = group(vec![member(0, &[("brokerActive", "false")])]);
        assert_eq!(stopping.is_readable(), Some(false));
        let wiped = GroupSight {
            perm: Some(4),
            ..group(vec![member(0, &[])])
        };
        assert_eq!(
            (wiped.is_readable(), wiped.is_writable()),
            (Some(true), Some(false))
        );
        let untold = GroupSight {
            perm: None,
            ..group(vec![member(0, &[])])
        };
        assert_eq!(untold.is_writable(), None);
    }

    #[test]
    fn a_master_alone_is_in_sync_and_of_replicas_only_what_the_master_says_counts() {
        assert_eq!(group(vec![member(0, &[])]).in_sync(), Some((1, 1)));
        let mut three = group(vec![member(0, &[]), member(1, &[]), member(2, &[])]);
        assert_eq!(three.in_sync(), None);
        three.replication = Some(HaRuntimeInfo {
            in_sync_slave_nums: 1,
            ..HaRuntimeInfo::default()
        });
        assert_eq!(three.in_sync(), Some((2, 3)));
        assert_eq!(group(vec![dead(0), member(1, &[])]).in_sync(), None);
    }

    #[test]
    fn lag_is_of_the_slowest_replica_and_never_negative() {
        let end = |id, end| member(id, &[("commitLogMaxOffset", end)]);
        let lag = |members| group(members).lag_bytes();
        assert_eq!(
            lag(vec![end(0, "100"), end(1, "90"), end(2, "40")]),
            Some(60)
        );
        assert_eq!(lag(vec![end(0, "100"), end(1, "120")]), Some(0));
        assert_eq!(lag(vec![end(0, "100")]), None);
        assert_eq!(lag(vec![dead(0), end(1, "1")]), None);
    }
}
