//! The command line of `rocketmq bench`.
//!
//! Invariant: every option has a working default; a bare `bench send` against a local broker runs.

mod compare;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

pub use compare::{CompareArgs, Workload};

/// Measure a broker or a NameServer.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// What to measure.
    #[command(subcommand)]
    pub command: BenchCommand,
    /// How to print the result.
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table for people.
    Table,
    /// One JSON document for scripts.
    Json,
}

/// The measurements.
#[derive(Clone, Debug, Subcommand)]
pub enum BenchCommand {
    /// Send messages, closed loop or at a fixed rate.
    Send(SendArgs),
    /// Fill a topic, then pull it over and over.
    Pull(PullArgs),
    /// Fill a topic, then pop from it and acknowledge each message.
    Pop(PullArgs),
    /// Ask a NameServer for routes.
    Route(RouteArgs),
    /// Time from sending to arrival at a waiting consumer, on an idle broker.
    Latency(LatencyArgs),
    /// Create many topics, then send over all of them.
    Topics(TopicsArgs),
    /// Run the floor broker: it does the least work that answers a send, a pull or a route query.
    Floor(FloorArgs),
    /// Run one workload against two servers in turn and print how they compare.
    Compare(CompareArgs),
}

/// Options of every load.
#[derive(Clone, Debug, Args)]
pub struct LoadArgs {
    /// Connections.
    #[arg(short = 'c', long, default_value_t = 64)]
    pub connections: usize,
    /// Requests in flight on each connection.
    #[arg(short = 'w', long, default_value_t = 1)]
    pub inflight: usize,
    /// Requests a second over all connections (open loop); without it, as fast as answers come.
    #[arg(long)]
    pub rate: Option<f64>,
    /// How long to measure.
    #[arg(short, long, default_value = "10s", value_parser = duration)]
    pub duration: Duration,
    /// How long to run before measuring.
    #[arg(long, default_value = "2s", value_parser = duration)]
    pub warmup: Duration,
    /// Process of the server, for CPU and memory; found by its port on this computer if left out.
    #[arg(long)]
    pub pid: Option<u32>,
}

/// Options of what is sent.
#[derive(Clone, Debug, Args)]
pub struct MessageArgs {
    /// Body size in bytes.
    #[arg(short, long, default_value_t = 1024)]
    pub size: usize,
    /// Topic; with more than one, the prefix of their names.
    #[arg(long, default_value = "bench")]
    pub topic: String,
    /// Number of topics.
    #[arg(long, default_value_t = 1)]
    pub topics: usize,
    /// Queues of each topic.
    #[arg(short, long, default_value_t = 8)]
    pub queues: u32,
    /// Messages in one request.
    #[arg(short, long, default_value_t = 1)]
    pub batch: usize,
    /// Use topics as they are instead of creating them.
    #[arg(long)]
    pub no_create: bool,
}

/// Options of `bench send`.
#[derive(Clone, Debug, Args)]
pub struct SendArgs {
    /// Broker.
    #[arg(default_value = "127.0.0.1:10911")]
    pub addr: String,
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// The messages.
    #[command(flatten)]
    pub message: MessageArgs,
    /// Check that the queues grew by exactly what was acknowledged.
    #[arg(long)]
    pub verify: bool,
    /// Fill the commit log first, so that it goes on to its next file in the middle of the measured
    /// time. Needs --rate, to know where that is.
    #[arg(long, requires = "rate")]
    pub across_roll: bool,
}

/// Options of `bench pull` and `bench pop`.
#[derive(Clone, Debug, Args)]
pub struct PullArgs {
    /// Broker.
    #[arg(default_value = "127.0.0.1:10911")]
    pub addr: String,
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// The messages.
    #[command(flatten)]
    pub message: MessageArgs,
    /// The pulls.
    #[command(flatten)]
    pub pull: PullShape,
}

