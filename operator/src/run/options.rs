//! What the operator is started with.
//!
//! **Invariant:** every option has a default that works where the chart puts it; nothing is read
//! from the environment here.

use crate::build::Site;

/// How the operator runs.
#[derive(Clone, Debug)]
pub struct OperatorOptions {
    /// What every cluster is built with.
    pub site: Site,
    /// Namespaces that are watched; all of them when empty.
    pub namespaces: Vec<String>,
    /// Who this one is: the name of its pod.
    pub identity: String,
    /// Name of the Lease in the operator's own namespace; `None` leads without one.
    pub lease: Option<String>,
    /// Version of this program.
    pub version: String,
    /// Objects of one kind that are looked at at the same time.
    pub concurrency: u16,
}
