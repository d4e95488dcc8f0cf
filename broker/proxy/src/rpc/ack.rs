//! Acknowledging, changing the invisible time, dead letters: everything that needs a handle.
//!
//! **Invariant:** a handle that the gateway renewed is replaced by its newest form first; the client
//! never sees that there are several. A handle is checked before a broker is asked.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use rmq_protocol::header::{
    AckMessage, ChangeInvisibleTime, ChangeInvisibleTimeResponse, SendBack,
};
use rmq_protocol::pop::ReceiptHandle;
use rmq_protocol::remoting::request_code;
use rmq_types::Timestamp;

use super::delivery::Parcel;
use crate::backend::{REQUEST_TIMEOUT, fields, request};
use crate::proto::v2::{
    AckMessageEntry, AckMessageRequest, AckMessageResponse, AckMessageResultEntry,
    ChangeInvisibleDurationRequest, ChangeInvisibleDurationResponse, Code,
    ForwardMessageToDeadLetterQueueRequest, ForwardMessageToDeadLetterQueueResponse,
};
use crate::rpc::{Context, Gateway};
use crate::rules::handle;
use crate::rules::refusal::{self, Refusal};
use crate::rules::renewal::{Owner, Taken};
use crate::rules::{polling, validate};

/// Most entries of one request.
const ENTRIES_MAX: usize = 1_000;
/// Acks of one request that are at brokers at a time.
const AT_A_TIME: usize = 64;
/// How long a message that is given back stays invisible.
const GIVEN_BACK: Duration = Duration::from_secs(1);

pub(super) async fn ack(
    gateway: Arc<Gateway>,
    context: Context,
    asked: AckMessageRequest,
) -> Result<AckMessageResponse, Refusal> {
    let topic = validate::topic(asked.topic.as_ref())?;
    let owner = Owner {
        client: context.client,
        group: validate::group(asked.group.as_ref())?,
    };
    let count = asked.entries.len();
    if count == 0 || count > ENTRIES_MAX {
        let text = format!("{count} entries, between 1 and {ENTRIES_MAX} are taken");
        return Err(Refusal::new(Code::BadRequest, text));
    }
    let acks = asked.entries.into_iter().map(|entry| {
        let (gateway, owner, topic) = (&gateway, &owner, &topic);
        async move { acked(gateway, owner, topic, entry).await }
    });
    let entries: Vec<_> = futures::stream::iter(acks)
        .buffered(AT_A_TIME)
        .collect()
        .await;
    let outcomes = entries
        .iter()
        .filter_map(|entry: &AckMessageResultEntry| entry.status.as_ref());
    Ok(AckMessageResponse {
        status: Some(refusal::overall(outcomes)),
        entries,
    })
}

async fn acked(
    gateway: &Gateway,
    owner: &Owner,
    topic: &str,
    entry: AckMessageEntry,
) -> AckMessageResultEntry {
    let outcome = gateway.ack(owner, topic, &entry.receipt_handle).await;
    AckMessageResultEntry {
        message_id: entry.message_id,
        receipt_handle: entry.receipt_handle,
        status: Some(match outcome {
            Ok(()) => refusal::ok(),
            Err(refusal) => refusal.status(),
        }),
    }
}

pub(super) async fn change(
    gateway: Arc<Gateway>,
    context: Context,
    asked: ChangeInvisibleDurationRequest,
) -> Result<ChangeInvisibleDurationResponse, Refusal> {
    let topic = validate::topic(asked.topic.as_ref())?;
    let owner = Owner {
        client: context.client,
        group: validate::group(asked.group.as_ref())?,
    };
    let invisible = asked
        .invisible_duration
        .as_ref()
        .and_then(polling::duration);
    let Some(invisible) = invisible else {
        let text = "the invisible time is missing or negative";
        return Err(Refusal::new(Code::IllegalInvisibleTime, text));
    };
    let invisible = polling::of_change(invisible)?;
    let newest = gateway.newest(&owner, &asked.receipt_handle).await?;
    let (receipt_handle, status) = match gateway
        .change(&owner.group, &topic, &newest, invisible)
        .await
    {
        Ok((handle, _)) => (handle, refusal::ok()),
        // The message stays as it is: the handle is still good.
        Err(refusal) if refusal.code == Code::TooManyRequests => (newest, refusal.status()),
        Err(refusal) => return Err(refusal),
    };
    Ok(ChangeInvisibleDurationResponse {
        status: Some(status),
        receipt_handle,
    })
}

