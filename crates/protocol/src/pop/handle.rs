//! The handle of a popped message (`ExtraInfoUtil`, `ReceiptHandle`): seven, eight or nine fields
//! with one space between them; the table is in the parent module.
//!
//! **Invariant:** a handle that was read is written again as it stood, but for digits like `+5` or
//! `007`. It proves nothing: every number in it may be forged, and the queue decides.

use std::{borrow::Cow, fmt};

use rmq_types::pop::{ORDER_REVIVE_QUEUE, PopTopic};

/// Longest handle read: nine fields of 20 digits and a broker name.
pub const HANDLE_BYTES_MAX: usize = 512;

/// A handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptHandle<'a> {
    /// First offset of the checkpoint.
    pub start_offset: i64,
    /// When it was popped, ms since the epoch.
    pub pop_time: i64,
    /// How long it is invisible, ms.
    pub invisible_time: i64,
    /// Queue of the revive topic; 999 for ordered pops.
    pub revive_queue_id: i32,
    /// Which topic the message lies in.
    pub topic: PopTopic,
    /// The broker that holds it.
    pub broker_name: Cow<'a, str>,
    /// Its queue.
    pub queue_id: i32,
    /// Its offset in the queue.
    pub queue_offset: Option<i64>,
    /// Its offset in the commit log, in handles of gRPC; written only with `queue_offset`.
    pub commit_log_offset: Option<i64>,
}

/// Why a text is no handle, or none for this broker: the caller's fault, all of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// More bytes than a handle can have.
    #[error("the handle has {bytes} bytes, more than {HANDLE_BYTES_MAX}")]
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// Cut short.
    #[error("the handle has {fields} fields, less than {needed}")]
    TooShort {
        /// Fields found.
        fields: usize,
        /// Fields needed.
        needed: usize,
    },
    /// A field is no number of its range.
    #[error("field {field} of the handle is no number: {found:?}")]
    Number {
        /// Name of the field.
        field: &'static str,
        /// Its first characters.
        found: String,
    },
    /// `t` is neither 0, 1 nor 2.
    #[error("the handle names no kind of topic: {found:?}")]
    Topic {
        /// What stood there.
        found: String,
    },
    /// Offsets and queues are never negative, and time runs forward.
    #[error("field {field} of the handle is below zero: {found}")]
    Negative {
        /// Name of the field.
        field: &'static str,
        /// What stood there.
        found: i64,
    },
    /// Given by another broker.
    #[error("the handle is of broker {found:?}")]
    Foreign {
        /// The broker in the handle.
        found: String,
    },
}

impl<'a> ReceiptHandle<'a> {
    /// Reads a handle of seven fields or more. Fields beyond the ninth are ignored, as in Java.
    pub fn parse(text: &'a str) -> Result<Self, HandleError> {
        if text.len() > HANDLE_BYTES_MAX {
            return Err(HandleError::TooLong { bytes: text.len() });
        }
        let mut fields = [""; 9];
        let mut count = 0;
        for (place, field) in fields.iter_mut().zip(text.split(' ')) {
            *place = field;
            count += 1;
        }
        if count < 7 {
            return Err(HandleError::TooShort {
                fields: count,
                needed: 7,
            });
        }
        let kind = fields[4];
        Ok(Self {
            start_offset: number("ckOffset", fields[0])?,
            pop_time: number("popTime", fields[1])?,
            invisible_time: number("invisibleTime", fields[2])?,
            revive_queue_id: number("reviveQid", fields[3])?,
            topic: PopTopic::from_sign(kind)
                .ok_or_else(|| HandleError::Topic { found: short(kind) })?,
            broker_name: Cow::Borrowed(fields[5]),
            queue_id: number("queueId", fields[6])?,
            queue_offset: optional("queueOffset", fields[7], count > 7)?,
            commit_log_offset: optional("commitLogOffset", fields[8], count > 8)?,
        })
    }

    /// As [`ReceiptHandle::parse`], for requests that need the message's own offset too.
    pub fn parse_of_message(text: &'a str) -> Result<Self, HandleError> {
        let handle = Self::parse(text)?;
        if handle.queue_offset.is_none() {
            return Err(HandleError::TooShort {
                fields: 7,
                needed: 8,
            });
        }
        Ok(handle)
    }

    /// Whether the broker of this name can have given it.
    pub fn check(&self, broker_name: &str) -> Result<(), HandleError> {
        if self.broker_name != broker_name {
            let found = short(&self.broker_name);
            return Err(HandleError::Foreign { found });
        }
        for (field, found) in [
            ("ckOffset", self.start_offset),
            ("popTime", self.pop_time),
            ("invisibleTime", self.invisible_time),
            ("reviveQid", self.revive_queue_id.into()),
            ("queueId", self.queue_id.into()),
            ("queueOffset", self.queue_offset.unwrap_or(0)),
        ] {
            if found < 0 {
                return Err(HandleError::Negative { field, found });
            }
        }
        Ok(())
    }

    /// Whether an ordered pop gave it.
    #[must_use]
    pub const fn is_order(&self) -> bool {
        self.revive_queue_id == ORDER_REVIVE_QUEUE
    }

    /// When the message becomes visible again, ms since the epoch.
    #[must_use]
    pub const fn visible_at(&self) -> i64 {
        self.pop_time.saturating_add(self.invisible_time)
    }

    /// The stored topic that the message lies in.
    #[must_use]
    pub fn stored_topic(&self, topic: &str, group: &str) -> String {
        self.topic.stored_topic(topic, group)
    }

    /// The same handle, holding its own text.
    #[must_use]
    pub fn into_owned(self) -> ReceiptHandle<'static> {
        ReceiptHandle {
            broker_name: Cow::Owned(self.broker_name.into_owned()),
            ..self
        }
    }
}

impl fmt::Display for ReceiptHandle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {} {} {} {}",
            self.start_offset,
            self.pop_time,
            self.invisible_time,
            self.revive_queue_id,
            self.topic.sign(),
            self.broker_name,
            self.queue_id
        )?;
        let Some(queue_offset) = self.queue_offset else {
            return Ok(());
        };
        write!(f, " {queue_offset}")?;
        match self.commit_log_offset {
            Some(offset) => write!(f, " {offset}"),
            None => Ok(()),
        }
    }
}

fn number<T: std::str::FromStr>(field: &'static str, text: &str) -> Result<T, HandleError> {
    text.parse().map_err(|_| HandleError::Number {
        field,
        found: short(text),
    })
}

fn optional(field: &'static str, text: &str, there: bool) -> Result<Option<i64>, HandleError> {
    there.then(|| number(field, text)).transpose()
}

fn short(text: &str) -> String {
    text.chars().take(32).collect()
}
