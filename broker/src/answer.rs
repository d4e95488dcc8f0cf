//! What a handler gives back: a command, or a failure with its response code.
//!
//! One place maps errors of every part to codes; a new error kind breaks the build here.

use rmq_protocol::{
    header::FieldError,
    json::JsonError,
    remoting::{Command, response_code},
};
use rmq_store::AppendError;
use rmq_types::NameError;

use crate::{
    config::UpdateError,
    metadata::{PersistError, TopicProblem},
    session::subscription::TagExpressionError,
};

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Response code.
    pub code: i32,
    /// Reason, for people.
    pub remark: String,
}

/// Outcome of a handler; the dispatcher sets the number of the request.
pub(crate) type Answer = Result<Command, Failure>;

impl Failure {
    /// Says which entry of a list it is about.
    #[must_use]
    pub(crate) fn about(self, name: &str) -> Self {
        let name: String = name.chars().take(128).collect();
        Self {
            remark: format!("{name:?}: {}", self.remark),
            ..self
        }
    }

    /// A failure of some code.
    pub(crate) fn new(code: i32, remark: impl Into<String>) -> Self {
        Self {
            code,
            remark: remark.into(),
        }
    }

    /// Code 1.
    pub(crate) fn system(remark: impl Into<String>) -> Self {
        Self::new(response_code::SYSTEM_ERROR, remark)
    }

    /// Code 29.
    pub(crate) fn parameter(remark: impl Into<String>) -> Self {
        Self::new(response_code::INVALID_PARAMETER, remark)
    }

    /// Code 17.
    pub(crate) fn no_topic(topic: &str) -> Self {
        Self::new(
            response_code::TOPIC_NOT_EXIST,
            format!("the topic[{topic}] not exist, apply first please!"),
        )
    }

    /// Code 26.
    pub(crate) fn no_group(group: &str) -> Self {
        Self::new(
            response_code::SUBSCRIPTION_GROUP_NOT_EXIST,
            format!("subscription group [{group}] does not exist"),
        )
    }

    /// Code 16.
    pub(crate) fn no_permission(remark: impl Into<String>) -> Self {
        Self::new(response_code::NO_PERMISSION, remark)
    }
}

/// Success without fields.
pub(crate) fn success() -> Command {
    Command::success(0)
}

impl From<FieldError> for Failure {
    fn from(error: FieldError) -> Self {
        Self::system(error.to_string())
    }
}

impl From<JsonError> for Failure {
    fn from(error: JsonError) -> Self {
        Self::system(format!(
            "the request body is not what was expected: {error}"
        ))
    }
}

impl From<PersistError> for Failure {
    fn from(error: PersistError) -> Self {
        Self::system(format!("not durable, nothing was changed: {error}"))
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        Self::parameter(error.to_string())
    }
}

impl From<TagExpressionError> for Failure {
    fn from(error: TagExpressionError) -> Self {
        Self::new(response_code::SUBSCRIPTION_PARSE_FAILED, error.to_string())
    }
}

impl From<TopicProblem> for Failure {
    fn from(error: TopicProblem) -> Self {
        match error {
            TopicProblem::Perm(_) | TopicProblem::Queues { .. } => {
                Self::parameter(error.to_string())
            }
            TopicProblem::Syntax(_)
            | TopicProblem::UnknownAttribute(_)
            | TopicProblem::AttributeValue { .. }
            | TopicProblem::Unchangeable(_)
            | TopicProblem::Duplicate(_)
            | TopicProblem::Missing(_) => Self::system(error.to_string()),
        }
    }
}

impl From<UpdateError> for Failure {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Forbidden(_) => Self::no_permission(error.to_string()),
            UpdateError::Unknown(_) | UpdateError::Value(_) | UpdateError::Syntax(_) => {
                Self::system(error.to_string())
            }
            UpdateError::Persist(error) => error.into(),
        }
    }
}

impl From<&AppendError> for Failure {
    fn from(error: &AppendError) -> Self {
        let code = match error {
            AppendError::Topic(_)
            | AppendError::QueueId(_)
            | AppendError::BodyTooLong { .. }
            | AppendError::PropertiesTooLong { .. }
            | AppendError::PropertiesTorn
            | AppendError::RecordTooLong { .. } => response_code::MESSAGE_ILLEGAL,
            AppendError::TopicDeleted => response_code::TOPIC_NOT_EXIST,
            AppendError::DiskFull | AppendError::Poisoned(_) | AppendError::ShutDown => {
                response_code::SERVICE_NOT_AVAILABLE
            }
            AppendError::Allocate(_) => response_code::SYSTEM_ERROR,
        };
        Self::new(code, error.to_string())
    }
}
