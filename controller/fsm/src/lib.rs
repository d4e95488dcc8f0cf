//! What the controllers of a cluster agree on: broker ids, masters, epochs and SyncStateSets.
