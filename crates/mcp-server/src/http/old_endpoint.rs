//! What the transport of 2024-11-05 answers to one HTTP request.

use bytes::Bytes;
use http::{Method, StatusCode, request::Parts};
use hyper::body::Body;
use mcp_wire::{Message, ParseError, ParseErrorKind, RpcError, code};
use tokio::time::timeout;

use super::{
    body,
    endpoint::{Answered, Endpoint},
    headers::Form,
    response,
};
use crate::{Principal, Service, StdioOptions, outline::Outline};

impl<S: Service> Endpoint<S> {
    pub(super) fn is_for_old_clients(&self, parts: &Parts) -> bool {
        self.options
            .old_clients
            .as_deref()
            .is_some_and(|path| path == parts.uri.path())
    }

    pub(super) async fn old_client<B: Body<Data = Bytes>>(
        &self,
        parts: &Parts,
        form: Form,
        principal: Principal,
        body: B,
    ) -> Answered {
        match parts.method {
            Method::GET => self.open_old(parts, form, principal),
            Method::POST => self.post_old(parts, form, &principal, body).await,
            _ => response::method_not_allowed(),
        }
    }

    fn open_old(&self, parts: &Parts, form: Form, principal: Principal) -> Answered {
        if !form.accepts.events {
            let message = "`Accept` must allow `text/event-stream`";
            return response::refuse(StatusCode::NOT_ACCEPTABLE, message);
        }
        let seat = match self.seats.take(&principal) {
            Ok(seat) => seat,
            Err(reason) => return response::no_seat(reason, None),
        };
        let options = StdioOptions {
            principal,
            max_message: self.options.max_body + 1,
            notices: self.options.notices.clone(),
            ..StdioOptions::default()
        };
        let path = parts.uri.path();
        match self.old_clients.open(self.core.clone(), options, path) {
            Some(stream) => response::old_client(stream, seat, self.options.keep_alive),
            None => response::refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                "there is no room for another stream",
            ),
        }
    }

    async fn post_old<B: Body<Data = Bytes>>(
        &self,
        parts: &Parts,
        form: Form,
        principal: &Principal,
        body: B,
    ) -> Answered {
        if !form.is_json {
            let message = "the body must be `application/json`, not compressed";
            return response::refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
        }
        let id = parts.uri.query().and_then(|query| query.strip_prefix("session="));
        let Some(client) = id.and_then(|id| self.old_clients.get(id, principal)) else {
            return response::refuse(StatusCode::NOT_FOUND, "unknown session; open a new stream");
        };
        let limit = self.options.max_body;
        let bytes = match body::read(body, limit, self.options.body_timeout).await {
            Ok(bytes) => bytes,
            Err(fault) => return response::body_fault(fault, limit),
        };
        let is_modern = match Message::from_client(bytes.clone()) {
            Err(error) if *error.kind() == ParseErrorKind::Batch && client.takes_batches() => {
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
        // What is modern has headers to be checked, which this transport does not know.
        if is_modern {
            let error = RpcError::new(
                code::INVALID_REQUEST,
                "this revision is not spoken on this transport",
            );
            return response::error(StatusCode::BAD_REQUEST, None, &error);
        }
        // A connection that is busy takes no more until it is not.
        match timeout(self.options.body_timeout, client.send(&bytes)).await {
            Ok(true) => response::empty(StatusCode::ACCEPTED),
            _ => response::refuse(StatusCode::SERVICE_UNAVAILABLE, "the connection takes no more"),
        }
    }
}

fn is_modern(message: Message) -> bool {
    let params = match message {
        Message::Request(request) => request.params,
        Message::Notification(notification) => notification.params,
        Message::Response(_) => None,
    };
    Outline::of(params.as_ref()).version.is_some()
}

/// Whether a message of a batch is modern. What is no message in it is for the connection to answer.
fn holds_modern(batch: Bytes) -> Result<bool, ParseError> {
    let messages = mcp_wire::split_batch(batch)?;
    Ok(messages
        .into_iter()
        .filter_map(|text| Message::from_client(text).ok())
        .any(is_modern))
}
