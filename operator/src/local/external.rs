//! NameServers that somebody else runs: whether brokers can register there.
//!
//! **Invariant:** asked before anything is started, and nothing is changed there by asking. A broker
//! name that another live broker has is refused: two brokers of one name would push each other out
//! of the routes.

use rmq_admin::{AdminClient, AdminOptions};
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(3);

/// Why brokers cannot register there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExternalError {
    /// Nobody answers there.
    #[error(
        "spec.nameServer.externalRef: {addr} does not answer as a NameServer: {reason}; start one \
         there, or remove externalRef so that one is started here"
    )]
    Silent {
        /// The address.
        addr: String,
        /// What happened.
        reason: String,
    },
    /// A broker of that name is there and is not ours.
    #[error(
        "NameServer {name_server} has a broker {broker} already, at {addr}, and it answers: choose \
         another spec.brokers.namePrefix, or stop that broker"
    )]
    NameTaken {
        /// Who knows it.
        name_server: String,
        /// The broker group.
        broker: String,
        /// The other broker's address.
        addr: String,
    },
}

/// Looks at every NameServer for what would keep brokers of these names from registering.
pub(crate) async fn check(
    name_servers: &[String],
    brokers: &[String],
) -> Result<(), ExternalError> {
    for name_server in name_servers {
        let options = AdminOptions {
            timeout: DEADLINE,
            ..AdminOptions::default()
        };
        let admin = AdminClient::new(std::slice::from_ref(name_server), options);
        let silent = |error: rmq_admin::NameServerError| ExternalError::Silent {
            addr: name_server.clone(),
            reason: reason(&error),
        };
        let (_, info) = admin.cluster_info().await.map_err(silent)?;
        for broker in brokers {
            let group = info.broker_addr_table.get(broker);
            for addr in group
                .into_iter()
                .flat_map(|group| group.broker_addrs.values())
            {
                // One that is gone is forgotten by the NameServer within two minutes.
                if admin.runtime(addr).await.is_ok() {
                    return Err(ExternalError::NameTaken {
                        name_server: name_server.clone(),
                        broker: broker.clone(),
                        addr: addr.clone(),
                    });
                }
            }
        }
    }
    Ok(())
}

/// The first cause alone: the address is told already.
fn reason(error: &rmq_admin::NameServerError) -> String {
    match error {
        rmq_admin::NameServerError::NoneAnswers { causes, .. } => {
            causes.first().map(ToString::to_string).unwrap_or_default()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_where_nobody_is_is_told_with_the_field_and_what_to_do() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        drop(listener);
        let error = check(std::slice::from_ref(&addr), &[]).await.unwrap_err();
        let said = error.to_string();
        let wanted = format!("spec.nameServer.externalRef: {addr} does not answer");
        assert!(said.starts_with(&wanted), "{said}");
        assert!(said.contains("remove externalRef"), "{said}");
    }
}
