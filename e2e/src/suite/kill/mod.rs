//! A broker that is killed at random moments under load, again and again.
//!
//! **Invariant:** the moment of a kill is a random number of acknowledged messages, from a seed that
//! is printed. A kill leaves the page cache in place: what a power cut takes is not shown here.
//!
//! `--rounds` or `E2E_KILL_ROUNDS` says how many kills, `E2E_KILL_SEED` repeats a seed. Timing is not
//! part of a seed: the same one meets the broker at other steps.

mod ledger;
mod load;
mod look;
mod message;
mod rounds;
mod wire;

use super::{Case, Outcome};
use crate::process::End;
use crate::target::Against;
use anyhow::Context as _;
use rounds::{Flush, Run};
use std::hash::{BuildHasher as _, RandomState};

const ROUNDS: u32 = 25;
const ROUNDS_MAX: u32 = 500;
const ORDERLY_ROUNDS: u32 = 3;

const LOST: &str =
    "a log that lost its last acknowledged message behind the broker's back is noticed";
const SYNC: &str = "sync flush: every acknowledged message is in its place after kills under load";
const STOP: &str = "an orderly stop under load loses nothing that was acknowledged or committed";
const ASYNC: &str =
    "async flush: every acknowledged message is in its place after kills under load";

/// Runs all scenarios: first one that shows that the others can fail.
pub(super) fn run(
    against: Against,
    only: Option<&str>,
    rounds: Option<u32>,
) -> anyhow::Result<Vec<Case>> {
    anyhow::ensure!(
        against == Against::Ours,
        "the kill suite starts its own cluster, which is always ours"
    );
    let rounds = rounds
        .map_or_else(|| number("E2E_KILL_ROUNDS"), |rounds| Ok(Some(rounds)))?
        .unwrap_or(ROUNDS);
    anyhow::ensure!(
        (1..=ROUNDS_MAX).contains(&rounds),
        "{rounds} rounds: there may be 1 to {ROUNDS_MAX}"
    );
    let seed = match number("E2E_KILL_SEED")? {
        Some(seed) => seed,
        None => RandomState::new().hash_one(std::process::id()),
    };
    eprintln!("seed {seed}, {rounds} rounds");
    let mut cases = Vec::new();
    let mut add = |name: &str, flush, play: &dyn Fn(&mut Run) -> anyhow::Result<String>| {
        if only.is_none_or(|part| name.contains(part)) {
            cases.push(case(name, scenario(flush, seed, play)));
        }
    };
    add(LOST, Flush::Async, &Run::play_damaged);
    add(SYNC, Flush::Sync, &|run| run.play(rounds, End::Kill));
    add(ASYNC, Flush::Async, &|run| run.play(rounds, End::Kill));
    add(STOP, Flush::Async, &|run| {
        run.play(ORDERLY_ROUNDS, End::Orderly)
    });
    Ok(cases)
}

fn case(name: &str, played: anyhow::Result<String>) -> Case {
    Case {
        name: name.to_owned(),
        outcome: match played {
            Ok(_) => Outcome::Passed,
            Err(_) => Outcome::Failed,
        },
        detail: played.unwrap_or_else(|error| format!("{error:#}")),
    }
}

fn scenario(
    flush: Flush,
    seed: u64,
    play: &dyn Fn(&mut Run) -> anyhow::Result<String>,
) -> anyhow::Result<String> {
    let mut run = Run::start(flush, seed)?;
    let played = play(&mut run);
    if played.is_err() {
        run.keep();
    }
    played
}

fn number<T: std::str::FromStr>(name: &str) -> anyhow::Result<Option<T>> {
    let Some(text) = std::env::var_os(name) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    let number = text.parse().ok();
    number
        .map(Some)
        .with_context(|| format!("{name}={text} is no whole number"))
}
