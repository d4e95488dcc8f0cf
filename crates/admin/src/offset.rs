//! Offsets: the bounds of a queue, a group's committed offset, and moving it.
//!
//! **Invariant:** an offset that goes out is not negative; one that comes in negative means "none".

use rmq_protocol::{
    body::ResetOffsetBody,
    header::{
        GetMaxOffset, OffsetResponse, QueryConsumerOffset, QueueHeader, ResetOffset, SearchOffset,
        UpdateConsumerOffset,
    },
    remoting::{Command, request_code, response_code},
};
use rmq_types::{GroupName, QueueOffset, Timestamp, TopicName};

use crate::{
    AdminClient, Answers, AskError, OffsetError, Queue,
    answers::ask_all,
    client::{body, fields, refused, request},
};

/// Where a group is to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetTo {
    /// At the oldest message.
    First,
    /// After the newest message.
    Last,
    /// At the first message stored at this time or later.
    Timestamp(Timestamp),
    /// At this offset; of one queue only.
    Offset(QueueOffset),
}

/// The new offsets on one broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResetOutcome(
    /// By queue, in order.
    pub Vec<(Queue, i64)>,
);

impl AdminClient {
    /// The offset the next message of a queue gets (code 30).
    pub async fn max_offset(
        &self,
        addr: &str,
        topic: &TopicName,
        queue: u32,
    ) -> Result<QueueOffset, AskError> {
        let header = GetMaxOffset {
            topic: topic.as_str().into(),
            queue_id: queue as i32,
            committed: true,
        };
        self.ask_offset(addr, request(request_code::GET_MAX_OFFSET, &header))
            .await
    }

    /// The first offset of a queue (code 31).
    pub async fn min_offset(
        &self,
        addr: &str,
        topic: &TopicName,
        queue: u32,
    ) -> Result<QueueOffset, AskError> {
        let header = QueueHeader {
            topic: topic.as_str().into(),
            queue_id: queue as i32,
        };
        self.ask_offset(addr, request(request_code::GET_MIN_OFFSET, &header))
            .await
    }

    /// The first offset stored at `time` or later (code 29).
    pub async fn offset_at(
        &self,
        addr: &str,
        topic: &TopicName,
        queue: u32,
        time: Timestamp,
    ) -> Result<QueueOffset, AskError> {
        let header = SearchOffset {
            topic: topic.as_str().into(),
            queue_id: queue as i32,
            timestamp: time.millis(),
            boundary_type: None,
        };
        self.ask_offset(
            addr,
            request(request_code::SEARCH_OFFSET_BY_TIMESTAMP, &header),
        )
        .await
    }

    async fn ask_offset(&self, addr: &str, cmd: Command) -> Result<QueueOffset, AskError> {
        let code = cmd.code;
        let answer = self.ask(addr, cmd).await?;
        let found: OffsetResponse = fields(addr, code, &answer.ext)?;
        Ok(offset(found.offset).unwrap_or_default())
    }

    /// What a group has committed on a queue (code 14); `None` if nothing.
    pub async fn committed(
        &self,
        addr: &str,
        group: &GroupName,
        topic: &TopicName,
        queue: u32,
    ) -> Result<Option<QueueOffset>, AskError> {
        let code = request_code::QUERY_CONSUMER_OFFSET;
        let header = QueryConsumerOffset {
            consumer_group: group.as_str().into(),
            topic: topic.as_str().into(),
            queue_id: queue as i32,
            set_zero_if_not_found: Some(false),
        };
        let answer = self.exchange(addr, request(code, &header)).await?;
        match answer.code {
            response_code::SUCCESS => {
                let found: OffsetResponse = fields(addr, code, &answer.ext)?;
                Ok(offset(found.offset))
            }
            response_code::QUERY_NOT_FOUND => Ok(None),
            _ => Err(refused(addr, code, answer)),
        }
    }

    /// Commits a group's offset on a queue (code 15) and waits until the broker has it.
    pub async fn commit(
        &self,
        addr: &str,
        group: &GroupName,
        topic: &TopicName,
        queue: u32,
        offset: QueueOffset,
    ) -> Result<(), AskError> {
        let header = UpdateConsumerOffset {
            consumer_group: group.as_str().into(),
            topic: topic.as_str().into(),
            queue_id: queue as i32,
            commit_offset: wire(offset),
        };
        self.ask(addr, request(request_code::UPDATE_CONSUMER_OFFSET, &header))
            .await?;
        Ok(())
    }

    /// Moves a group to another place of a topic, on one queue or on all (code 222). Brokers apply
    /// it when the group's members pull next.
    pub async fn reset_offsets(
        &self,
        group: &GroupName,
        topic: &TopicName,
        queue: Option<&Queue>,
        to: ResetTo,
    ) -> Result<Answers<ResetOutcome>, OffsetError> {
        if matches!(to, ResetTo::Offset(_)) && queue.is_none() {
            return Err(OffsetError::QueueNeeded);
        }
        let mut masters = self.route(topic).await?.masters();
        if let Some(queue) = queue {
            let have = masters
                .iter()
                .map(|master| master.label().to_owned())
                .collect();
            masters.retain(|master| master.broker.as_deref() == Some(&queue.broker));
            if masters.is_empty() {
                let broker = queue.broker.clone();
                return Err(OffsetError::NotThere {
                    topic: topic.clone(),
                    broker,
                    have,
                });
            }
        }
        let reset = request(
            request_code::INVOKE_BROKER_TO_RESET_OFFSET,
            &reset_header(group, topic, queue.map(|queue| queue.id), to),
        );
        Ok(ask_all(masters, |_, addr| {
            let (admin, reset) = (self.clone(), reset.clone());
            async move { admin.reset_at(&addr, reset).await }
        })
        .await)
    }

    async fn reset_at(&self, addr: &str, reset: Command) -> Result<ResetOutcome, AskError> {
        let code = reset.code;
        let answer = self.ask(addr, reset).await?;
        if answer.body.is_empty() {
            return Ok(ResetOutcome::default());
        }
        let set = body(addr, code, &answer, ResetOffsetBody::from_json)?;
        let queue = |queue: rmq_protocol::body::MessageQueue| Queue {
            broker: queue.broker_name,
            id: u32::try_from(queue.queue_id).unwrap_or(0),
        };
        let mut offsets: Vec<_> = set
            .offset_table
            .into_iter()
            .map(|(key, offset)| (queue(key), offset))
            .collect();
        offsets.sort();
        Ok(ResetOutcome(offsets))
    }
}

/// Time −1 means the end and 0 the beginning; an offset is sent beside them.
fn reset_header<'a>(
    group: &'a GroupName,
    topic: &'a TopicName,
    queue: Option<u32>,
    to: ResetTo,
) -> ResetOffset<'a> {
    let (timestamp, offset) = match to {
        ResetTo::First => (0, None),
        ResetTo::Last => (-1, None),
        ResetTo::Timestamp(time) => (time.millis().max(0), None),
        ResetTo::Offset(offset) => (0, Some(wire(offset))),
    };
    ResetOffset {
        group: group.as_str().into(),
        topic: topic.as_str().into(),
        queue_id: queue.map_or(-1, |queue| queue as i32),
        offset,
        timestamp,
        is_force: true,
    }
}

/// An offset from the wire.
pub(crate) fn offset(raw: i64) -> Option<QueueOffset> {
    u64::try_from(raw).ok().map(QueueOffset::new)
}

/// An offset for the wire.
pub(crate) fn wire(offset: QueueOffset) -> i64 {
    i64::try_from(offset.get()).unwrap_or(i64::MAX)
}
