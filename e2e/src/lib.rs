//! End-to-end promises, one file each.
