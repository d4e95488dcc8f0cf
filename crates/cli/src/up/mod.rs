//! `rocketmq up`: a whole cluster on this computer from a manifest.
//!
//! **Invariant:** with `-o json` standard output holds exactly one line, written when all is ready;
//! everything else goes to standard error. When this process ends, however it ends, the cluster's
//! processes end too.

mod events;
mod keys;

use crate::role::StopSignal;
use crate::text_table;
use anyhow::Context as _;
use clap::ValueEnum;
use rmq_operator::local::plan::default_data_dir;
use rmq_operator::local::{
    ClaimError, LocalCluster, LocalPlan, Obstacle, Placement, PortChoice, PortProblem, Row,
    RunOptions, StartError, TakenPort, plan,
};
use rmq_operator_api::{RocketMQCluster, parse_manifest, validate};
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `rocketmq up`
#[derive(Debug, clap::Args)]
pub(crate) struct UpArgs {
    /// The manifest: one RocketMQCluster as YAML; `-` reads standard input
    #[arg(value_name = "FILE")]
    manifest: PathBuf,
    /// Folder of the cluster's data [default: ./data/<metadata.name>]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Ports: the usual ones (NameServer 9876, broker 10911, …) or free ones
    #[arg(long, value_enum, default_value_t = Ports::Usual)]
    ports: Ports,
    /// IP address of this computer on which all listen, and which clients are told
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    host: IpAddr,
    /// Longest wait, in seconds, before a process that crashed is started again
    #[arg(
        long, value_name = "SECONDS",
        default_value_t = RunOptions::RESTART_WAIT_MAX.as_secs(),
        value_parser = clap::value_parser!(u64).range(..=86_400)
    )]
    restart_wait_max: u64,
    /// A table for people, or one JSON line when all is ready
    #[arg(short = 'o', long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ports {
    Usual,
    Free,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

pub(crate) fn run(args: &UpArgs) -> anyhow::Result<()> {
    let manifest = read_manifest(&args.manifest)?;
    anyhow::ensure!(
        !args.host.is_unspecified() && !args.host.is_multicast(),
        "--host {}: clients are told this address, so it must be one of this computer",
        args.host
    );
    let data_dir = args
        .data
        .clone()
        .unwrap_or_else(|| default_data_dir(&manifest));
    let data_dir = std::path::absolute(&data_dir).context("the data folder has no full path")?;
    let ports = match args.ports {
        Ports::Usual => PortChoice::Usual,
        Ports::Free => PortChoice::Free,
    };
    let placement = Placement {
        host: args.host,
        ports,
        data_dir: data_dir.clone(),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let plan = plan(&manifest, &placement);
    for note in &plan.notes {
        eprintln!("note: {}", note.0);
    }
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(Box::pin(serve(
        plan,
        &RunOptions {
            program,
            data_dir,
            restart_wait_max: Duration::from_secs(args.restart_wait_max),
        },
        args.ports,
        args.output,
    )))
}

fn read_manifest(path: &Path) -> anyhow::Result<RocketMQCluster> {
    let shown = path.display();
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read standard input")?;
    } else {
        text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    }
    let manifest = parse_manifest(&text).with_context(|| shown.to_string())?;
    let found = validate(&manifest);
    let keys = keys::check(&manifest, &found);
    let mut problems: Vec<_> = found.iter().map(ToString::to_string).collect();
    problems.extend(keys.problems);
    if let [problem] = problems.as_slice() {
        anyhow::bail!("{shown}: {problem}");
    }
    if !problems.is_empty() {
        for problem in &problems {
            eprintln!("  {problem}");
        }
        anyhow::bail!("{shown} has {} problems, listed above", problems.len());
    }
    for note in &keys.notes {
        eprintln!("note: {note}");
    }
    Ok(manifest)
}

async fn serve(
    plan: LocalPlan,
    options: &RunOptions,
    ports: Ports,
    output: Output,
) -> anyhow::Result<()> {
    let mut stop = StopSignal::listen(false)?;
    let mut cluster = LocalCluster::claim(plan, options).map_err(|e| advised(e, ports))?;
    let mut waiting = |missing: &str| eprintln!("waiting for {missing}");
    let brought_up = tokio::select! {
        biased;
        reason = stop.wait() => Err(anyhow::anyhow!("{reason} before all was ready")),
        result = cluster.bring_up(&mut waiting) => result.map_err(|e| advised(e, ports)),
    };
    let outcome = match brought_up {
        Ok(()) => show(&cluster, options, output).await,
        Err(error) => Err(error),
    };
    if outcome.is_ok() {
        follow(&mut cluster, &mut stop, output).await;
        eprintln!("stopping");
    }
    tokio::select! {
        biased;
        () = cluster.stop() => {}
        reason = stop.wait() => {
            eprintln!("{reason} again: ending all processes now");
            cluster.kill().await;
        }
    }
    outcome
}

