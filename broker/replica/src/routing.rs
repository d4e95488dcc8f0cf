//! Which broker a reader that lags should ask next (`suggestWhichBrokerId`).
//!
//! Java names the id of the group's configuration, whether that broker lives or not. Here the master
//! names a replica only if it is linked, near enough and was caught up lately, and spreads groups
//! over all that are; the choice of a group does not change while its replica stays fit.
//!
//! **Invariant:** the answer is the master itself whenever no replica is fit; a reader that is not
//! slow is always sent to the master.

use rmq_types::{BrokerId, CommitLogOffset, MASTER_ID, Moment};

use crate::master::Master;

/// Java's default of `whichBrokerWhenConsumeSlowly`: nobody chose it.
const JAVA_DEFAULT_SLOW: u64 = 1;

/// When readers are sent to replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingOptions {
    /// `slaveReadEnable`.
    pub enabled: bool,
    /// A reader whose next message lies so far behind the end reads from the disk
    /// (`accessMessageInMemoryMaxRatio` of the memory).
    pub slow_bytes: u64,
    /// A replica that is further behind is not named.
    pub lag_bytes_max: u64,
    /// Nor one that was not caught up for so many milliseconds.
    pub lag_time_max: u64,
}

/// A read that the master answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader<'a> {
    /// Its group.
    pub group: &'a str,
    /// Where its next message lies in the log.
    pub next: CommitLogOffset,
    /// The group's `whichBrokerWhenConsumeSlowly`.
    pub when_slow: u64,
}

/// Why a broker is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Reading from replicas is off.
    Off,
    /// The reader is near the end.
    NotSlow,
    /// The group's own choice.
    Configured,
    /// The replica that this group is spread to.
    Spread,
    /// No replica is fit.
    NobodyFit,
}

/// The answer to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Whom to ask next; [`MASTER_ID`] is the master.
    pub broker: BrokerId,
    /// Why.
    pub reason: Reason,
}

/// A replica for status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub broker: BrokerId,
    /// Bytes behind the master's end.
    pub lag_bytes: u64,
    /// Milliseconds since it was caught up.
    pub lag_millis: u64,
    /// Whether it may be named now.
    pub fit: bool,
    /// Whether it is in the set.
    pub in_sync: bool,
}

impl Master {
    /// Every replica with its lag.
    #[must_use]
    pub fn read_candidates(&self, now: Moment, options: &RoutingOptions) -> Vec<Candidate> {
        let candidates = self.followers.iter().map(|(id, follower)| {
            let acked = follower.acked.unwrap_or_default();
            let lag_bytes = self.log_end.get().saturating_sub(acked.get());
            let lag_millis = now.since(follower.caught_up_at);
            let near = lag_bytes <= options.lag_bytes_max && lag_millis <= options.lag_time_max;
            let in_sync = self.set().contains(id);
            let linked = follower.link.is_some() && follower.in_transfer;
            Candidate {
                broker: *id,
                lag_bytes,
                lag_millis,
                fit: linked && near && (in_sync || follower.learner),
                in_sync,
            }
        });
        candidates.collect()
    }

    /// Whom a reader should ask next.
    #[must_use]
    pub fn suggest(&self, now: Moment, options: &RoutingOptions, reader: Reader<'_>) -> Choice {
        let master = |reason| Choice {
            broker: MASTER_ID,
            reason,
        };
        if !options.enabled {
            return master(Reason::Off);
        }
        let behind = self.log_end.get().saturating_sub(reader.next.get());
        if behind <= options.slow_bytes {
            return master(Reason::NotSlow);
        }
        if reader.when_slow == MASTER_ID.get() {
            return master(Reason::Configured);
        }
        let candidates = self.read_candidates(now, options);
        let fit = candidates.iter().filter(|candidate| candidate.fit);
        let fit: Vec<BrokerId> = fit.map(|candidate| candidate.broker).collect();
        let wanted = BrokerId::new(reader.when_slow);
        if reader.when_slow != JAVA_DEFAULT_SLOW && fit.contains(&wanted) {
            return Choice {
                broker: wanted,
                reason: Reason::Configured,
            };
        }
        let spread = fit.iter().max_by_key(|id| weight(reader.group, **id));
        spread.map_or(master(Reason::NobodyFit), |id| Choice {
            broker: *id,
            reason: Reason::Spread,
        })
    }
}

/// Whether a replica that answers a reader suggests itself again (`None`), or the master.
#[must_use]
pub fn suggest_at_replica(
    slow_bytes: u64,
    end: CommitLogOffset,
    next: CommitLogOffset,
) -> Option<BrokerId> {
    let behind = end.get().saturating_sub(next.get());
    // Half way: a reader at the border is not sent to and fro.
    (behind <= slow_bytes / 2).then_some(MASTER_ID)
}

/// Each group has its own order of brokers, in which a broker that goes moves only its own groups.
fn weight(group: &str, broker: BrokerId) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    let id = broker.get().to_be_bytes();
    for byte in group.bytes().chain(id) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    }
    // The last bytes should reach all bits.
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ (hash >> 32)
}
