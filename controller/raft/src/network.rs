//! Raft messages to other controllers, over the project's client: one connection a peer.
//!
//! **Invariant:** every message has a time limit and a bound; a peer that cannot be reached is tried
//! again after 100 ms, doubling to 2 s. Nothing is queued for it: openraft keeps what is to be sent.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use openraft::{
    BasicNode, RaftNetwork, RaftNetworkFactory,
    error::{InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable},
    network::{Backoff, RPCOption},
    raft::{
        AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest,
        InstallSnapshotResponse, VoteRequest, VoteResponse,
    },
};
use rmq_net::{CallError, Client};
use rmq_protocol::remoting::{Command, response_code};
use serde::de::DeserializeOwned;

use crate::{
    types::{NodeId, Types},
    wire::{
        Address, RAFT_APPEND, RAFT_SNAPSHOT, RAFT_STANDING, RAFT_VOTE, Standing, WireError,
        from_body, snapshot_to_body, to_body,
    },
};

const BACKOFF: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// Why a peer gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("controller {peer} refuses: {remark}")]
    Refused { peer: NodeId, remark: String },
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// Makes the links to peers; clones share their connections.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) group: Arc<str>,
    pub(crate) client: Client,
    /// Addresses of the configuration, which win over those that the log remembers.
    pub(crate) peers: Arc<BTreeMap<NodeId, String>>,
}

impl Network {
    fn link(&self, target: NodeId, remembered: &str) -> Link {
        let address = self.peers.get(&target).map_or(remembered, String::as_str);
        Link {
            group: Arc::clone(&self.group),
            client: self.client.clone(),
            target,
            address: address.to_owned(),
        }
    }

    /// Asks a peer of the configuration how far it is.
    pub(crate) async fn standing(
        &self,
        peer: NodeId,
        within: Duration,
    ) -> Result<Standing, AskError> {
        let link = self.link(peer, "");
        link.ask(RAFT_STANDING, Vec::new(), within).await
    }
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: NodeId, node: &BasicNode) -> Link {
        self.link(target, &node.addr)
    }
}

/// The way to one peer.
#[derive(Debug)]
pub(crate) struct Link {
    group: Arc<str>,
    client: Client,
    target: NodeId,
    address: String,
}

type Failure<E> = RPCError<NodeId, BasicNode, RaftError<NodeId, E>>;

impl Link {
    async fn ask<T: DeserializeOwned>(
        &self,
        code: i32,
        body: impl Into<bytes::Bytes>,
        within: Duration,
    ) -> Result<T, AskError> {
        let address = Address {
            group: &self.group,
            to: self.target,
        };
        let request: Command = address.request(code).with_body(body);
        let answer = self.client.call(&self.address, request, within).await?;
        if answer.code != response_code::SUCCESS {
            return Err(AskError::Refused {
                peer: self.target,
                remark: answer.remark.unwrap_or_default(),
            });
        }
        Ok(from_body(&answer.body)?)
    }

    async fn send<T, E>(
        &self,
        code: i32,
        body: Result<bytes::Bytes, WireError>,
        option: &RPCOption,
    ) -> Result<T, Failure<E>>
    where
        T: DeserializeOwned,
        E: std::error::Error + DeserializeOwned,
    {
        let body = body.map_err(|error| RPCError::Network(NetworkError::new(&error)))?;
        let answer: Result<Result<T, RaftError<NodeId, E>>, AskError> =
            self.ask(code, body, option.hard_ttl()).await;
        match answer {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(RPCError::RemoteError(RemoteError::new(self.target, error))),
            Err(AskError::Call(error)) if error.is_unsent() => {
                self.client.close(&self.address);
                Err(RPCError::Unreachable(Unreachable::new(&error)))
            }
            // A refusal is a peer that has not started or may not vote yet: no hurry.
            Err(error @ AskError::Refused { .. }) => {
                Err(RPCError::Unreachable(Unreachable::new(&error)))
            }
            Err(error) => Err(RPCError::Network(NetworkError::new(&error))),
        }
    }
}

impl RaftNetwork<Types> for Link {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<NodeId>, RPCError<NodeId, BasicNode, RaftError<NodeId>>> {
        let body = to_body(&rpc).map(bytes::Bytes::from);
        self.send(RAFT_APPEND, body, &option).await
    }

    async fn install_snapshot(
        &mut self,
        rpc: InstallSnapshotRequest<Types>,
        option: RPCOption,
    ) -> Result<InstallSnapshotResponse<NodeId>, Failure<InstallSnapshotError>> {
        let body = snapshot_to_body(rpc).map(bytes::BytesMut::freeze);
        self.send(RAFT_SNAPSHOT, body, &option).await
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<NodeId>,
        option: RPCOption,
    ) -> Result<VoteResponse<NodeId>, RPCError<NodeId, BasicNode, RaftError<NodeId>>> {
        let body = to_body(&rpc).map(bytes::Bytes::from);
        self.send(RAFT_VOTE, body, &option).await
    }

    fn backoff(&self) -> Backoff {
        let next = |wait: &Duration| Some((*wait * 2).min(BACKOFF_MAX));
        Backoff::new(std::iter::successors(Some(BACKOFF), next))
    }
}
