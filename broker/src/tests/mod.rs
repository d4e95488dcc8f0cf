//! A whole broker on a free port and an empty folder, asked over the wire.
//!
//! One file per subject; `fixture` starts the broker and speaks to it as a client does. Tests wait on
//! answers, never on the clock.

mod fixture;

mod assign;
mod bad_input;
mod bad_pull;
mod bad_send;
mod busy;
mod client;
mod config;
mod delay;
mod figures;
mod filter;
mod flow;
mod group;
mod json;
mod metrics;
mod name_server;
mod offset;
mod pop;
mod pop_bad;
mod pop_client;
mod pop_crash;
mod pop_figures;
mod pop_order;
mod pop_retry;
mod pop_wait;
mod progress;
mod pull;
mod query;
mod register;
mod relay;
mod reply;
mod reset;
mod send;
mod stop;
mod topic;

use fixture::{Consumer, Peer, TestBroker, ok, pull_header, refused, send_header};
