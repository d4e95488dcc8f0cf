//! The one binary: every role of the system, and every tool, is a sub-command.
//!
//! **Invariant:** a failure is one line on standard error that begins with `error: `, and a
//! non-zero exit code: 1 for a failure, 2 for wrong arguments. What a sub-command does stands in
//! the file of its name; here they are only named.
#![forbid(unsafe_code)]

mod admin;
mod broker;
mod crd;
mod namesrv;
mod observe;
mod role;
mod up;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Allocates from one thread and frees on another, as the roles do, without a shared lock.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// RocketMQ: NameServer, broker and tools.
#[derive(Debug, Parser)]
#[command(name = "rocketmq", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a whole cluster on this computer from a RocketMQCluster manifest
    Up(up::UpArgs),
    /// Run a NameServer
    Namesrv(namesrv::NamesrvArgs),
    /// Run a broker
    Broker(broker::BrokerArgs),
    /// Look at and change a running cluster: topics, groups, messages
    Admin(admin::AdminArgs),
    /// Measure a broker or NameServer
    Bench(rmq_bench::BenchArgs),
    /// Print the CustomResourceDefinitions for kubectl apply
    Crd,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Up(args) => up::run(&args),
        Command::Namesrv(args) => namesrv::run(&args),
        Command::Broker(args) => broker::run(&args),
        Command::Admin(args) => admin::run(args),
        Command::Bench(args) => rmq_bench::run(args),
        Command::Crd => crd::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The chain in one line, causes after their effects.
            eprintln!("error: {}", format!("{error:#}").replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}
