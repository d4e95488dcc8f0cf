//! The program from outside: exit codes, lines, processes. One binary, so that it links once.

mod program;
mod start_failures;
mod up;
