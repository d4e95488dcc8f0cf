//! The one binary: every role of the system is a sub-command.

fn main() {}
