//! How long requests take, by code, answer and outcome (`rocketmq_rpc_latency`).
//!
//! **Invariant:** recording looks nothing up by text, takes no lock and, after the first answer of
//! its kind, no memory. What a client writes into a code cannot make series without end: codes that
//! nobody serves share one row, and a row has a bound.

use std::{sync::OnceLock, time::Duration};

use rmq_protocol::remoting::{request_code, response_code};

use super::histogram::{Histogram, Snapshot};

/// Bounds of the buckets, in milliseconds, as in Java.
static BOUNDS: [u64; 9] = [1, 3, 5, 7, 10, 100, 1000, 2000, 3000];
/// Different answers that one code is told apart by; further ones share the last place.
const ANSWERS_MAX: usize = 16;

macro_rules! served {
    ($($name:ident)*) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "the names are those of the protocol")]
        #[derive(Clone, Copy, Debug)]
        enum Row { $($name,)* Other }

        impl Row {
            const NAMES: &[&str] = &[$(stringify!($name),)* "OTHER"];

            const fn of(code: i32) -> Self {
                match code {
                    $(request_code::$name => Self::$name,)*
                    _ => Self::Other,
                }
            }
        }
    };
}
served! {
    SEND_MESSAGE SEND_MESSAGE_V2 SEND_BATCH_MESSAGE SEND_REPLY_MESSAGE SEND_REPLY_MESSAGE_V2
    PULL_MESSAGE LITE_PULL_MESSAGE CONSUMER_SEND_MSG_BACK
    HEART_BEAT UNREGISTER_CLIENT CHECK_CLIENT_CONFIG GET_CONSUMER_LIST_BY_GROUP
    QUERY_CONSUMER_OFFSET UPDATE_CONSUMER_OFFSET GET_MAX_OFFSET GET_MIN_OFFSET
    SEARCH_OFFSET_BY_TIMESTAMP GET_EARLIEST_MSG_STORETIME LOCK_BATCH_MQ UNLOCK_BATCH_MQ
    UPDATE_AND_CREATE_TOPIC UPDATE_AND_CREATE_TOPIC_LIST DELETE_TOPIC_IN_BROKER GET_TOPIC_CONFIG
    GET_ALL_TOPIC_CONFIG GET_SYSTEM_TOPIC_LIST_FROM_BROKER GET_TOPIC_STATS_INFO
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST
    GET_SUBSCRIPTIONGROUP_CONFIG GET_ALL_SUBSCRIPTIONGROUP_CONFIG DELETE_SUBSCRIPTIONGROUP
    UPDATE_AND_GET_GROUP_FORBIDDEN UPDATE_BROKER_CONFIG GET_BROKER_CONFIG GET_BROKER_RUNTIME_INFO
    VIEW_BROKER_STATS_DATA GET_CONSUMER_CONNECTION_LIST GET_PRODUCER_CONNECTION_LIST
    GET_ALL_PRODUCER_INFO QUERY_MESSAGE VIEW_MESSAGE_BY_ID QUERY_CONSUME_QUEUE GET_CONSUME_STATS
    GET_BROKER_CONSUME_STATS QUERY_CONSUME_TIME_SPAN QUERY_CORRECTION_OFFSET
    GET_ALL_CONSUMER_OFFSET GET_ALL_DELAY_OFFSET QUERY_TOPIC_CONSUME_BY_WHO
    QUERY_TOPICS_BY_CONSUMER QUERY_SUBSCRIPTION_BY_CONSUMER INVOKE_BROKER_TO_RESET_OFFSET
    CLONE_GROUP_OFFSET GET_CONSUMER_RUNNING_INFO CONSUME_MESSAGE_DIRECTLY
    INVOKE_BROKER_TO_GET_CONSUMER_STATUS QUERY_ASSIGNMENT SET_MESSAGE_REQUEST_MODE
    GET_ALL_MESSAGE_REQUEST_MODE CLEAN_EXPIRED_CONSUMEQUEUE CLEAN_UNUSED_TOPIC
    DELETE_EXPIRED_COMMITLOG RECALL_MESSAGE END_TRANSACTION
    POP_MESSAGE ACK_MESSAGE BATCH_ACK_MESSAGE PEEK_MESSAGE CHANGE_MESSAGE_INVISIBLETIME NOTIFICATION
    POLLING_INFO POP_ROLLBACK
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answered.
    Success,
    /// Nobody waits for an answer.
    Oneway,
    /// The answer did not reach the connection.
    WriteFailed,
}

impl Outcome {
    /// Of a request whose answer is in the outgoing buffer, if it wants one.
    pub(crate) const fn of(is_oneway: bool) -> Self {
        if is_oneway {
            Self::Oneway
        } else {
            Self::Success
        }
    }

    /// Of an answer that was written to a connection.
    pub(crate) const fn written<T, E>(written: &Result<T, E>) -> Self {
        match written {
            Ok(_) => Self::Success,
            Err(_) => Self::WriteFailed,
        }
    }

    /// Java's word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Oneway => "oneway",
            Self::WriteFailed => "write_channel_failed",
        }
    }
}

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    /// Request code.
    pub(crate) request: i32,
    /// Response code.
    pub(crate) response: i32,
    /// Whether it waited for a message.
    pub(crate) held: bool,
    /// What became of it.
    pub(crate) outcome: Outcome,
}

#[derive(Debug)]
struct Series {
    answered: Answered,
    times: Histogram<9>,
}

