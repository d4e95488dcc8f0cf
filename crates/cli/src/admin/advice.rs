//! What to do about an error, in one line after it.
//!
//! **Invariant:** every variant is looked at, so that a new kind of error needs a decision here.

use rmq_admin::{
    AskError, FollowError, NameServerError, OffsetError, ReadError, SendError, TargetError,
};
use rmq_protocol::remoting::{request_code, response_code};

/// An error that may know what to do next.
pub(super) trait Advice: std::fmt::Display {
    /// The error with its advice.
    fn advised(&self) -> String;
}

/// For `map_err`.
#[expect(
    clippy::needless_pass_by_value,
    reason = "map_err hands the error over"
)]
pub(super) fn advise<E: Advice>(error: E) -> anyhow::Error {
    anyhow::anyhow!(error.advised())
}

fn with(error: &dyn std::fmt::Display, advice: &str) -> String {
    if advice.is_empty() {
        error.to_string()
    } else {
        format!("{error}; {advice}")
    }
}

impl Advice for NameServerError {
    fn advised(&self) -> String {
        match self {
            Self::NoneAnswers { addresses, causes } => {
                let causes: Vec<_> = causes.iter().map(ToString::to_string).collect();
                format!(
                    "no NameServer answers at {}: start one with `rocketmq up \
                     examples/quickstart.yaml` or give --namesrv ({})",
                    addresses.join(", "),
                    causes.join("; ")
                )
            }
            // Whatever is asked of NameServers here, all of them know.
            Self::Refused(AskError::Refused {
                addr,
                request,
                code: response_code::REQUEST_CODE_NOT_SUPPORTED,
                ..
            }) => format!(
                "{addr} is no NameServer, perhaps a broker: it does not know request {request}; \
                 give a NameServer's address with --namesrv"
            ),
            Self::Refused(error) => with(self, advice_for(error)),
            Self::NoSuchTopic { topic, .. } => with(
                self,
                &format!(
                    "create it with `rocketmq admin topic create {topic}`, or see \
                     `rocketmq admin topic list`"
                ),
            ),
        }
    }
}

impl Advice for TargetError {
    fn advised(&self) -> String {
        match self {
            Self::NameServer(error) => error.advised(),
            Self::NoBroker { .. } => with(
                self,
                "start one, and give it this NameServer (`rocketmq broker --help`)",
            ),
            Self::SeveralClusters { .. } => with(self, "say which with --cluster"),
            Self::NoSuchCluster { .. } | Self::NoSuchBroker { .. } => self.to_string(),
        }
    }
}

impl Advice for AskError {
    fn advised(&self) -> String {
        with(self, advice_for(self))
    }
}

impl Advice for SendError {
    fn advised(&self) -> String {
        match self {
            Self::NameServer(error) => error.advised(),
            Self::Broker(error) => error.advised(),
            Self::NoQueue { topic, have, .. } if have.is_empty() => with(
                self,
                &format!(
                    "see its permission with `rocketmq admin topic route {topic}` and allow sends \
                     with `rocketmq admin topic alter {topic} --perm rw`"
                ),
            ),
            Self::NoQueue { topic, .. } => with(
                self,
                &format!("see `rocketmq admin topic route {topic}`, or name another queue"),
            ),
            Self::Property { .. } | Self::PropertiesTooLong { .. } | Self::Unknown(_) => {
                self.to_string()
            }
        }
    }
}

impl Advice for ReadError {
    fn advised(&self) -> String {
        match self {
            Self::NameServer(error) => error.advised(),
            Self::Broker(error) => error.advised(),
            Self::Id { .. } => with(
                self,
                "give the id the broker made (`offsetId` of `rocketmq admin send -o json`); \
                 the producer's own id is looked up with --unique-id",
            ),
            Self::SeveralBrokers { .. } => with(self, "say which with --broker"),
            Self::NoQueue { .. } | Self::NoMessage { .. } => self.to_string(),
        }
    }
}

impl Advice for FollowError {
    fn advised(&self) -> String {
        match self {
            Self::NameServer(error) => error.advised(),
            Self::AllEnded { last: error, .. }
            | Self::Start(error)
            | Self::Commit { source: error, .. } => with(self, advice_for(error)),
            Self::NoQueue { topic, .. } => {
                with(self, &format!("see `rocketmq admin topic route {topic}`"))
            }
        }
    }
}

impl Advice for OffsetError {
    fn advised(&self) -> String {
        match self {
            Self::NameServer(error) => error.advised(),
            Self::QueueNeeded => with(self, "give --broker and --queue"),
            Self::NotThere { .. } => self.to_string(),
        }
    }
}

/// What a broker's refusal asks for.
fn advice_for(error: &AskError) -> &'static str {
    let AskError::Refused { code, request, .. } = error else {
        return match error {
            AskError::NoAnswer(_) => "is it running, and its address reachable from here?",
            _ => "",
        };
    };
    match *code {
        response_code::SUBSCRIPTION_GROUP_NOT_EXIST => {
            "see `rocketmq admin group list`, or create it with `rocketmq admin group create`"
        }
        response_code::TOPIC_NOT_EXIST if *request != request_code::GET_ROUTEINFO_BY_TOPIC => {
            "the topic is not on this broker"
        }
        response_code::SYSTEM_BUSY | response_code::FLOW_CONTROL => {
            "it is overloaded; try again, more slowly"
        }
        response_code::REQUEST_CODE_NOT_SUPPORTED => {
            "perhaps it is no broker, or one of a version without it"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: i32) -> AskError {
        AskError::Refused {
            addr: "127.0.0.1:10911".to_owned(),
            request: request_code::GET_ROUTEINFO_BY_TOPIC,
            code,
            remark: "why".to_owned(),
        }
    }

    #[test]
    fn an_address_that_does_not_know_a_name_servers_requests_is_said_to_be_none() {
        let code = response_code::REQUEST_CODE_NOT_SUPPORTED;
        let said = NameServerError::Refused(refused(code)).advised();
        assert!(
            said.starts_with("127.0.0.1:10911 is no NameServer"),
            "{said}"
        );
        assert!(said.contains("--namesrv"), "{said}");
        let said = refused(code).advised();
        assert!(said.ends_with("one of a version without it"), "{said}");
        let said = NameServerError::Refused(refused(response_code::SYSTEM_ERROR)).advised();
        assert!(
            said.starts_with("NameServer 127.0.0.1:10911 answered"),
            "{said}"
        );
    }
}
