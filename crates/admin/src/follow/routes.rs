//! The topic's route as all tasks of a follower see it.
//!
//! **Invariant:** however many tasks find trouble at once, the NameServers are asked at most once in
//! [`REFRESH_MIN`]; between that the last good route stands.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{AdminClient, NameServerError, TopicRoute};

/// Shortest time between two questions for the route.
const REFRESH_MIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Routes {
    admin: AdminClient,
    route: Mutex<Arc<TopicRoute>>,
    asked_at: tokio::sync::Mutex<Instant>,
}

impl Routes {
    pub(super) fn new(admin: AdminClient, route: TopicRoute) -> Self {
        Self {
            admin,
            route: Mutex::new(Arc::new(route)),
            asked_at: tokio::sync::Mutex::new(Instant::now()),
        }
    }

    pub(super) fn admin(&self) -> &AdminClient {
        &self.admin
    }

    pub(super) fn current(&self) -> Arc<TopicRoute> {
        Arc::clone(&self.route.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks again unless somebody just did.
    pub(super) async fn refresh(&self) -> Result<(), NameServerError> {
        let mut asked_at = self.asked_at.lock().await;
        if asked_at.elapsed() < REFRESH_MIN {
            return Ok(());
        }
        *asked_at = Instant::now();
        let topic = self.current().topic.clone();
        let route = self.admin.route(&topic).await?;
        *self.route.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(route);
        Ok(())
    }
}