pub(super) async fn dead_letter(
    gateway: Arc<Gateway>,
    context: Context,
    asked: ForwardMessageToDeadLetterQueueRequest,
) -> Result<ForwardMessageToDeadLetterQueueResponse, Refusal> {
    let topic = validate::topic(asked.topic.as_ref())?;
    let owner = Owner {
        client: context.client,
        group: validate::group(asked.group.as_ref())?,
    };
    let newest = gateway.newest(&owner, &asked.receipt_handle).await?;
    gateway
        .to_dead_letters(&owner.group, &topic, &newest, &asked.message_id)
        .await?;
    Ok(ForwardMessageToDeadLetterQueueResponse {
        status: Some(refusal::ok()),
    })
}

impl Gateway {
    /// The handle that counts for a client's handle, which is not renewed any more from now on.
    async fn newest(&self, owner: &Owner, first: &str) -> Result<String, Refusal> {
        let found = async {
            loop {
                let ring = self.renewed.notified();
                tokio::pin!(ring);
                ring.as_mut().enable();
                match self.renewals().take(owner, first) {
                    Taken::Unknown => return first.to_owned(),
                    Taken::Newest(newest) => return newest,
                    Taken::Busy => {}
                }
                ring.await;
            }
        };
        let busy = |_| Refusal::new(Code::ProxyTimeout, "the handle is being renewed");
        tokio::time::timeout(REQUEST_TIMEOUT, found)
            .await
            .map_err(busy)
    }

    async fn ack(&self, owner: &Owner, topic: &str, first: &str) -> Result<(), Refusal> {
        let newest = self.newest(owner, first).await?;
        let handle = handle::parse(&newest, self.now())?;
        self.ack_parsed(&owner.group, topic, &handle, &newest).await
    }

    async fn ack_parsed(
        &self,
        group: &str,
        topic: &str,
        handle: &ReceiptHandle<'_>,
        text: &str,
    ) -> Result<(), Refusal> {
        let addr = self.cluster.master(topic, &handle.broker_name).await?;
        let header = AckMessage {
            consumer_group: group.to_owned().into(),
            topic: handle::stored_topic(handle, topic, group).into(),
            queue_id: handle.queue_id,
            extra_info: text.to_owned().into(),
            offset: handle.queue_offset.unwrap_or_default(),
        };
        let cmd = request(request_code::ACK_MESSAGE, &header);
        self.cluster
            .ask(&addr, cmd, REQUEST_TIMEOUT)
            .await
            .map(drop)
    }

    /// Changes the invisible time; the new handle, and when the message becomes visible.
    pub(crate) async fn change(
        &self,
        group: &str,
        topic: &str,
        text: &str,
        invisible: Duration,
    ) -> Result<(String, Timestamp), Refusal> {
        let handle = handle::parse(text, self.now())?;
        let addr = self.cluster.master(topic, &handle.broker_name).await?;
        let header = ChangeInvisibleTime {
            consumer_group: group.to_owned().into(),
            topic: handle::stored_topic(&handle, topic, group).into(),
            queue_id: handle.queue_id,
            extra_info: text.to_owned().into(),
            offset: handle.queue_offset.unwrap_or_default(),
            invisible_time: i64::try_from(invisible.as_millis()).unwrap_or(i64::MAX),
        };
        let cmd = request(request_code::CHANGE_MESSAGE_INVISIBLETIME, &header);
        let answer = self.cluster.ask(&addr, cmd, REQUEST_TIMEOUT).await?;
        let answer: ChangeInvisibleTimeResponse = fields(&answer)?;
        let visible_at = Timestamp::from_millis(answer.pop_time).plus_millis(answer.invisible_time);
        Ok((handle::changed(&handle, &answer), visible_at))
    }

