//! The program from outside: exit codes, lines, processes. One binary, so that it links once.

#[cfg(test)]
mod admin_verbs;
#[cfg(test)]
mod program;
#[cfg(test)]
mod start_failures;
#[cfg(test)]
mod up;
