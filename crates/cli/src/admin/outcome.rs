//! What each broker did with a change: one row each, and one error if not all did it.

use anyhow::bail;
use rmq_admin::{Answer, Answers, AskError, NameServerAnswer, Target};
use serde::Serialize;

use super::{
    advice::Advice as _,
    output::{Output, table},
};

/// One broker's or NameServer's row.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    /// The broker group, or `NameServer`.
    pub(super) server: String,
    pub(super) address: Option<String>,
    /// One word: `created`, `failed`, …
    pub(super) outcome: String,
    /// What is to be said about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
}

impl Row {
    pub(super) fn of<T>(answer: &Answer<T>, said: impl Fn(&T) -> (&str, Option<String>)) -> Self {
        let target = &answer.target;
        let (outcome, detail) = match &answer.outcome {
            Ok(outcome) => said(outcome),
            Err(error) => ("failed", Some(error.to_string())),
        };
        let server = target.broker.as_ref();
        Self {
            server: server.map_or_else(|| "broker".to_owned(), Clone::clone),
            address: target.addr.clone(),
            outcome: outcome.to_owned(),
            detail,
        }
    }

    pub(super) fn of_name_server(answer: &NameServerAnswer, done: &str) -> Self {
        let error = answer.outcome.as_ref().err();
        Self {
            server: "NameServer".to_owned(),
            address: Some(answer.addr.clone()),
            outcome: if error.is_some() { "failed" } else { done }.to_owned(),
            detail: error.map(ToString::to_string),
        }
    }
}

/// What a change came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangeView {
    /// What was changed: `topic orders`.
    pub(super) subject: String,
    pub(super) servers: Vec<Row>,
}

impl ChangeView {
    pub(super) fn print(&self, out: Output) -> anyhow::Result<()> {
        out.answer(self, Self::text)
    }

    fn text(&self) -> String {
        let row = |row: &Row| {
            let result = match &row.detail {
                Some(detail) => format!("{}: {detail}", row.outcome),
                None => row.outcome.clone(),
            };
            [
                row.server.clone(),
                row.address.clone().unwrap_or_default(),
                result,
            ]
        };
        let rows = table(
            ["SERVER", "ADDRESS", "RESULT"],
            self.servers.iter().map(row),
        );
        format!("{}\n{rows}", self.subject)
    }
}

/// An error if a broker failed: how many, the first reason and what to do about it.
pub(super) fn require_all<T>(answers: &Answers<T>) -> anyhow::Result<()> {
    require_none(&answers.failures().collect::<Vec<_>>(), answers.len())
}

fn require_none(failures: &[(&Target, &AskError)], asked: usize) -> anyhow::Result<()> {
    let Some((target, error)) = failures.first() else {
        return Ok(());
    };
    let said = error.advised();
    let first = match target.label() {
        label if said.contains(label) => said,
        label => format!("{label}: {said}"),
    };
    if asked == 1 {
        bail!("{first}");
    }
    bail!("{} of {asked} brokers failed; {first}", failures.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_one_that_failed_is_told_without_counting() {
        let target = |label: &str| Target {
            cluster: None,
            broker: Some(label.to_owned()),
            id: rmq_types::MASTER_ID,
            addr: None,
        };
        let error = || AskError::NoMaster {
            broker: "a".to_owned(),
        };
        let (a, b) = (target("a"), target("b"));
        let said = |failures: &[(&Target, &AskError)], asked| {
            require_none(failures, asked).unwrap_err().to_string()
        };
        assert_eq!(said(&[(&a, &error())], 1), "broker group a has no master");
        assert_eq!(
            said(&[(&a, &error()), (&b, &error())], 3),
            "2 of 3 brokers failed; broker group a has no master"
        );
        assert!(require_none(&[], 3).is_ok());
    }

    #[test]
    fn a_change_is_a_row_for_each_server_in_both_forms() {
        let row = |server: &str, outcome: &str, detail: Option<&str>| Row {
            server: server.into(),
            address: Some("127.0.0.1:10911".into()),
            outcome: outcome.into(),
            detail: detail.map(str::to_owned),
        };
        let view = ChangeView {
            subject: "topic T".into(),
            servers: vec![
                row("a", "created", None),
                row("b", "failed", Some("no answer")),
            ],
        };
        assert_eq!(view.text(), include_str!("goldens/change.txt").trim_end());
        let json = super::super::output::json_line(&view).unwrap();
        assert_eq!(json, include_str!("goldens/change.json").trim_end());
    }
}
