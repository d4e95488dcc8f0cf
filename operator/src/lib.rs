//! The operator: what turns a manifest into a running cluster.
//!
//! **Invariant:** the operator decides what runs where; who is master is never its decision. So
//! far only [`local`] is here: the same manifest, as processes of this computer.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod local;