    /// Moves a message to the group's dead-letter topic, then acknowledges it.
    async fn to_dead_letters(
        &self,
        group: &str,
        topic: &str,
        text: &str,
        message_id: &str,
    ) -> Result<(), Refusal> {
        let handle = handle::parse(text, self.now())?;
        let Some(offset) = handle.commit_log_offset else {
            let text = "the handle does not say where the message lies";
            return Err(Refusal::new(Code::InvalidReceiptHandle, text));
        };
        let addr = self.cluster.master(topic, &handle.broker_name).await?;
        let header = SendBack {
            offset,
            group: group.to_owned().into(),
            // At once to the dead letters.
            delay_level: -1,
            origin_msg_id: Some(message_id.to_owned().into()),
            origin_topic: Some(handle::stored_topic(&handle, topic, group).into()),
            unit_mode: false,
            max_reconsume_times: Some(0),
        };
        let cmd = request(request_code::CONSUMER_SEND_MSG_BACK, &header);
        self.cluster.ask(&addr, cmd, REQUEST_TIMEOUT).await?;
        self.metrics.dead.fetch_add(1, Ordering::Relaxed);
        self.ack_parsed(group, topic, &handle, text).await
    }

    /// Acknowledges a message that no filter of its group wants.
    pub(crate) fn ack_unwanted(self: &Arc<Self>, owner: &Owner, topic: &str, handle: String) {
        let (gateway, owner, topic) = (Arc::clone(self), owner.clone(), topic.to_owned());
        self.tasks.spawn(async move {
            if let Err(refusal) = gateway.ack(&owner, &topic, &handle).await {
                tracing::debug!(topic, group = owner.group, %refusal, "not acknowledged");
            }
        });
    }

    /// Moves a message that was delivered often enough to the dead letters.
    pub(crate) fn bury(self: &Arc<Self>, owner: &Owner, topic: &str, handle: String, id: String) {
        let (gateway, owner, topic) = (Arc::clone(self), owner.clone(), topic.to_owned());
        self.tasks.spawn(async move {
            let outcome = gateway
                .to_dead_letters(&owner.group, &topic, &handle, &id)
                .await;
            if let Err(refusal) = outcome {
                tracing::warn!(topic, group = owner.group, %refusal, "not moved to dead letters");
            }
        });
    }

    /// Makes messages visible again that did not reach their client.
    pub(crate) fn give_back(self: &Arc<Self>, owner: Owner, parcels: Vec<Parcel>) {
        let gateway = Arc::clone(self);
        let count = parcels.len() as u64;
        self.metrics.given_back.fetch_add(count, Ordering::Relaxed);
        self.tasks.spawn(async move {
            for Parcel { handle, topic, .. } in parcels {
                gateway.make_visible(&owner, &topic, &handle).await;
            }
        });
    }

    /// Makes the messages visible again that a client that is gone worked on.
    pub(crate) fn release(self: &Arc<Self>, client: &str) {
        let left = self.renewals().leave(client);
        if left.is_empty() {
            return;
        }
        let gateway = Arc::clone(self);
        self.tasks.spawn(async move {
            for (owner, kept) in left {
                gateway
                    .make_visible(&owner, &kept.topic, &kept.handle)
                    .await;
            }
        });
    }

    async fn make_visible(&self, owner: &Owner, topic: &str, first: &str) {
        let Ok(newest) = self.newest(owner, first).await else {
            return;
        };
        let changed = self.change(&owner.group, topic, &newest, GIVEN_BACK).await;
        if let Err(refusal) = changed {
            // It comes again after its invisible time.
            tracing::debug!(topic, group = owner.group, %refusal, "not given back");
        }
    }
}
