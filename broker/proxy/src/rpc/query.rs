//! QueryRoute and QueryAssignment: where a topic is, seen through the gateway.
//!
//! **Invariant:** every broker is told with the endpoints at which the client reached the gateway,
//! so that port forwarding and load balancers in between work.

use std::sync::Arc;

use crate::proto::v2::{
    Code, Endpoints, QueryAssignmentRequest, QueryAssignmentResponse, QueryRouteRequest,
    QueryRouteResponse,
};
use crate::rpc::{Context, Gateway};
use crate::rules::refusal::{self, Refusal};
use crate::rules::validate;

fn endpoints(told: Option<Endpoints>) -> Result<Endpoints, Refusal> {
    told.filter(|endpoints| !endpoints.addresses.is_empty())
        .ok_or_else(|| Refusal::new(Code::IllegalAccessPoint, "the request has no endpoints"))
}

pub(super) async fn route(
    gateway: Arc<Gateway>,
    _context: Context,
    request: QueryRouteRequest,
) -> Result<QueryRouteResponse, Refusal> {
    let topic = validate::topic(request.topic.as_ref())?;
    let endpoints = endpoints(request.endpoints)?;
    let route = gateway.cluster.route(&topic).await?;
    let kind = gateway.cluster.kind(&topic, &route).await?;
    let named = request.topic.unwrap_or_default();
    Ok(QueryRouteResponse {
        status: Some(refusal::ok()),
        message_queues: route.message_queues(&named, kind, &endpoints),
    })
}

pub(super) async fn assignment(
    gateway: Arc<Gateway>,
    _context: Context,
    request: QueryAssignmentRequest,
) -> Result<QueryAssignmentResponse, Refusal> {
    let topic = validate::topic(request.topic.as_ref())?;
    let group = validate::group(request.group.as_ref())?;
    let endpoints = endpoints(request.endpoints)?;
    let route = gateway.cluster.route(&topic).await?;
    let terms = gateway.cluster.group(&group).await?;
    let named = request.topic.unwrap_or_default();
    let assignments = route.assignments(&named, terms.fifo, &endpoints);
    if assignments.is_empty() {
        return Err(Refusal::new(Code::Forbidden, "no readable queue"));
    }
    Ok(QueryAssignmentResponse {
        status: Some(refusal::ok()),
        assignments,
    })
}
