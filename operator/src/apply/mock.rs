//! A stand-in for the API server's socket, for tests of requests (never of decisions).
//!
//! **Invariant:** each scenario names every request in order; one too many or too few fails.

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower_test::mock::{self, Handle, SendResponse};

/// The server's side.
pub(crate) struct Server(Handle<Request<Body>, Response<Body>>);

/// What was asked.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    pub(crate) body: Value,
}

/// A client and the server it speaks to.
pub(crate) fn pair() -> (Client, Server) {
    let (service, handle) = mock::pair::<Request<Body>, Response<Body>>();
    (Client::new(service, "mq"), Server(handle))
}

/// The way back to whoever asked.
pub(crate) struct Reply(SendResponse<Response<Body>>);

impl Reply {
    pub(crate) fn send(self, code: u16, body: &Value) {
        let response = Response::builder()
            .status(code)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string().into_bytes()))
            .unwrap();
        self.0.send_response(response);
    }
}

impl Server {
    /// Takes the next request.
    pub(crate) async fn take(&mut self) -> (Asked, Reply) {
        let (request, send) = self.0.next_request().await.expect("a request");
        let (head, bytes) = request.into_parts();
        let bytes = bytes.collect_bytes().await.expect("a body");
        let text = |name: &str| {
            let value = head.headers.get(name);
            value.map_or_else(String::new, |v| v.to_str().unwrap().to_owned())
        };
        let asked = Asked {
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            content_type: text("content-type"),
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        };
        (asked, Reply(send))
    }

    /// Takes the next request and answers it.
    pub(crate) async fn answer(&mut self, code: u16, body: Value) -> Asked {
        let (asked, reply) = self.take().await;
        reply.send(code, &body);
        asked
    }

    /// Refuses the next request.
    pub(crate) async fn refuse(&mut self, code: u16, reason: &str) -> Asked {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("no: {reason}"), "reason": reason, "code": code,
        });
        self.answer(code, status).await
    }
}
