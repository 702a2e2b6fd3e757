//! Streams on which clients listen: subscriptions, notifications of a session, and responses that are resumed.

use std::sync::atomic::Ordering;

use http::StatusCode;
use mcp_wire::{Era, RpcError, code, header};

use super::{Endpoint, HttpResponse, admission::Admitted, post::Opened};
use crate::{
    Peer, Principal, Service,
    notifications::SessionQueue,
    protocol,
    streamable_http::{head::KnownHeaders, response, session::Session},
};

impl<S: Service> Endpoint<S> {
    /// Opens the stream of a modern client's subscription.
    pub(super) async fn subscribe(&self, opened: Opened) -> HttpResponse {
        let Opened {
            admitted,
            admission,
            request,
            params,
        } = opened;
        let accepts = admitted.format.accepts;
        let principal = admitted.principal.clone();
        let cx = admitted.into_context(&admission, params);
        let filter = match self.core.subscription_filter(&request, &cx).await {
            Ok(filter) => filter,
            Err(error) => {
                let reply = protocol::reply(&request.id, Err(error), Era::Modern);
                return response::finish(reply, Era::Modern, accepts);
            }
        };
        let refuse = |status, message: &str| {
            let error = RpcError::new(code::INVALID_REQUEST, message);
            response::error(status, Some(request.id.as_raw()), &error)
        };
        if !accepts.events {
            let message = "`Accept` must allow `text/event-stream`";
            return refuse(StatusCode::NOT_ACCEPTABLE, message);
        }
        let permit = match self.stream_permits.try_acquire(&principal) {
            Ok(permit) => permit,
            Err(reason) => return response::no_stream_permit(reason, Some(request.id.as_raw())),
        };
        let peer = Peer::from_request(&cx);
        match self.subscriptions.open(filter, peer, &self.options.notifier) {
            Some(subscription) => response::subscription(subscription, permit, self.options.keep_alive),
            None => refuse(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down"),
        }
    }

    /// Opens the stream on which a legacy client listens, or resumes one.
    pub(super) fn listen(&self, admitted: &Admitted) -> HttpResponse {
        let Admitted {
            parts,
            principal,
            format,
        } = admitted;
        let named = KnownHeaders::from_map(&parts.headers).session;
        let session = match self.session(named, principal) {
            Ok(Some(session)) => session,
            // Without a session there are no notifications.
            Ok(None) => return response::method_not_allowed(),
            Err((status, error)) => return response::error(status, None, &error),
        };
        if !format.accepts.events {
            let message = "`Accept` must allow `text/event-stream`";
            return response::refuse(StatusCode::NOT_ACCEPTABLE, message);
        }
        if self.is_draining.load(Ordering::Relaxed) {
            return response::refuse(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down");
        }
        let Some(last_event) = parts.headers.get(header::LAST_EVENT_ID) else {
            return self.listen_to_session(&session, principal, None);
        };
        let (stream, event) = match last_event.to_str().ok().and_then(parse_event_id) {
            // A client that has received no event sends an empty id.
            _ if last_event.is_empty() => return self.listen_to_session(&session, principal, None),
            Some((SessionQueue::STREAM, number)) if session.queue.has_had(number) => {
                return self.listen_to_session(&session, principal, Some(number));
            }
            Some(event) => event,
            None => return response::not_resumable(),
        };
        let Some(events) = session.streams.resume(stream, event) else {
            return response::not_resumable();
        };
        match self.stream_permits.try_acquire(principal) {
            Ok(permit) => response::resumed(events, permit, self.options.keep_alive),
            Err(reason) => response::no_stream_permit(reason, None),
        }
    }

    /// Opens the stream of a session's notifications, which replaces the open one.
    fn listen_to_session(
        &self,
        session: &Session,
        principal: &Principal,
        after: Option<u64>,
    ) -> HttpResponse {
        let acquire = || self.stream_permits.try_acquire(principal);
        match session.queue.open(after, acquire) {
            Ok(reader) => response::session_queue(reader, self.options.keep_alive),
            Err(reason) => response::no_stream_permit(reason, None),
        }
    }

    pub(super) fn end_session(&self, admitted: &Admitted) -> HttpResponse {
        let named = KnownHeaders::from_map(&admitted.parts.headers).session;
        match self.session(named, &admitted.principal) {
            Ok(Some(session)) => {
                self.sessions.close(&session);
                response::empty(StatusCode::NO_CONTENT)
            }
            Ok(None) => response::refuse(StatusCode::BAD_REQUEST, "the header `mcp-session-id` is missing"),
            Err((status, error)) => response::error(status, None, &error),
        }
    }
}

/// Splits an event id into the numbers of its stream and its event.
fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}
