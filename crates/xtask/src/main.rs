//! Project chores: `cargo xtask tidy`, `cargo xtask test`.

fn main() {}
