//! The end of transactions, and calls that no broker serves yet.
//!
//! **Invariant:** the end of a transaction is told to the broker once; whether it heard it is found
//! out by its own check. What is not served says so.

use std::sync::Arc;

use rmq_protocol::message::sys_flag;

use super::send::end_of;
use crate::backend::REQUEST_TIMEOUT;
use crate::proto::v2::{
    Code, EndTransactionRequest, EndTransactionResponse, RecallMessageRequest,
    RecallMessageResponse, SyncLiteSubscriptionRequest, SyncLiteSubscriptionResponse,
    TransactionResolution, TransactionSource,
};
use crate::rpc::{Context, Gateway};
use crate::rules::refusal::{self, Refusal};
use crate::rules::validate;

pub(super) async fn end(
    gateway: Arc<Gateway>,
    _context: Context,
    request: EndTransactionRequest,
) -> Result<EndTransactionResponse, Refusal> {
    let topic = validate::topic(request.topic.as_ref())?;
    let id = &request.transaction_id;
    if id.trim().is_empty() {
        let text = "the transaction's id is blank";
        return Err(Refusal::new(Code::InvalidTransactionId, text));
    }
    let resolution = match request.resolution() {
        TransactionResolution::Commit => sys_flag::TRANSACTION_COMMIT,
        TransactionResolution::Rollback => sys_flag::TRANSACTION_ROLLBACK,
        TransactionResolution::Unspecified => 0,
    };
    let now = gateway.now();
    let half = gateway.transactions().end(&topic, id, now);
    let Some(half) = half else {
        return Err(Refusal::internal("the transaction is not known here"));
    };
    let addr = gateway.cluster.master(&topic, &half.broker).await?;
    let from_check = request.source() == TransactionSource::SourceServerCheck;
    let cmd = end_of(&topic, &half, id, resolution, from_check);
    let told = gateway.cluster.exchange(&addr, cmd, REQUEST_TIMEOUT).await;
    told.map_err(|error| Refusal::of_call(&error))?;
    Ok(EndTransactionResponse {
        status: Some(refusal::ok()),
    })
}

pub(super) async fn recall(
    _gateway: Arc<Gateway>,
    _context: Context,
    request: RecallMessageRequest,
) -> Result<RecallMessageResponse, Refusal> {
    validate::topic(request.topic.as_ref())?;
    let text = "messages cannot be recalled: brokers have no timer yet";
    Err(Refusal::new(Code::Unsupported, text))
}

pub(super) async fn lite(
    _gateway: Arc<Gateway>,
    _context: Context,
    request: SyncLiteSubscriptionRequest,
) -> Result<SyncLiteSubscriptionResponse, Refusal> {
    validate::topic(request.topic.as_ref())?;
    let text = "light topics are not supported";
    Err(Refusal::new(Code::Unsupported, text))
}
