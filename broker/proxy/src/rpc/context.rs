//! Who calls, from the headers of a call.
//!
//! **Invariant:** a call without the client's id is refused. Nothing here is proof of anything.

use std::time::Duration;

use tonic::Request;
use tonic::metadata::MetadataMap;

use crate::proto::v2::Code;
use crate::rules::polling;
use crate::rules::refusal::Refusal;

/// Longest id of a client.
const CLIENT_ID_BYTES_MAX: usize = 1_024;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// The client's id.
    pub(crate) client: String,
    /// Time until the client gives up, as it said when the call began.
    pub(crate) left: Option<Duration>,
}

impl Context {
    pub(crate) fn of<T>(request: &Request<T>) -> Result<Self, Refusal> {
        let headers = request.metadata();
        let client = text(headers, "x-mq-client-id").unwrap_or_default();
        if client.is_empty() || client.len() > CLIENT_ID_BYTES_MAX {
            return Err(Refusal::new(
                Code::ClientIdRequired,
                "the header x-mq-client-id is missing, or too long",
            ));
        }
        Ok(Self {
            client: client.to_owned(),
            left: text(headers, "grpc-timeout").and_then(polling::grpc_timeout),
        })
    }

    /// How long a broker may take to answer.
    pub(crate) fn within(&self, most: Duration) -> Duration {
        self.left.map_or(most, |left| left.min(most))
    }
}

fn text<'a>(headers: &'a MetadataMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
