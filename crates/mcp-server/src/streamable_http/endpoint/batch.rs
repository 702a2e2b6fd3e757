//! Batches of messages, which clients of 2025-03-26 may send.

use bytes::Bytes;
use futures_util::future::join_all;
use http::StatusCode;
use mcp_wire::{Message, Request, RpcError, code, method};

use super::{Endpoint, HttpResponse, admission::Admitted, exchange::Step, post::Started};
use crate::{
    Service,
    streamable_http::{head::Accepts, response},
};

impl<S: Service> Endpoint<S> {
    /// Returns `true` if a request belongs to a session of the only revision with batches.
    pub(super) fn accepts_batches(&self, admitted: &Admitted) -> bool {
        let session = self
            .admit_legacy(admitted)
            .ok()
            .and_then(|admission| admission.session);
        session.is_some_and(|session| session.client.revision.supports_batches())
    }

    /// Answers the messages of a batch concurrently, and responds to all of them together. Each is handled as if it had come
    /// alone from a client that accepts no events: an array has no place for progress and requests to the client.
    pub(super) async fn batch(&self, admitted: &Admitted, bytes: Bytes) -> HttpResponse {
        let messages = match mcp_wire::split_batch(bytes) {
            Ok(messages) => messages,
            Err(error) => return response::error(StatusCode::BAD_REQUEST, None, &error.to_rpc_error()),
        };
        let responses = messages.into_iter().map(|message| {
            let mut admitted = admitted.clone();
            admitted.format.accepts = Accepts {
                json: true,
                events: false,
            };
            self.batched(admitted, message)
        });
        let responses: Vec<Bytes> = join_all(responses).await.into_iter().flatten().collect();
        if responses.is_empty() {
            return response::empty(StatusCode::ACCEPTED);
        }
        response::whole_or_event(mcp_wire::batch_response(&responses), admitted.format.accepts)
    }

    /// Handles one message. Returns the response if it expects one.
    async fn batched(&self, admitted: Admitted, message: Bytes) -> Option<Bytes> {
        match Message::from_client(message) {
            Ok(Message::Request(request)) => self.batched_request(admitted, request).await,
            Ok(Message::Notification(notification)) => {
                self.notification(admitted, &notification);
                None
            }
            Ok(Message::Response(response)) => {
                self.client_response(&admitted, response);
                None
            }
            Err(error) => Some(mcp_wire::error(error.answer_id(), &error.to_rpc_error()).into()),
        }
    }

    async fn batched_request(&self, admitted: Admitted, request: Request) -> Option<Bytes> {
        let id = request.id.clone();
        let refused = || {
            let error = RpcError::new(code::INVALID_REQUEST, "this request is not allowed in a batch");
            Some(mcp_wire::error(Some(id.as_raw()), &error).into())
        };
        if request.method == method::INITIALIZE {
            return refused();
        }
        let started = match self.start(admitted, request) {
            Ok(started) => started,
            Err(pending) => Box::pin(self.resolve(pending)).await,
        };
        match started {
            Started::Response(response) => Some(response.into_body().into_bytes()),
            Started::Subscription(_) => refused(),
            Started::Exchange(mut exchange, ..) => loop {
                if let Step::End(reply) = exchange.step().await {
                    return reply.map(|reply| reply.frame.into());
                }
            },
        }
    }
}
