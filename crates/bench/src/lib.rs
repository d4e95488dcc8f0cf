//! Load generator and floor broker behind `rocketmq bench`.
//!
//! One thread and one event loop make the load, from frames written ahead of time, so that on a
//! small computer the server gets the processor. Invariant: what is printed was counted on the
//! wire; nothing is taken from the server's own statistics. It knows no server internals: any
//! broker that speaks the protocol can be measured.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod args;
mod child;
mod compare;
mod conn;
mod control;
mod engine;
mod floor;
mod floor_log;
mod frames;
mod load;
mod pace;
mod process;
mod progress;
mod reply;
mod report;
mod roll;
mod stalls;
mod timer;

pub use args::{
    BenchArgs, BenchCommand, CompareArgs, FloorArgs, FlushMode, LatencyArgs, LoadArgs, MessageArgs,
    Output, PullArgs, PullShape, RouteArgs, SendArgs, TopicsArgs, Workload,
};
pub use compare::Comparison;
pub use report::{Latencies, Report, ServerUse};
pub use roll::LogSpan;
pub use stalls::{Gap, Stalls};

use anyhow::Result;

/// Runs one `bench` sub-command and prints what it measured.
pub fn run(args: BenchArgs) -> Result<()> {
    let output = args.output;
    let report = match args.command {
        BenchCommand::Floor(args) => return floor::run(&args),
        BenchCommand::Compare(args) => return compare::run(&args, output),
        BenchCommand::Send(args) => load::send::run(&args)?,
        BenchCommand::Pull(args) => load::pull::run(&args)?,
        BenchCommand::Pop(args) => load::pop::run(&args)?,
        BenchCommand::Route(args) => load::route::run(&args)?,
        BenchCommand::Latency(args) => load::latency::run(&args)?,
        BenchCommand::Topics(args) => load::topics::run(&args)?,
    };
    report::print(&[report], output)
}
