//! Commit log, consume queues, key index, flush and recovery.
