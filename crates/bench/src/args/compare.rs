//! The command line of `bench compare`.
//!
//! Invariant: what a workload does not use it ignores, so that one set of options serves all.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{FlushMode, LoadArgs, MessageArgs, PullShape, duration};

/// What both servers are asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Send messages: one after the other, pipelined with --inflight, in batches with --batch.
    Send,
    /// Pull messages that were sent before.
    Pull,
    /// Ask a NameServer for routes.
    Route,
    /// Time from sending to arrival at a waiting consumer.
    Latency,
}

/// Options of `bench compare`.
///
/// Both servers run the same load in turn: reference, ours, reference, ours, … Each of our runs is
/// set against the two reference runs next to it. What is printed are medians, and the ratio of ours
/// to the reference. Processor time is measured where the server runs on this computer.
#[derive(Clone, Debug, Args)]
pub struct CompareArgs {
    /// What to measure.
    #[arg(value_enum, default_value_t = Workload::Send)]
    pub workload: Workload,
    /// Server to measure; if left out 127.0.0.1:10911, or 127.0.0.1:9876 for routes. With --command,
    /// where that command will listen.
    pub addr: Option<String>,
    /// Start the server with this shell command, and stop it at the end.
    #[arg(long)]
    pub command: Option<String>,
    /// The other server, as HOST:PORT: a Java broker, or another build. Without it the floor broker
    /// is started, which does only what no server could leave out.
    #[arg(long, alias = "with", value_name = "ADDR")]
    pub against: Option<String>,
    /// Process of the other server, for CPU and memory; found by its port if left out.
    #[arg(long, alias = "with-pid", value_name = "PID")]
    pub against_pid: Option<u32>,
    /// When the floor broker answers a send.
    #[arg(long, value_enum, default_value_t = FlushMode::Async)]
    pub floor_flush: FlushMode,
    /// File of the floor broker for sync flush: put it on the disk of the broker's store.
    #[arg(long, default_value = "bench-floor.log")]
    pub floor_file: PathBuf,
    /// How many of our runs must count.
    #[arg(short = 'n', long, default_value_t = 5)]
    pub rounds: usize,
    /// A run does not count if the two reference runs next to it differ by more than this, in
    /// percent: then something else used the computer.
    #[arg(long, default_value_t = 15.0)]
    pub drift: f64,
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// The messages.
    #[command(flatten)]
    pub message: MessageArgs,
    /// Of pull: what is asked for.
    #[command(flatten)]
    pub pull: PullShape,
    /// Of latency: messages measured in one run.
    #[arg(long, default_value_t = 1000)]
    pub count: u32,
    /// Of latency: rest between two messages.
    #[arg(long, default_value = "5ms", value_parser = duration)]
    pub gap: Duration,
}