/// Options of what is pulled.
#[derive(Clone, Debug, Args)]
pub struct PullShape {
    /// Messages asked for in one pull.
    #[arg(short, long, default_value_t = 32)]
    pub max: u32,
    /// Messages to send before pulling; 0 pulls what is there.
    #[arg(long, default_value_t = 200_000)]
    pub fill: u64,
    /// Consumer group.
    #[arg(long, default_value = "bench-consumer")]
    pub group: String,
}

/// Options of `bench route`.
#[derive(Clone, Debug, Args)]
pub struct RouteArgs {
    /// NameServer.
    #[arg(default_value = "127.0.0.1:9876")]
    pub addr: String,
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Topic; with more than one, the prefix of their names.
    #[arg(long, default_value = "bench")]
    pub topic: String,
    /// Number of topics asked for.
    #[arg(long, default_value_t = 1)]
    pub topics: usize,
    /// Queues of each topic registered.
    #[arg(short, long, default_value_t = 8)]
    pub queues: u32,
    /// Register a made-up broker that has the topics first.
    #[arg(long)]
    pub register: bool,
}

/// Options of `bench latency`.
#[derive(Clone, Debug, Args)]
pub struct LatencyArgs {
    /// Broker.
    #[arg(default_value = "127.0.0.1:10911")]
    pub addr: String,
    /// Body size in bytes.
    #[arg(short, long, default_value_t = 1024)]
    pub size: usize,
    /// Topic.
    #[arg(long, default_value = "bench-latency")]
    pub topic: String,
    /// Messages measured.
    #[arg(short = 'n', long, default_value_t = 1000)]
    pub count: u32,
    /// Rest between two messages.
    #[arg(long, default_value = "5ms", value_parser = duration)]
    pub gap: Duration,
    /// Consumer group.
    #[arg(long, default_value = "bench-consumer")]
    pub group: String,
    /// Process of the server, for CPU and memory.
    #[arg(long)]
    pub pid: Option<u32>,
}

/// Options of `bench topics`.
#[derive(Clone, Debug, Args)]
pub struct TopicsArgs {
    /// Broker.
    #[arg(default_value = "127.0.0.1:10911")]
    pub addr: String,
    /// The load after the topics were created.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Body size in bytes.
    #[arg(short, long, default_value_t = 1024)]
    pub size: usize,
    /// Prefix of the topics' names.
    #[arg(long, default_value = "bench-many")]
    pub topic: String,
    /// Number of topics.
    #[arg(long, default_value_t = 10_000)]
    pub topics: usize,
    /// Queues of each topic.
    #[arg(short, long, default_value_t = 8)]
    pub queues: u32,
}

/// When the floor broker answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FlushMode {
    /// Once the body is copied in memory.
    Async,
    /// Once it is on disk: one fdatasync for all requests of a round.
    Sync,
}

/// Options of `bench floor`.
#[derive(Clone, Debug, Args)]
pub struct FloorArgs {
    /// Where to listen; port 0 takes a free one. The address is printed on the first line.
    #[arg(long, default_value = "127.0.0.1:10921")]
    pub addr: String,
    /// When to answer.
    #[arg(long, value_enum, default_value_t = FlushMode::Async)]
    pub flush: FlushMode,
    /// File for sync flush; it is made ready before listening and reused in a circle.
    #[arg(long, default_value = "bench-floor.log")]
    pub file: PathBuf,
    /// Bytes of the file or memory area.
    #[arg(long, default_value_t = 256 * 1024 * 1024)]
    pub area: usize,
    /// Body size of the messages that pulls are answered with.
    #[arg(short, long, default_value_t = 1024)]
    pub size: usize,
    /// End when standard input ends (used by `compare`).
    #[arg(long, hide = true)]
    pub until_stdin_ends: bool,
}

/// `10s`, `500ms`, `2m` or plain seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..).unwrap_or_default() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        other => return Err(format!("unknown unit {other}: use ms, s or m")),
    };
    let number: f64 = digits
        .parse()
        .map_err(|_| format!("{digits} is no number"))?;
    Duration::try_from_secs_f64(number * unit).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        assert!(duration("5h").is_err() && duration("s").is_err() && duration("-1s").is_err());
    }
}
