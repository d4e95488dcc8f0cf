//! The kinds of the operator as typed structs.
