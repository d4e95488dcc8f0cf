//! How a running role is looked at: logs, metrics and health.
//!
//! **Invariant:** every answer of the health page is asked of the running part at that moment;
//! before it runs and while it stops the page says so. Nothing here can change a role's state.

mod http;
mod log;
mod page;
mod process;

pub(crate) use http::Observer;
pub(crate) use log::{LogFormat, init as init_log};

/// Says in one line how far a role's start has come.
pub(crate) type Starting = std::sync::Arc<dyn Fn() -> String + Send + Sync>;

/// A part that can say how it is.
pub(crate) trait HealthSource: Send + Sync + 'static {
    /// Whether the process does its work at all; if not, it should be started again. Never depends
    /// on other processes.
    fn live(&self) -> Result<(), String>;
    /// Whether clients can use it now.
    fn ready(&self) -> Result<(), String>;
    /// Whether its start is complete.
    fn startup(&self) -> Result<(), String> {
        Ok(())
    }
    /// Adds its figures in the Prometheus text form.
    fn metrics(&self, out: &mut String);
}
