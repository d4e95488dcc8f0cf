//! The `bench` sub-command as a program of its own, for work on this crate.

use clap::Parser;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    bench: rmq_bench::BenchArgs,
}

fn main() -> anyhow::Result<()> {
    rmq_bench::run(Cli::parse().bench)
}
