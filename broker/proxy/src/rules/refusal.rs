//! How a call ends for a client: the code and words of its status.
//!
//! **Invariant:** one function maps each source of failure (a broker's code, a call that got no
//! answer), so that the same failure has the same code in every call. Where the Java proxy answers
//! `INTERNAL_SERVER_ERROR` although the caller can do something about it, the code here says what:
//! those lines are marked *ours*.

use rmq_net::CallError;
use rmq_protocol::remoting::response_code as broker;

use crate::proto::v2::{Code, Status};

/// Why a call is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code:?})")]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::InternalServerError, message)
    }

    /// What a broker or NameServer answered, success excepted.
    pub(crate) fn of_answer(code: i32, remark: Option<&str>) -> Self {
        let remark = remark.unwrap_or_default().trim();
        let text = if remark.is_empty() {
            broker::name(code).to_owned()
        } else {
            remark.to_owned()
        };
        Self::new(of_broker(code), text)
    }

    /// A call to a broker that got no answer. Addresses of brokers are nothing for clients: the log
    /// has them.
    pub(crate) fn of_call(error: &CallError) -> Self {
        match error {
            CallError::Timeout { .. } => {
                Self::new(Code::ProxyTimeout, "the broker did not answer in time")
            }
            CallError::TooManyPending { .. } => Self::new(
                Code::TooManyRequests,
                "too many requests wait for the broker already",
            ),
            CallError::Connect { .. }
            | CallError::ConnectTimeout { .. }
            | CallError::Closed { .. }
            | CallError::Send { .. } => Self::internal("the broker cannot be reached"),
        }
    }

    pub(crate) fn status(&self) -> Status {
        Status {
            code: self.code.into(),
            message: self.message.clone(),
        }
    }
}

fn of_broker(code: i32) -> Code {
    match code {
        broker::SUCCESS => Code::Ok,
        // Flow control of its own code is ours.
        broker::SYSTEM_BUSY | broker::POLLING_FULL | broker::FLOW_CONTROL => Code::TooManyRequests,
        broker::REQUEST_CODE_NOT_SUPPORTED => Code::NotImplemented,
        broker::SUBSCRIPTION_GROUP_NOT_EXIST => Code::ConsumerGroupNotFound,
        broker::TOPIC_NOT_EXIST => Code::TopicNotFound,
        broker::FLUSH_DISK_TIMEOUT => Code::MasterPersistenceTimeout,
        broker::FLUSH_SLAVE_TIMEOUT => Code::SlavePersistenceTimeout,
        broker::SLAVE_NOT_AVAILABLE => Code::HaNotAvailable,
        broker::POLLING_TIMEOUT | broker::PULL_NOT_FOUND => Code::MessageNotFound,
        broker::SUBSCRIPTION_PARSE_FAILED => Code::IllegalFilterExpression,
        // Ours: the caller can tell these from a fault of the broker.
        broker::NO_PERMISSION => Code::Forbidden,
        broker::MESSAGE_ILLEGAL | broker::INVALID_PARAMETER => Code::BadRequest,
        broker::NO_MESSAGE => Code::InvalidReceiptHandle,
        _ => Code::InternalServerError,
    }
}

/// The status of success.
pub(crate) fn ok() -> Status {
    Status {
        code: Code::Ok.into(),
        message: "OK".to_owned(),
    }
}

/// The status over several outcomes: their common code, or that there are several.
pub(crate) fn overall<'a>(outcomes: impl IntoIterator<Item = &'a Status>) -> Status {
    let mut outcomes = outcomes.into_iter();
    let Some(first) = outcomes.next() else {
        return ok();
    };
    if outcomes.all(|other| other.code == first.code) {
        return first.clone();
    }
    Status {
        code: Code::MultipleResults.into(),
        message: "the entries have different outcomes".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_broker_code_of_the_java_proxys_table_has_its_code() {
        for (code, wanted) in [
            (0, Code::Ok),
            (2, Code::TooManyRequests),
            (3, Code::NotImplemented),
            (26, Code::ConsumerGroupNotFound),
            (17, Code::TopicNotFound),
            (10, Code::MasterPersistenceTimeout),
            (11, Code::HaNotAvailable),
            (12, Code::SlavePersistenceTimeout),
            (209, Code::TooManyRequests),
            (210, Code::MessageNotFound),
            (23, Code::IllegalFilterExpression),
            (1, Code::InternalServerError),
            (14, Code::InternalServerError),
            (-77, Code::InternalServerError),
        ] {
            assert_eq!(Refusal::of_answer(code, None).code, wanted, "{code}");
        }
    }

    #[test]
    fn a_brokers_remark_reaches_the_client_and_its_address_does_not() {
        let said = Refusal::of_answer(1, Some(" disk full "));
        assert_eq!(said.message, "disk full");
        let timeout = Refusal::of_call(&CallError::Timeout {
            addr: "10.0.0.1:10911".into(),
            code: 310,
            after: std::time::Duration::from_secs(2),
        });
        assert_eq!(timeout.code, Code::ProxyTimeout);
        assert!(!timeout.message.contains("10.0.0.1"));
    }

    #[test]
    fn equal_outcomes_have_their_code_and_different_ones_are_several() {
        let status = |code: Code| Status {
            code: code.into(),
            message: String::new(),
        };
        let (good, bad) = (status(Code::Ok), status(Code::InvalidReceiptHandle));
        assert_eq!(overall([&good, &good]).code(), Code::Ok);
        assert_eq!(overall([&bad]).code(), Code::InvalidReceiptHandle);
        assert_eq!(overall([&good, &bad]).code(), Code::MultipleResults);
    }
}
