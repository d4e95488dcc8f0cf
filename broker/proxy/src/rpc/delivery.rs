//! Popped messages on their way to a client, and what becomes of those that do not arrive.
//!
//! **Invariant:** the bytes of all messages that wait for clients are counted, and beyond the bound
//! no more are popped. A stream that takes nothing for [`STALL_MILLIS`] loses its messages: they are
//! made visible again, and so are those of a stream that ends early.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use rmq_types::Timestamp;
use tokio::sync::OwnedSemaphorePermit;
use tokio_stream::Stream;

use crate::proto::v2::receive_message_response::Content;
use crate::proto::v2::{Message, ReceiveMessageResponse, Status};
use crate::rpc::Gateway;
use crate::rules::incoming::timestamp;
use crate::rules::renewal::Owner;

/// A client that takes nothing for so long does not read.
pub(crate) const STALL_MILLIS: i64 = 10_000;

/// A message for a client, and what is needed to give it back.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) message: Message,
    pub(crate) handle: String,
    pub(crate) topic: String,
}

impl Parcel {
    fn bytes(&self) -> usize {
        // Properties and places are small beside a body; a message of none still takes room.
        512 + self.message.body.len()
    }
}

#[derive(Debug)]
struct State {
    parcels: VecDeque<Parcel>,
    moved_at: Timestamp,
}

#[derive(Debug)]
struct Shared {
    owner: Owner,
    state: Mutex<State>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All streams with messages.
#[derive(Debug)]
pub(crate) struct Deliveries {
    open: Mutex<HashMap<u64, Arc<Shared>>>,
    next: AtomicU64,
    bytes: AtomicUsize,
    bytes_max: usize,
}

impl Deliveries {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            open: Mutex::default(),
            next: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            bytes_max,
        }
    }

    /// Bytes that wait for clients.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether more may be popped.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes() < self.bytes_max
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Shared>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, owner: Owner, parcels: Vec<Parcel>, now: Timestamp) -> (u64, Arc<Shared>) {
        let bytes = parcels.iter().map(Parcel::bytes).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let shared = Arc::new(Shared {
            owner,
            state: Mutex::new(State {
                parcels: parcels.into(),
                moved_at: now,
            }),
        });
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(id, Arc::clone(&shared));
        (id, shared)
    }

    fn left(&self, parcels: &[Parcel]) {
        let bytes = parcels.iter().map(Parcel::bytes).sum();
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes the messages of streams that do not move.
    pub(crate) fn stalled(&self, now: Timestamp) -> Vec<(Owner, Vec<Parcel>)> {
        let mut stalled = Vec::new();
        for shared in self.lock().values() {
            let mut state = shared.lock();
            if now.since(state.moved_at) >= STALL_MILLIS && !state.parcels.is_empty() {
                let parcels: Vec<_> = state.parcels.drain(..).collect();
                self.left(&parcels);
                stalled.push((shared.owner.clone(), parcels));
            }
        }
        stalled
    }
}

enum Stage {
    Head,
    Messages,
    End,
}

/// The stream of one receive.
pub(crate) struct Delivery {
    gateway: Arc<Gateway>,
    head: Option<Status>,
    open: Option<(u64, Arc<Shared>)>,
    /// Messages still to be given.
    due: usize,
    stage: Stage,
    began: Timestamp,
    _seat: Option<OwnedSemaphorePermit>,
}

impl Delivery {
    /// A stream of nothing but a status.
    pub(crate) fn empty(gateway: &Arc<Gateway>, status: Status) -> Self {
        Self {
            gateway: Arc::clone(gateway),
            head: Some(status),
            open: None,
            due: 0,
            stage: Stage::Head,
            began: gateway.now(),
            _seat: None,
        }
    }

    /// A stream of messages.
    pub(crate) fn of(
        gateway: &Arc<Gateway>,
        status: Status,
        owner: Owner,
        parcels: Vec<Parcel>,
        seat: OwnedSemaphorePermit,
    ) -> Self {
        let now = gateway.now();
        let due = parcels.len();
        Self {
            gateway: Arc::clone(gateway),
            head: Some(status),
            open: Some(gateway.deliveries.begin(owner, parcels, now)),
            due,
            stage: Stage::Head,
            began: now,
            _seat: Some(seat),
        }
    }

    fn next_message(&mut self) -> Option<Result<Message, tonic::Status>> {
        if self.due == 0 {
            return None;
        }
        let (_, shared) = self.open.as_ref()?;
        let mut state = shared.lock();
        state.moved_at = self.gateway.now();
        let Some(parcel) = state.parcels.pop_front() else {
            self.due = 0;
            let text = "the stream stood still, its messages were taken back";
            return Some(Err(tonic::Status::deadline_exceeded(text)));
        };
        drop(state);
        self.due -= 1;
        self.gateway.deliveries.left(std::slice::from_ref(&parcel));
        self.gateway
            .metrics
            .delivered
            .fetch_add(1, Ordering::Relaxed);
        Some(Ok(parcel.message))
    }
}

impl Stream for Delivery {
    type Item = Result<ReceiveMessageResponse, tonic::Status>;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let content = match this.stage {
            Stage::Head => {
                let only = this.open.is_none();
                this.stage = if only { Stage::End } else { Stage::Messages };
                this.head.take().map(Content::Status)
            }
            Stage::Messages => match this.next_message() {
                Some(Ok(message)) => Some(Content::Message(message)),
                Some(Err(status)) => {
                    this.stage = Stage::End;
                    return Poll::Ready(Some(Err(status)));
                }
                None => {
                    this.stage = Stage::End;
                    Some(Content::DeliveryTimestamp(timestamp(this.began.millis())))
                }
            },
            Stage::End => None,
        };
        Poll::Ready(content.map(|content| {
            Ok(ReceiveMessageResponse {
                content: Some(content),
            })
        }))
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        let Some((id, shared)) = self.open.take() else {
            return;
        };
        self.gateway.deliveries.lock().remove(&id);
        let parcels: Vec<_> = shared.lock().parcels.drain(..).collect();
        if !parcels.is_empty() {
            self.gateway.deliveries.left(&parcels);
            self.gateway.give_back(shared.owner.clone(), parcels);
        }
    }
}
