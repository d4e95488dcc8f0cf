//! The brokers of a cluster and how they are doing.
//!
//! **Invariant:** a broker that does not answer stays in the list with the reason. Figures a broker
//! does not give are absent, never zero.

use rmq_protocol::{
    body::{ClusterInfo, KvTable},
    remoting::{Command, request_code},
};
use rmq_types::{BrokerId, ClusterName};

use crate::{AdminClient, Answers, Target, TargetError, answers::ask_all, client::body};

/// What a broker says of itself (code 28).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerRuntime(
    /// Names and values as Java's tools know them.
    pub KvTable,
);

impl BrokerRuntime {
    /// One value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.table.get(name).map(String::as_str)
    }

    /// The broker's version as it names it.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.get("brokerVersionDesc")
    }

    /// Messages stored a second, mean of the last 10 s.
    #[must_use]
    pub fn in_tps(&self) -> Option<f64> {
        self.first_number("putTps")
    }

    /// Messages handed out a second, mean of the last 10 s.
    #[must_use]
    pub fn out_tps(&self) -> Option<f64> {
        self.first_number("getTransferredTps")
    }

    /// Share of the disk in use, 0 to 1.
    #[must_use]
    pub fn disk_ratio(&self) -> Option<f64> {
        self.first_number("commitLogDiskRatio")
            .filter(|ratio| *ratio >= 0.0)
    }

    /// Where its log ends, in bytes.
    #[must_use]
    pub fn log_end(&self) -> Option<i64> {
        self.get("commitLogMaxOffset")?.parse().ok()
    }

    /// Messages stored since midnight.
    #[must_use]
    pub fn in_today(&self) -> Option<i64> {
        self.difference("msgPutTotalTodayNow", "msgPutTotalTodayMorning")
    }

    /// Messages handed out since midnight.
    #[must_use]
    pub fn out_today(&self) -> Option<i64> {
        self.difference("msgGetTotalTodayNow", "msgGetTotalTodayMorning")
    }

    fn first_number(&self, name: &str) -> Option<f64> {
        let number: f64 = self.get(name)?.split_whitespace().next()?.parse().ok()?;
        number.is_finite().then_some(number)
    }

    fn difference(&self, now: &str, before: &str) -> Option<i64> {
        let now: i64 = self.get(now)?.parse().ok()?;
        now.checked_sub(self.get(before)?.parse().ok()?)
    }
}

impl AdminClient {
    /// Every broker of one cluster or of all, replicas included, with what it says of itself.
    pub async fn brokers(
        &self,
        cluster: Option<&ClusterName>,
    ) -> Result<Answers<BrokerRuntime>, TargetError> {
        let (addr, info) = self.cluster_info().await?;
        let members = members(&info, cluster, addr)?;
        let admin = self.clone();
        Ok(ask_all(members, move |_, addr| {
            let admin = admin.clone();
            async move { admin.runtime(&addr).await }
        })
        .await)
    }

    /// What one broker says of itself.
    pub async fn runtime(&self, addr: &str) -> Result<BrokerRuntime, crate::AskError> {
        let code = request_code::GET_BROKER_RUNTIME_INFO;
        let answer = self.ask(addr, Command::request(code)).await?;
        body(addr, code, &answer, KvTable::from_json).map(BrokerRuntime)
    }
}

fn members(
    info: &ClusterInfo,
    wanted: Option<&ClusterName>,
    addr: String,
) -> Result<Vec<Target>, TargetError> {
    let known = || info.cluster_addr_table.keys().cloned().collect::<Vec<_>>();
    if info.cluster_addr_table.is_empty() {
        return Err(TargetError::NoBroker { addr });
    }
    let mut members = Vec::new();
    let mut found = false;
    for (cluster, brokers) in &info.cluster_addr_table {
        if wanted.is_some_and(|wanted| wanted.as_str() != cluster) {
            continue;
        }
        found = true;
        for data in brokers
            .iter()
            .filter_map(|broker| info.broker_addr_table.get(broker))
        {
            for (id, addr) in &data.broker_addrs {
                members.push(Target {
                    cluster: Some(cluster.clone()),
                    broker: Some(data.broker_name.clone()),
                    id: BrokerId::new(u64::try_from(*id).unwrap_or(u64::MAX)),
                    addr: Some(addr.clone()),
                });
            }
        }
    }
    match wanted {
        Some(name) if !found => Err(TargetError::NoSuchCluster {
            name: name.to_string(),
            known: known(),
        }),
        _ => Ok(members),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime(pairs: &[(&str, &str)]) -> BrokerRuntime {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        BrokerRuntime(KvTable {
            table: pairs.iter().map(pair).collect(),
        })
    }

    #[test]
    fn rates_are_the_first_of_three_and_totals_count_from_midnight() {
        let runtime = runtime(&[
            ("putTps", "12.5 3.0 1.0"),
            ("commitLogDiskRatio", "0.42"),
            ("msgPutTotalTodayNow", "100"),
            ("msgPutTotalTodayMorning", "30"),
        ]);
        assert_eq!(runtime.in_tps(), Some(12.5));
        assert_eq!(runtime.disk_ratio(), Some(0.42));
        assert_eq!(runtime.in_today(), Some(70));
    }

    #[test]
    fn figures_that_are_missing_or_no_numbers_are_absent() {
        let runtime = runtime(&[
            ("putTps", ""),
            ("getTransferredTps", "NaN"),
            ("commitLogDiskRatio", "-1.0"),
        ]);
        assert_eq!(runtime.in_tps(), None);
        assert_eq!(runtime.out_tps(), None);
        assert_eq!(runtime.disk_ratio(), None);
        assert_eq!(runtime.in_today(), None);
    }
}
