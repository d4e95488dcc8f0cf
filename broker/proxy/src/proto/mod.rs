//! Rust types of `proto/rocketmq.proto`, generated and committed (`tests/proto.rs` compares them).
//!
//! **Invariant:** nothing here is written by hand but the names. Nothing is checked here either: a
//! decoded message holds whatever the peer sent.

/// The package `apache.rocketmq.v2`.
#[expect(
    clippy::pedantic,
    clippy::large_enum_variant,
    clippy::allow_attributes_without_reason,
    unused_qualifications,
    missing_docs,
    reason = "generated code"
)]
pub mod v2 {
    include!("generated.rs");
}

/// The proto file as reflection tells it.
pub(crate) const DESCRIPTOR: &[u8] = include_bytes!("descriptor.bin");
