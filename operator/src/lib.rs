//! The operator: what turns a manifest into a running cluster.
//!
//! **Invariant:** the operator decides what runs where; who is master is never its decision. What
//! is there ([`observe`]), what to do ([`plan`]), whether it may be done ([`guard`]), what is built
//! ([`build`]) and what is told ([`status`]) are pure; [`run`] and [`apply`] fetch facts and carry
//! out. [`local`] does the same manifest as processes of this computer.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod apply;
pub mod build;
pub mod config_keys;
pub mod guard;
pub mod local;
pub mod observe;
pub mod plan;
pub mod run;
pub mod status;