/// What to do about it, besides what is wrong.
fn advised(error: StartError, ports: Ports) -> anyhow::Error {
    match &error {
        StartError::Ports(PortProblem::NoSuchAddress(_)) => {
            anyhow::anyhow!("--host: {error}; see `ip address` for those it has")
        }
        StartError::Ports(PortProblem::Taken(taken)) => {
            let listed = if let [_] = taken.as_slice() {
                ""
            } else {
                for port in taken {
                    eprintln!("  {port}");
                }
                ", listed above"
            };
            anyhow::anyhow!("{error}{listed}; {}", way_out(taken))
        }
        StartError::Folder(ClaimError::InUse { .. }) if ports == Ports::Usual => {
            anyhow::anyhow!("{error} (and free ports with --ports free)")
        }
        _ => error.into(),
    }
}

/// How to get ports that are taken.
fn way_out(taken: &[TakenPort]) -> String {
    let up = taken.iter().find_map(|port| match &port.obstacle {
        Obstacle::Taken(Some(holder)) => holder.up,
        _ => None,
    });
    match up {
        Some(pid) => format!(
            "stop the other `rocketmq up`, process {pid}, or let this one take free ports with \
             --ports free"
        ),
        None => "stop what has them, perhaps another NameServer or broker, or take free ports \
                 with --ports free"
            .to_owned(),
    }
}

async fn show(cluster: &LocalCluster, options: &RunOptions, output: Output) -> anyhow::Result<()> {
    let text = match output {
        Output::Json => serde_json::to_string(&cluster.report()).context("cannot write JSON")?,
        Output::Table => format!(
            "{}\n\ndata and logs: {}\nCtrl-C stops the cluster",
            tables(cluster).await,
            options.data_dir.display()
        ),
    };
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}")
        .and_then(|()| stdout.flush())
        .context("cannot write to standard output")
}

/// What `kubectl get` would show of the cluster and its groups, and below it the processes.
async fn tables(cluster: &LocalCluster) -> String {
    let rows = cluster.rows();
    let processes = text_table::render(&Row::HEAD, rows.iter().map(|row| &row.0));
    match cluster.views().await {
        Ok(views) => format!(
            "{}\n\n{}\n\n{processes}",
            text_table::of_columns(&views.cluster),
            text_table::of_columns(&views.groups)
        ),
        // A server went away just now: what it was is told by the processes.
        Err(error) => {
            eprintln!("the cluster's status cannot be had: {error}");
            processes
        }
    }
}

/// Says what changes, until asked to stop.
async fn follow(cluster: &mut LocalCluster, stop: &mut StopSignal, output: Output) {
    let mut known = events::snapshot(cluster);
    loop {
        tokio::select! {
            biased;
            _ = stop.wait() => return,
            () = cluster.changed() => {}
        }
        let now = events::snapshot(cluster);
        let news = events::news(&known, &now);
        for line in &news {
            eprintln!("{line}");
        }
        let settled = events::all_ready(&now) && !events::all_ready(&known);
        if output == Output::Table && settled && std::io::stdout().is_terminal() {
            let text = tables(cluster).await;
            let _ = writeln!(std::io::stdout(), "\n{text}");
        }
        known = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmq_operator::local::{Holder, PortUse};

    fn taken(holder: Option<Holder>) -> TakenPort {
        TakenPort {
            process: "namesrv-0".to_owned(),
            purpose: PortUse::Clients,
            addr: "127.0.0.1:9876".parse().unwrap(),
            obstacle: Obstacle::Taken(holder),
        }
    }

    fn holder(up: Option<u32>) -> Holder {
        Holder {
            pid: 7,
            command: "java NamesrvStartup".to_owned(),
            up,
        }
    }

    #[test]
    fn a_taken_port_is_told_in_one_line_with_its_role_its_holder_and_two_ways_out() {
        let one = |holder| {
            let problem = PortProblem::Taken(vec![taken(holder)]);
            advised(StartError::Ports(problem), Ports::Usual).to_string()
        };
        let said = one(Some(holder(Some(5))));
        assert_eq!(
            said,
            "namesrv-0 needs 127.0.0.1:9876 for clients: process 7 (java NamesrvStartup) has it; \
             stop the other `rocketmq up`, process 5, or let this one take free ports with \
             --ports free"
        );
        for holder in [None, Some(holder(None))] {
            let said = one(holder);
            assert!(said.contains("has it; stop what has them"), "{said}");
            assert!(said.ends_with("--ports free"), "{said}");
        }
    }

    #[test]
    fn several_taken_ports_are_counted_and_an_address_of_elsewhere_is_the_hosts() {
        let many = PortProblem::Taken(vec![taken(None), taken(None)]);
        let said = advised(StartError::Ports(many), Ports::Usual).to_string();
        assert!(
            said.starts_with("2 ports that are needed cannot be had, listed above"),
            "{said}"
        );
        let elsewhere = PortProblem::NoSuchAddress("192.0.2.7".parse().unwrap());
        let said = advised(StartError::Ports(elsewhere), Ports::Usual).to_string();
        assert!(
            said.starts_with("--host: 192.0.2.7 is no address"),
            "{said}"
        );
    }
}
