//! What a gateway decides, without a machine: values in, values out.
//!
//! **Invariant:** no clock, socket, task or randomness; time and facts are arguments. The shells are
//! `backend` (asks brokers) and `rpc` (answers clients).

pub(crate) mod handle;
pub(crate) mod incoming;
pub(crate) mod kind;
pub(crate) mod outgoing;
pub(crate) mod polling;
pub(crate) mod refusal;
pub(crate) mod renewal;
pub(crate) mod reserved;
pub(crate) mod route;
pub(crate) mod settings;
pub(crate) mod transactions;
pub(crate) mod validate;
