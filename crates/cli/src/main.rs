//! The one binary: every role of the system, and every tool, is a sub-command.
//!
//! **Invariant:** a failure is one line on standard error that begins with `error: `, and a
//! non-zero exit code: 1 for a failure, 2 for wrong arguments. What a sub-command does stands in
//! the file of its name; here they are only named.
#![forbid(unsafe_code)]

mod admin;
mod broker;
mod controller;
mod crd;
mod health;
mod namesrv;
mod observe;
mod operator;
mod proxy;
mod role;
mod text_table;
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
    /// Run a controller, which with others decides who is master
    Controller(controller::ControllerArgs),
    /// Run a gateway for 5.x clients, which speak gRPC
    Proxy(proxy::ProxyArgs),
    /// Run the operator of a Kubernetes cluster
    Operator(operator::OperatorArgs),
    /// Look at and change a running cluster: topics, groups, messages
    Admin(admin::AdminArgs),
    /// Measure a broker or NameServer
    Bench(rmq_bench::BenchArgs),
    /// Ask a role's health page, for images that have no curl
    Health(health::HealthArgs),
    /// Print the CustomResourceDefinitions for kubectl apply
    Crd(crd::CrdArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Up(args) => up::run(&args),
        Command::Namesrv(args) => namesrv::run(&args),
        Command::Broker(args) => broker::run(&args),
        Command::Controller(args) => controller::run(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::Operator(args) => operator::run(args),
        Command::Admin(args) => admin::run(args),
        Command::Bench(args) => rmq_bench::run(args),
        Command::Health(args) => health::run(&args),
        Command::Crd(args) => crd::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// The chain in one line, causes after their effects. A cause whose text stands there already is
/// left out: the texts of many errors end with their cause's.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string().replace('\n', " ");
        if line.contains(&text) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&text);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[derive(Debug)]
    struct Telling(std::io::Error);

    impl std::fmt::Display for Telling {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "cannot read a.conf: {}", self.0)
        }
    }

    impl std::error::Error for Telling {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn every_cause_is_told_once_and_after_its_effect() {
        let error = anyhow!("no such file").context("a.conf").context("broker");
        assert_eq!(one_line(&error), "broker: a.conf: no such file");
    }

    #[test]
    fn a_cause_that_an_effect_tells_itself_is_not_repeated() {
        let telling = Telling(std::io::Error::other("no such file"));
        assert_eq!(
            one_line(&anyhow!(telling).context("broker")),
            "broker: cannot read a.conf: no such file"
        );
        let taken = std::io::Error::other(std::io::Error::other("Address already in use"));
        assert_eq!(one_line(&anyhow!(taken)), "Address already in use");
    }

    #[test]
    fn texts_of_several_lines_become_one_line_before_they_are_compared() {
        let error = anyhow!("line 1\nline 2").context("it said line 1 line 2");
        assert_eq!(one_line(&error), "it said line 1 line 2");
        assert_eq!(one_line(&anyhow!("a\nb")), "a b");
    }
}
