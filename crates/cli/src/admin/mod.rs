//! `rocketmq admin`: look at and change a running cluster. Works against Java clusters as well.
//!
//! **Invariant:** standard output holds only what was asked for: a table for people, or with
//! `-o json` JSON lines whose names stay; everything else goes to standard error. The exit code is
//! 0 only if every broker asked did what it was asked. How it is done stands in `rmq-admin`.

mod advice;
mod cluster;
mod connect;
mod consume;
mod group;
mod message;
mod offset;
mod outcome;
mod output;
mod progress;
mod route;
mod scope;
mod send;
mod status;
mod time;
mod topic;
mod view;

use anyhow::Context as _;
use clap::Subcommand;

use connect::ConnectArgs;

/// Below `rocketmq admin --help`.
const EXAMPLES: &str = "\
Examples:
  rocketmq admin status
  rocketmq admin topic create orders -q 4
  rocketmq admin send orders \"good morning\" --tags first -k order-1
  seq 100 | rocketmq admin send orders
  rocketmq admin consume orders --from first --max 10
  rocketmq admin group progress billing -o json";

/// `rocketmq admin`
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AdminArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// The whole cluster on one screen: NameServers, broker groups, masters, lag
    Status(status::StatusArgs),
    /// Clusters and their brokers, with addresses, versions, rates and disk use
    Cluster(cluster::ClusterArgs),
    /// Topics: list, create, alter, delete, route, status
    #[command(subcommand)]
    Topic(topic::TopicVerb),
    /// Subscription groups: list, create, progress, delete
    #[command(subcommand)]
    Group(group::GroupVerb),
    /// Send messages: the body as an argument, or each line of standard input
    Send(send::SendArgs),
    /// Read a topic and go on reading what comes new
    Consume(consume::ConsumeArgs),
    /// Show one message, by its place, its id or its key
    Message(message::MessageArgs),
    /// Offsets of a group: reset
    #[command(subcommand)]
    Offset(offset::OffsetVerb),
}

pub(crate) fn run(args: AdminArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(Box::pin(perform(args)))
}

async fn perform(args: AdminArgs) -> anyhow::Result<()> {
    let (admin, out) = (args.connect.client()?, args.connect.output());
    match args.verb {
        Verb::Status(args) => status::run(&admin, &args, out).await,
        Verb::Cluster(args) => cluster::run(&admin, &args, out).await,
        Verb::Topic(verb) => topic::run(&admin, &verb, out).await,
        Verb::Group(verb) => group::run(&admin, &verb, out).await,
        Verb::Send(args) => send::run(&admin, &args, out).await,
        Verb::Consume(args) => consume::run(&admin, args, out).await,
        Verb::Message(args) => message::run(&admin, &args, out).await,
        Verb::Offset(verb) => offset::run(&admin, &verb, out).await,
    }
}
