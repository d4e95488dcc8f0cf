//! Whole broker over the wire.
