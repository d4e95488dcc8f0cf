//! The state machine for openraft: commands go to `rmq_controller_fsm::apply`, snapshots to the disk.
//!
//! **Invariant:** the state in memory is the last snapshot on the disk with the log applied to it;
//! no entry that is not in a snapshot is purged, so a start finds everything again.

use std::{
    io::Cursor,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use openraft::{
    EntryPayload, OptionalSend, RaftSnapshotBuilder, StorageIOError, storage::RaftStateMachine,
};
use rmq_controller_fsm::{Snapshot, State, StoredSnapshot, apply};

use crate::{
    disk::{Disk, DiskError, SNAPSHOT, SNAPSHOT_META, encode},
    log::on_disk,
    types::{Applied, Entry, LogId, Membership, SnapshotMeta, StorageError, Types},
};

/// Why a stored snapshot is not taken. Corruption, or a newer program's data.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotUnusable {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("the snapshot cannot be read: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("{0}")]
    Content(#[from] rmq_controller_fsm::SnapshotError),
}

/// The state as readers see it; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedState(Arc<RwLock<State>>);

impl SharedState {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace(&self, state: State) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// The state machine.
#[derive(Debug)]
pub(crate) struct Machine {
    disk: Arc<Disk>,
    state: SharedState,
    last_applied: Option<LogId>,
    membership: Membership,
}

fn parse(bytes: &[u8]) -> Result<State, SnapshotUnusable> {
    let stored: StoredSnapshot = serde_json::from_slice(bytes)?;
    Ok(stored.into_state()?)
}

impl Machine {
    /// With what the last snapshot holds.
    pub(crate) fn open(disk: Arc<Disk>) -> Result<Self, SnapshotUnusable> {
        let meta: Option<SnapshotMeta> = disk.get(SNAPSHOT_META)?;
        let machine = Self {
            state: SharedState::default(),
            last_applied: meta.as_ref().and_then(|meta| meta.last_log_id),
            membership: meta.map(|meta| meta.last_membership).unwrap_or_default(),
            disk,
        };
        if let Some(bytes) = machine.disk.bytes(SNAPSHOT)? {
            machine.state.replace(parse(&bytes)?);
        }
        Ok(machine)
    }

    pub(crate) fn state(&self) -> SharedState {
        self.state.clone()
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), StorageError> {
        Ok((self.last_applied, self.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Applied>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut state = self.state.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut results = Vec::new();
        for entry in entries {
            self.last_applied = Some(entry.log_id);
            let outcome = match entry.payload {
                EntryPayload::Blank => None,
                EntryPayload::Normal(command) => Some(apply(&mut state, &command)),
                EntryPayload::Membership(members) => {
                    self.membership = Membership::new(Some(entry.log_id), members);
                    None
                }
            };
            results.push(Applied(outcome));
        }
        Ok(results)
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder {
            disk: Arc::clone(&self.disk),
            state: self.state.read().clone(),
            last_applied: self.last_applied,
            membership: self.membership.clone(),
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let bytes = snapshot.into_inner();
        let signature = Some(meta.signature());
        let state = parse(&bytes).map_err(|error| {
            let error = openraft::AnyError::error(error.to_string());
            StorageIOError::read_snapshot(signature, error)
        })?;
        store(&self.disk, meta.clone(), bytes).await?;
        self.state.replace(state);
        self.last_applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        Ok(())
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<openraft::Snapshot<Types>>, StorageError> {
        let read = |disk: &Disk| {
            let meta: Option<SnapshotMeta> = disk.get(SNAPSHOT_META)?;
            Ok(meta.zip(disk.bytes(SNAPSHOT)?))
        };
        let found = on_disk(&self.disk, read, |error| {
            StorageIOError::read_snapshot(None, openraft::AnyError::error(error.to_string()))
        });
        let found = found.await?;
        Ok(found.map(|(meta, bytes)| openraft::Snapshot {
            meta,
            snapshot: Box::new(Cursor::new(bytes)),
        }))
    }
}

/// Meta and bytes go to the disk together.
async fn store(disk: &Arc<Disk>, meta: SnapshotMeta, bytes: Vec<u8>) -> Result<(), StorageError> {
    let signature = Some(meta.signature());
    let write = move |disk: &Disk| {
        let meta = encode(SNAPSHOT_META, &meta)?;
        disk.put_all(&[(SNAPSHOT_META, meta), (SNAPSHOT, bytes)])
    };
    on_disk(disk, write, |error| {
        StorageIOError::write_snapshot(signature, openraft::AnyError::error(error.to_string()))
    })
    .await
}

/// Makes a snapshot of the state as it was when this was made.
#[derive(Debug)]
pub(crate) struct Builder {
    disk: Arc<Disk>,
    state: State,
    last_applied: Option<LogId>,
    membership: Membership,
}

impl RaftSnapshotBuilder<Types> for Builder {
    async fn build_snapshot(&mut self) -> Result<openraft::Snapshot<Types>, StorageError> {
        static MADE: AtomicU64 = AtomicU64::new(1);
        let last = self.last_applied.map(|id| (id.leader_id.term, id.index));
        let (term, index) = last.unwrap_or_default();
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let meta = SnapshotMeta {
            last_log_id: self.last_applied,
            last_membership: self.membership.clone(),
            snapshot_id: format!("{term}-{index}-{made}"),
        };
        let bytes = serde_json::to_vec(&Snapshot::of(&self.state)).map_err(|error| {
            let error = openraft::AnyError::error(error.to_string());
            StorageIOError::write_snapshot(Some(meta.signature()), error)
        })?;
        store(&self.disk, meta.clone(), bytes.clone()).await?;
        tracing::debug!(id = meta.snapshot_id, bytes = bytes.len(), "snapshot made");
        Ok(openraft::Snapshot {
            meta,
            snapshot: Box::new(Cursor::new(bytes)),
        })
    }
}
