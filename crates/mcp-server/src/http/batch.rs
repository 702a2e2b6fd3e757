//! Batches of messages, which clients of 2025-03-26 may send.

use bytes::Bytes;
use futures_util::future::join_all;
use http::StatusCode;
use mcp_wire::{Message, Request, RpcError, code, method};

use super::{
    endpoint::{Answered, Begun, Endpoint, Inbound},
    exchange::Step,
    headers::Accepts,
    response,
};
use crate::Service;

impl<S: Service> Endpoint<S> {
    /// Whether a request is of a session that has agreed on the one revision that knows batches.
    pub(super) fn takes_batches(&self, inbound: &Inbound) -> bool {
        let session = self.legacy(inbound).ok().and_then(|standing| standing.session);
        session.is_some_and(|session| session.client.revision.supports_batches())
    }

    /// Answers the messages of a batch, which are worked on at the same time, in one piece. Each is taken as if it had come
    /// alone from a client that takes no events: reports and questions in between have no place in an array.
    pub(super) async fn batch(&self, inbound: &Inbound, bytes: Bytes) -> Answered {
        let messages = match mcp_wire::split_batch(bytes) {
            Ok(messages) => messages,
            Err(error) => return response::error(StatusCode::BAD_REQUEST, None, &error.to_rpc_error()),
        };
        let answers = messages.into_iter().map(|message| {
            let mut inbound = inbound.clone();
            inbound.form.accepts = Accepts {
                json: true,
                events: false,
            };
            self.batched(inbound, message)
        });
        let answers: Vec<Bytes> = join_all(answers).await.into_iter().flatten().collect();
        if answers.is_empty() {
            return response::empty(StatusCode::ACCEPTED);
        }
        response::whole_or_event(mcp_wire::batch_response(&answers), inbound.form.accepts)
    }

    /// The answer to one message, if it wants one.
    async fn batched(&self, inbound: Inbound, message: Bytes) -> Option<Bytes> {
        match Message::from_client(message) {
            Ok(Message::Request(request)) => self.batched_request(inbound, request).await,
            Ok(Message::Notification(notification)) => {
                self.notification(inbound, &notification);
                None
            }
            Ok(Message::Response(response)) => {
                self.response(&inbound, response);
                None
            }
            Err(error) => Some(mcp_wire::error(error.answer_id(), &error.to_rpc_error()).into()),
        }
    }

    async fn batched_request(&self, inbound: Inbound, request: Request) -> Option<Bytes> {
        let id = request.id.clone();
        let refused = || {
            let error = RpcError::new(code::INVALID_REQUEST, "this request has no place in a batch");
            Some(mcp_wire::error(Some(id.as_raw()), &error).into())
        };
        if request.method == method::INITIALIZE {
            return refused();
        }
        let begun = match self.begin(inbound, request) {
            Ok(begun) => begun,
            Err(unlearned) => Box::pin(self.begin_learned(unlearned)).await,
        };
        match begun {
            Begun::Answered(answered) => Some(answered.into_body().into_bytes()),
            Begun::Subscription(_) => refused(),
            Begun::Exchange(mut exchange, ..) => loop {
                if let Step::End(reply) = exchange.step().await {
                    return reply.map(|reply| reply.frame.into());
                }
            },
        }
    }
}
