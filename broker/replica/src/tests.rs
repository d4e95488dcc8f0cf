//! Both machines, alone and against each other.

mod machine;
mod master;
mod pair;
mod replica;
mod routing;
