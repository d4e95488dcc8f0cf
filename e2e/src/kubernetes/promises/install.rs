//! `helm install` of both charts, and what `helm test` says of the operator.
//!
//! **Invariant:** what the README tells is what is done here.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::operator;
use std::time::Instant;

pub(super) fn check(cluster: &KubeCluster) -> Found {
    let started = Instant::now();
    operator::install(cluster)?;
    let installed = started.elapsed().as_secs_f64();
    cluster.helm(&[
        "test",
        operator::RELEASE,
        "--namespace",
        operator::NAMESPACE,
    ])?;
    crate::until(operator::ROLL, "one of the operators leads", || {
        Ok(operator::leader(cluster)?.is_some())
    })?;
    Ok(format!("(installed in {installed:.1} s)"))
}
