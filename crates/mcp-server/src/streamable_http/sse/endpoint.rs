//! Requests over HTTP+SSE.

use bytes::Bytes;
use http::{Method, StatusCode, request::Parts};
use hyper::body::Body;
use mcp_wire::{Message, ParseError, ParseErrorKind, RpcError, code};
use tokio::time::timeout;

use crate::{
    Service, StdioOptions,
    request::ParsedParams,
    streamable_http::{
        endpoint::{Admitted, Endpoint, HttpResponse, read_body},
        response,
    },
};

impl<S: Service> Endpoint<S> {
    /// Returns `true` if a request is one of HTTP+SSE.
    pub(in crate::streamable_http) fn is_sse_path(&self, parts: &Parts) -> bool {
        self.options
            .sse_path
            .as_deref()
            .is_some_and(|path| path == parts.uri.path())
    }

    /// Answers a request of HTTP+SSE.
    pub(in crate::streamable_http) async fn respond_sse<B: Body<Data = Bytes>>(
        &self,
        admitted: Admitted,
        body: B,
    ) -> HttpResponse {
        match admitted.parts.method {
            Method::GET => self.open_sse(admitted),
            Method::POST => self.post_sse(&admitted, body).await,
            _ => response::method_not_allowed(),
        }
    }

    fn open_sse(&self, admitted: Admitted) -> HttpResponse {
        let Admitted {
            parts,
            principal,
            format,
        } = admitted;
        if !format.accepts.events {
            let message = "`Accept` must allow `text/event-stream`";
            return response::refuse(StatusCode::NOT_ACCEPTABLE, message);
        }
        let permit = match self.stream_permits.try_acquire(&principal) {
            Ok(permit) => permit,
            Err(reason) => return response::no_stream_permit(reason, None),
        };
        let options = StdioOptions {
            principal,
            max_message: self.options.max_body + 1,
            notifier: self.options.notifier.clone(),
            ..StdioOptions::default()
        };
        let path = parts.uri.path();
        match self.sse_clients.open(self.core.clone(), options, path) {
            Some(stream) => response::sse_client(stream, permit, self.options.keep_alive),
            None => response::refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                "there is no room for another stream",
            ),
        }
    }

    async fn post_sse<B: Body<Data = Bytes>>(&self, admitted: &Admitted, body: B) -> HttpResponse {
        if !admitted.format.is_json {
            let message = "the body must be `application/json`, not compressed";
            return response::refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
        }
        let query = admitted.parts.uri.query();
        let id = query.and_then(|query| query.strip_prefix("session="));
        let Some(client) = id.and_then(|id| self.sse_clients.get(id, &admitted.principal)) else {
            return response::refuse(StatusCode::NOT_FOUND, "unknown session; open a new stream");
        };
        let limit = self.options.max_body;
        let bytes = match read_body(body, limit, self.options.body_timeout).await {
            Ok(bytes) => bytes,
            Err(error) => return response::body_error(error, limit),
        };
        let is_modern = match Message::from_client(bytes.clone()) {
            Err(error) if *error.kind() == ParseErrorKind::Batch && client.accepts_batches() => {
                holds_modern(bytes.clone())
            }
            message => message.map(is_modern),
        };
        let is_modern = match is_modern {
            Ok(is_modern) => is_modern,
            Err(error) => {
                return response::error(StatusCode::BAD_REQUEST, error.answer_id(), &error.to_rpc_error());
            }
        };
        // Modern requests have headers to check, which this transport does not define.
        if is_modern {
            let error = RpcError::new(
                code::INVALID_REQUEST,
                "this revision is not spoken on this transport",
            );
            return response::error(StatusCode::BAD_REQUEST, None, &error);
        }
        // A busy connection accepts no messages until it is idle again.
        match timeout(self.options.body_timeout, client.send(&bytes)).await {
            Ok(true) => response::empty(StatusCode::ACCEPTED),
            _ => response::refuse(StatusCode::SERVICE_UNAVAILABLE, "the connection is busy"),
        }
    }
}

fn is_modern(message: Message) -> bool {
    let params = match message {
        Message::Request(request) => request.params,
        Message::Notification(notification) => notification.params,
        Message::Response(_) => None,
    };
    ParsedParams::parse(params.as_ref()).version.is_some()
}

/// Returns `true` if a message of a batch is modern. The connection answers invalid messages.
fn holds_modern(batch: Bytes) -> Result<bool, ParseError> {
    let messages = mcp_wire::split_batch(batch)?;
    Ok(messages
        .into_iter()
        .filter_map(|text| Message::from_client(text).ok())
        .any(is_modern))
}
