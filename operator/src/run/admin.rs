//! One client of brokers and NameServers for each cluster.
//!
//! **Invariant:** a client is kept while the NameServers it asks are the cluster's own; every
//! request through it has a deadline.

use rmq_admin::{AdminClient, AdminOptions};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longest wait for one answer of a broker or NameServer.
const DEADLINE: Duration = Duration::from_secs(3);

/// Clients by cluster.
#[derive(Debug, Default)]
pub(crate) struct AdminPool(Mutex<HashMap<String, AdminClient>>);

impl AdminPool {
    /// The client of the cluster `key`, which asks these NameServers.
    pub(crate) fn of(&self, key: &str, name_servers: &[String]) -> AdminClient {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(key)
            && client.name_servers() == name_servers
        {
            return client.clone();
        }
        let client = client(name_servers);
        clients.insert(key.to_owned(), client.clone());
        client
    }

    pub(crate) fn forget(&self, key: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
    }
}

/// A client with the operator's deadline.
pub(crate) fn client(name_servers: &[String]) -> AdminClient {
    let options = AdminOptions {
        timeout: DEADLINE,
        ..AdminOptions::default()
    };
    AdminClient::new(name_servers, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_keeps_its_client_until_its_name_servers_change() {
        let pool = AdminPool::default();
        let one = ["a:1".to_owned()];
        let two = ["a:1".to_owned(), "b:1".to_owned()];
        assert_eq!(pool.of("ns/c", &one).name_servers(), one);
        assert_eq!(pool.of("ns/c", &two).name_servers(), two);
        pool.forget("ns/c");
        assert!(pool.0.lock().unwrap().is_empty());
    }
}