/// One series for the page.
#[derive(Debug)]
pub(crate) struct View {
    /// Name of the request code, in small letters.
    pub(crate) request: String,
    /// Name or number of the response code.
    pub(crate) response: String,
    /// Whether the requests waited for a message.
    pub(crate) held: bool,
    /// What became of them.
    pub(crate) outcome: Outcome,
    /// Milliseconds.
    pub(crate) times: Snapshot,
}

/// All series.
#[derive(Debug)]
pub(crate) struct RpcLatency {
    rows: Box<[[OnceLock<Box<Series>>; ANSWERS_MAX]]>,
}

impl RpcLatency {
    /// Nothing yet.
    #[must_use]
    pub(crate) fn new() -> Self {
        let row = || std::array::from_fn(|_| OnceLock::new());
        Self {
            rows: Row::NAMES.iter().map(|_| row()).collect(),
        }
    }

    /// Adds `times` requests that took `elapsed` each.
    pub(crate) fn record(&self, answered: Answered, elapsed: Duration, times: u64) {
        let Some(row) = self.rows.get(Row::of(answered.request) as usize) else {
            return;
        };
        let millis = elapsed.as_millis() as u64;
        for (index, place) in row.iter().enumerate() {
            let series = place.get_or_init(|| {
                Box::new(Series {
                    answered,
                    times: Histogram::new(&BOUNDS),
                })
            });
            let same = series.answered.response == answered.response
                && series.answered.held == answered.held
                && series.answered.outcome == answered.outcome;
            if same || index + 1 == ANSWERS_MAX {
                series.times.record(millis, times);
                return;
            }
        }
    }

    /// Every series that has a value.
    pub(crate) fn views(&self) -> impl Iterator<Item = View> {
        let rows = self.rows.iter().zip(Row::NAMES);
        rows.flat_map(|(row, name)| {
            let series = row.iter().filter_map(OnceLock::get);
            series.enumerate().map(|(index, series)| View {
                request: name.to_ascii_lowercase(),
                response: if index + 1 == ANSWERS_MAX {
                    "other".to_owned()
                } else {
                    response_text(series.answered.response)
                },
                held: series.answered.held,
                outcome: series.answered.outcome,
                times: series.times.snapshot(),
            })
        })
    }
}

/// The name of a response code as Java's page has it; a code without one is its number.
fn response_text(code: i32) -> String {
    match response_code::name(code) {
        "UNKNOWN" => code.to_string(),
        name => name.to_ascii_lowercase(),
    }
}

/// Requests of one read that are answered together: equal answers are recorded at once.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    into: &'a RpcLatency,
    last: Option<Answered>,
    times: u64,
    since: std::time::Instant,
}

impl<'a> Tally<'a> {
    /// Of requests that were read at `since`.
    pub(crate) fn new(into: &'a RpcLatency, since: std::time::Instant) -> Self {
        Self {
            into,
            last: None,
            times: 0,
            since,
        }
    }

    /// Takes one answer in.
    pub(crate) fn add(&mut self, answered: Answered) {
        if self.last != Some(answered) {
            self.write();
            self.last = Some(answered);
        }
        self.times += 1;
    }

    fn write(&mut self) {
        if let Some(answered) = self.last.take() {
            self.into.record(answered, self.since.elapsed(), self.times);
            self.times = 0;
        }
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        self.write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::{handler_of, pop, pull::is_pull, send::is_send};

    fn answered(request: i32, response: i32) -> Answered {
        Answered {
            request,
            response,
            held: false,
            outcome: Outcome::Success,
        }
    }

    #[test]
    fn every_code_that_is_served_has_a_row_of_its_own() {
        let known = (0..3_500).chain(200_000..200_300);
        let served = known.filter(|code| {
            handler_of(*code).is_some() || is_send(*code) || is_pull(*code) || pop::is_direct(*code)
        });
        let mut count = 0;
        for code in served {
            assert!(!matches!(Row::of(code), Row::Other), "{code}");
            count += 1;
        }
        assert_eq!(count + 1, Row::NAMES.len());
    }

    #[test]
    fn codes_of_nobody_share_a_row_whose_length_has_a_bound() {
        let latency = RpcLatency::new();
        for code in 0..1_000 {
            latency.record(answered(7_000 + code, code), Duration::ZERO, 1);
        }
        let views: Vec<View> = latency.views().collect();
        assert_eq!(views.len(), ANSWERS_MAX);
        assert_eq!(
            views.iter().map(|view| view.times.count).sum::<u64>(),
            1_000
        );
        assert!(views.iter().all(|view| view.request == "other"));
        assert_eq!(views[ANSWERS_MAX - 1].response, "other");
    }

    #[test]
    fn equal_answers_of_one_read_are_one_entry_and_others_are_not_mixed_in() {
        let latency = RpcLatency::new();
        let mut tally = Tally::new(&latency, std::time::Instant::now());
        for response in [0, 0, 1, 0] {
            tally.add(answered(request_code::SEND_MESSAGE_V2, response));
        }
        drop(tally);
        let mut counts: Vec<(String, u64)> = latency
            .views()
            .map(|view| (view.response, view.times.count))
            .collect();
        counts.sort();
        assert_eq!(counts, [("success".into(), 3), ("system_error".into(), 1)]);
    }

    #[test]
    fn a_response_without_a_name_is_its_number() {
        assert_eq!(response_text(19), "pull_not_found");
        assert_eq!(response_text(9_999), "9999");
    }
}
