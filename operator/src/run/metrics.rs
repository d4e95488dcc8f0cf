//! Figures of the operator in the Prometheus text form.
//!
//! **Invariant:** labels have few values: kinds and words of the code, never names of objects.

use prometheus::{
    Encoder as _, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};
use std::time::Duration;

/// Figures.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    duration: HistogramVec,
    errors: IntCounterVec,
    queue: IntGaugeVec,
    running: IntGaugeVec,
    drift: IntCounterVec,
    writes: IntCounterVec,
    failovers: IntCounterVec,
    leader: IntGauge,
}

/// Seconds: a look at objects in memory, an answer of the API server, a deadline of a broker.
const BUCKETS: [f64; 10] = [0.001, 0.005, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];

impl Metrics {
    pub(crate) fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let counter = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        let gauge = |name: &str, help: &str| {
            let gauge = IntGaugeVec::new(Opts::new(name, help), &["kind"])?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let options = HistogramOpts::new(
            "rocketmq_operator_reconcile_seconds",
            "Time that one reconcile took",
        )
        .buckets(BUCKETS.to_vec());
        let duration = HistogramVec::new(options, &["kind"])?;
        registry.register(Box::new(duration.clone()))?;
        let leader = IntGauge::new("rocketmq_operator_leader", "1 while this one leads")?;
        registry.register(Box::new(leader.clone()))?;
        Ok(Self {
            duration,
            errors: counter(
                "rocketmq_operator_reconcile_errors_total",
                "Reconciles that failed",
                &["kind", "reason"],
            )?,
            queue: gauge(
                "rocketmq_operator_queue_depth",
                "Changes of other objects that wait for a reconcile",
            )?,
            running: gauge(
                "rocketmq_operator_reconciles_running",
                "Reconciles going on",
            )?,
            drift: counter(
                "rocketmq_operator_drift_corrections_total",
                "Objects that somebody else had changed and that were put right",
                &["kind"],
            )?,
            writes: counter(
                "rocketmq_operator_writes_total",
                "Objects and status written to the API server",
                &["kind"],
            )?,
            failovers: counter(
                "rocketmq_operator_failovers_total",
                "Moves of mastership that were seen",
                &["planned"],
            )?,
            leader,
            registry,
        })
    }

    pub(crate) fn reconciled(&self, kind: &str, took: Duration) {
        self.duration
            .with_label_values(&[kind])
            .observe(took.as_secs_f64());
    }

    pub(crate) fn failed(&self, kind: &str, reason: &str) {
        self.errors.with_label_values(&[kind, reason]).inc();
    }

    pub(crate) fn queued(&self, kind: &str, depth: usize) {
        let depth = i64::try_from(depth).unwrap_or(i64::MAX);
        self.queue.with_label_values(&[kind]).set(depth);
    }

    pub(crate) fn running(&self, kind: &str, change: i64) {
        self.running.with_label_values(&[kind]).add(change);
    }

    pub(crate) fn corrected(&self, kind: &str) {
        self.drift.with_label_values(&[kind]).inc();
    }

    pub(crate) fn wrote(&self, kind: &str) {
        self.writes.with_label_values(&[kind]).inc();
    }

    pub(crate) fn failover(&self, planned: bool) {
        let planned = if planned { "true" } else { "false" };
        self.failovers.with_label_values(&[planned]).inc();
    }

    pub(crate) fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// All of them as text.
    pub(crate) fn text(&self, out: &mut String) {
        let mut bytes = Vec::new();
        if TextEncoder::new()
            .encode(&self.registry.gather(), &mut bytes)
            .is_ok()
        {
            out.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_name_and_labels() {
        let metrics = Metrics::new().unwrap();
        metrics.reconciled("RocketMQCluster", Duration::from_millis(2));
        metrics.failed("RocketMQCluster", "api");
        metrics.queued("Topic", 3);
        metrics.running("Topic", 1);
        metrics.corrected("Service");
        metrics.wrote("ConfigMap");
        metrics.failover(false);
        metrics.leads(true);
        let mut text = String::new();
        metrics.text(&mut text);
        for line in [
            "rocketmq_operator_reconcile_seconds_count{kind=\"RocketMQCluster\"} 1",
            "rocketmq_operator_reconcile_errors_total{kind=\"RocketMQCluster\",reason=\"api\"} 1",
            "rocketmq_operator_queue_depth{kind=\"Topic\"} 3",
            "rocketmq_operator_reconciles_running{kind=\"Topic\"} 1",
            "rocketmq_operator_drift_corrections_total{kind=\"Service\"} 1",
            "rocketmq_operator_writes_total{kind=\"ConfigMap\"} 1",
            "rocketmq_operator_failovers_total{planned=\"false\"} 1",
            "rocketmq_operator_leader 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
