//! The order configuration of a topic at the NameServers (KV namespace `ORDER_TOPIC_CONFIG`,
//! `broker:queues;broker:queues`).
//!
//! **Invariant:** entries of brokers that were not asked stay as they are.

use std::collections::BTreeMap;

use rmq_protocol::{
    header::{DecodeHeader, GetKvResponse, KvKey, PutKv},
    remoting::{Command, request_code, response_code},
};
use rmq_types::TopicName;

use crate::{
    AdminClient, Answers, NameServerAnswer, NameServerError, TopicOutcome,
    answers::in_parallel,
    client::{refused, request},
};

/// Java's namespace of it.
pub(crate) const ORDER_NAMESPACE: &str = "ORDER_TOPIC_CONFIG";

impl AdminClient {
    /// Enters the brokers on which an ordered topic now is.
    pub(crate) async fn add_order(
        &self,
        topic: &TopicName,
        created: &Answers<TopicOutcome>,
        queues: u32,
    ) -> Result<(), NameServerError> {
        let mut entries = self.order(topic).await?;
        let before = entries.clone();
        for (target, outcome) in created.successes() {
            let is_there = matches!(outcome, TopicOutcome::Created | TopicOutcome::Unchanged);
            if let (Some(broker), true) = (&target.broker, is_there) {
                entries.insert(broker.clone(), queues.to_string());
            }
        }
        if entries == before {
            return Ok(());
        }
        let header = PutKv {
            namespace: ORDER_NAMESPACE.into(),
            key: topic.as_str().into(),
            value: render(&entries).into(),
        };
        let put = request(request_code::PUT_KV_CONFIG, &header);
        for answer in self.ask_every_name_server(&put).await {
            answer.outcome.map_err(NameServerError::Refused)?;
        }
        Ok(())
    }

    async fn order(&self, topic: &TopicName) -> Result<BTreeMap<String, String>, NameServerError> {
        let code = request_code::GET_KV_CONFIG;
        let header = KvKey {
            namespace: ORDER_NAMESPACE.into(),
            key: topic.as_str().into(),
        };
        let (addr, answer) = self.ask_name_servers(&request(code, &header)).await?;
        match answer.code {
            response_code::SUCCESS => Ok(GetKvResponse::decode(&answer.ext)
                .ok()
                .and_then(|found| found.value)
                .map(|text| parse(&text))
                .unwrap_or_default()),
            response_code::QUERY_NOT_FOUND => Ok(BTreeMap::new()),
            _ => Err(NameServerError::Refused(refused(&addr, code, answer))),
        }
    }

    /// Asks all NameServers: what is written must be written at each.
    pub(crate) async fn ask_every_name_server(&self, cmd: &Command) -> Vec<NameServerAnswer> {
        in_parallel(self.name_servers().to_vec(), |addr| {
            let (admin, cmd) = (self.clone(), cmd.clone());
            async move {
                let outcome = admin.ask(&addr, cmd).await.map(|_| ());
                NameServerAnswer { addr, outcome }
            }
        })
        .await
    }
}

fn parse(text: &str) -> BTreeMap<String, String> {
    let entry = |part: &str| {
        let (broker, queues) = part.trim().split_once(':')?;
        Some((broker.to_owned(), queues.to_owned()))
    };
    text.split(';').filter_map(entry).collect()
}

fn render(entries: &BTreeMap<String, String>) -> String {
    let entry = |(broker, queues): (&String, &String)| format!("{broker}:{queues}");
    entries.iter().map(entry).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_configuration_reads_back_as_it_was_written() {
        let entries = parse("a:4;b:8");
        assert_eq!(render(&entries), "a:4;b:8");
        assert!(parse("").is_empty());
    }
}
