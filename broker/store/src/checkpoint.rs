//! The checkpoint file (`StoreCheckpoint`), 4096 bytes.
//!
//! | field | bytes | at |
//! |---|---|---|
//! | store time of the last flushed record | 8 | 0 |
//! | store time up to which queues are flushed | 8 | 8 |
//! | store time up to which indexes are flushed | 8 | 16 |
//! | master's flushed offset | 8 | 24 |
//! | confirm offset | 8 | 32 |
//! | ours: magic `RMQC` + version 1 | 8 | 64 |
//! | ours: queues are flushed below this offset | 8 | 72 |
//! | ours: index is flushed below this offset | 8 | 80 |
//! | ours: copy of the first three fields | 24 | 88 |
//! | ours: CRC-32 of bytes 64..112 | 4 | 112 |
//!
//! **Invariant:** our part counts only while its copy equals Java's fields: if Java ran on the folder
//! since, it does not. Java leaves bytes from 40 on alone.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::Path,
};

const FILE_BYTES: u64 = 4096;
const OURS_AT: usize = 64;
const OURS_END: usize = 112;
const MAGIC: u64 = 0x524D_5143_0000_0001;

/// What is on the disk for certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// Store time of the last flushed record.
    pub(crate) log_time: i64,
    /// Store time up to which queue entries are flushed.
    pub(crate) queue_time: i64,
    /// Store time up to which the index is flushed.
    pub(crate) index_time: i64,
    /// Java's replication fields, kept as they were.
    pub(crate) master_flushed: i64,
    /// Java's confirm offset, kept as it was.
    pub(crate) confirm: i64,
    /// The same as `queue_time`, as an offset; absent after Java ran.
    pub(crate) queues_below: Option<u64>,
    /// The same for the index.
    pub(crate) index_below: Option<u64>,
}

impl Checkpoint {
    fn encode(&self) -> [u8; OURS_END + 4] {
        let mut bytes = [0; OURS_END + 4];
        let mut put = |at: usize, value: [u8; 8]| bytes[at..at + 8].copy_from_slice(&value);
        let times = [self.log_time, self.queue_time, self.index_time];
        for (index, time) in times.iter().enumerate() {
            put(index * 8, time.to_be_bytes());
            put(88 + index * 8, time.to_be_bytes());
        }
        put(24, self.master_flushed.to_be_bytes());
        put(32, self.confirm.to_be_bytes());
        put(64, MAGIC.to_be_bytes());
        put(72, self.queues_below.unwrap_or(0).to_be_bytes());
        put(80, self.index_below.unwrap_or(0).to_be_bytes());
        let crc = crc32fast::hash(&bytes[OURS_AT..OURS_END]);
        bytes[OURS_END..].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| -> u64 {
            bytes
                .get(at..at + 8)
                .and_then(|word| word.try_into().ok())
                .map_or(0, u64::from_be_bytes)
        };
        let signed = |at: usize| word(at) as i64;
        let crc = bytes
            .get(OURS_END..OURS_END + 4)
            .and_then(|crc| crc.try_into().ok());
        let ours = bytes
            .get(OURS_AT..OURS_END)
            .is_some_and(|ours| crc.map(u32::from_be_bytes) == Some(crc32fast::hash(ours)))
            && word(64) == MAGIC
            && bytes.get(88..112) == bytes.get(0..24);
        Self {
            log_time: signed(0),
            queue_time: signed(8),
            index_time: signed(16),
            master_flushed: signed(24),
            confirm: signed(32),
            queues_below: ours.then(|| word(72)),
            index_below: ours.then(|| word(80)),
        }
    }

    /// Reads the file; one that is missing or short counts as empty.
    pub(crate) fn load(root: &Path) -> io::Result<Self> {
        match std::fs::read(root.join("checkpoint")) {
            Ok(bytes) => Ok(Self::decode(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Writes it in place: what must be whole fits one sector.
    pub(crate) fn save(&self, root: &Path) -> io::Result<()> {
        let file: File = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(root.join("checkpoint"))?;
        file.write_all_at(&self.encode(), 0)?;
        if file.metadata()?.len() != FILE_BYTES {
            file.set_len(FILE_BYTES)?;
        }
        file.sync_data()
    }

    /// The store time from which Java's recovery rule starts (`getMinTimestamp` − 3 s).
    pub(crate) fn safe_time(&self) -> i64 {
        self.log_time
            .min(self.queue_time)
            .saturating_sub(3_000)
            .max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Checkpoint = Checkpoint {
        log_time: 5_000,
        queue_time: 4_000,
        index_time: 3_000,
        master_flushed: 2,
        confirm: 1,
        queues_below: Some(77),
        index_below: Some(66),
    };

    #[test]
    fn a_saved_checkpoint_is_read_back_from_a_file_of_java_size() {
        let dir = tempfile::tempdir().unwrap();
        SAMPLE.save(dir.path()).unwrap();
        assert_eq!(Checkpoint::load(dir.path()).unwrap(), SAMPLE);
        assert_eq!(
            std::fs::metadata(dir.path().join("checkpoint"))
                .unwrap()
                .len(),
            4096
        );
        assert_eq!(SAMPLE.safe_time(), 1_000);
    }

    #[test]
    fn our_part_does_not_count_after_java_wrote_its_own() {
        let mut bytes = SAMPLE.encode();
        bytes[7] ^= 1;
        let read = Checkpoint::decode(&bytes);
        assert_eq!((read.queues_below, read.index_below), (None, None));
        assert_eq!(read.queue_time, 4_000);
    }

    #[test]
    fn any_short_or_broken_file_reads_as_something() {
        let bytes = SAMPLE.encode();
        for cut in 0..bytes.len() {
            let _ = Checkpoint::decode(&bytes[..cut]);
        }
        for at in OURS_AT..bytes.len() {
            let mut flipped = bytes;
            flipped[at] ^= 0x10;
            assert_eq!(Checkpoint::decode(&flipped).queues_below, None, "{at}");
        }
    }
}
