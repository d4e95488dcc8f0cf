//! openraft's own suite for storages, run on ours.

use std::sync::Arc;

use openraft::testing::{StoreBuilder, Suite};
use tempfile::TempDir;

use crate::{
    disk::Disk,
    log::Log,
    machine::Machine,
    types::{StorageError, Types},
};

struct OnDisk;

impl StoreBuilder<Types, Log, Machine, TempDir> for OnDisk {
    async fn build(&self) -> Result<(TempDir, Log, Machine), StorageError> {
        let dir = TempDir::new().unwrap();
        let disk = Arc::new(Disk::open(&dir.path().join("raft.redb")).unwrap());
        let machine = Machine::open(Arc::clone(&disk)).unwrap();
        Ok((dir, Log::new(disk), machine))
    }
}

#[test]
fn log_and_state_machine_keep_what_openraft_asks_of_a_storage() {
    Suite::test_all(OnDisk).unwrap();
}
