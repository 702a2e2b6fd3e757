use std::time::Duration;

use mcp_wire::{Era, Params, header, method};
use raw_json::RawJson;
use tokio::time::timeout;

use super::{
    answer::read_answer,
    client::{HttpResponse, is_permanent_refusal},
    session::Session,
    shared::HttpShared,
};
use crate::{ClientError, ClientErrorKind, RequestOptions, ServerInfo, exchange::Exchange};

/// Outgoing request, which may be sent twice.
pub(super) struct OutgoingRequest<'a> {
    pub(super) id: u64,
    pub(super) method: &'a str,
    pub(super) params: &'a Params,
    pub(super) exchange: &'a Exchange,
}

impl HttpShared {
    /// Sends a request. If the server no longer knows the session, reopens it once and repeats the request.
    pub(super) async fn call(&self, outgoing: &OutgoingRequest<'_>) -> Result<RawJson, ClientError> {
        let session = self.session();
        let (has_session, generation) = (session.id.is_some(), session.generation);
        match self.post(outgoing, session).await {
            Err(error) if has_session && outgoing.method != method::INITIALIZE && is_expired(&error) => {
                // The server rejected the session before it examined the request: the request has not run.
                outgoing.exchange.mark_unsent();
                // Boxed: rare, and the future of every call would have to reserve room for it.
                let reopening = Box::pin(self.reopen(generation));
                reopening.await.map_err(|error| error.with_sent(false))?;
                Box::pin(self.post(outgoing, self.session())).await
            }
            done => done,
        }
    }

    async fn post(&self, outgoing: &OutgoingRequest<'_>, session: Session) -> Result<RawJson, ClientError> {
        let exchange = outgoing.exchange;
        let is_modern = session.era() == Era::Modern;
        let answer = self.send(outgoing, session).await?;
        if outgoing.method == method::INITIALIZE {
            self.record_session(&answer);
        }
        let resumable = !is_modern && outgoing.method != method::DISCOVER;
        read_answer(answer, outgoing.id, exchange, self, resumable)
            .await
            .map_err(|error| error.with_sent(exchange.was_sent()))
    }

    /// Sends a request and waits for the head of its answer.
    async fn send(
        &self,
        outgoing: &OutgoingRequest<'_>,
        session: Session,
    ) -> Result<HttpResponse, ClientError> {
        let mut headers = session.headers(outgoing.method, outgoing.params);
        if session.era() == Era::Modern && outgoing.method == method::TOOLS_CALL {
            self.mirrored.add(&mut headers, outgoing.params);
        }
        outgoing.exchange.mark_sent();
        // Serialized for each attempt, so that no large body is kept while waiting for the response.
        let body = mcp_wire::request(outgoing.id, outgoing.method, outgoing.params).into();
        self.client.post(headers, body).await.map_err(|failure| {
            if failure.unsent {
                outgoing.exchange.mark_unsent();
            }
            failure.error
        })
    }

    fn record_session(&self, answer: &HttpResponse) {
        if (200..300).contains(&answer.status()) {
            let mut session = self.session.write();
            session.id = answer.header_value(header::SESSION_ID);
            session.generation += 1;
        }
    }

    /// Reopens the session, unless another caller has done so meanwhile. The new session is used only after the server
    /// was notified that it is open: if the caller leaves on the way or the server refuses, the next caller tries with
    /// the old one.
    async fn reopen(&self, generation: u64) -> Result<(), ClientError> {
        let _turn = self.reopening.lock().await;
        if self.session().generation != generation {
            return Ok(());
        }
        tracing::debug!("the session has expired, opening another");
        let params = self.initialize.get().cloned().into();
        let id = self.next_id();
        let exchange = Exchange::new(RequestOptions::default());
        let outgoing = OutgoingRequest {
            id,
            method: method::INITIALIZE,
            params: &params,
            exchange: &exchange,
        };
        // The handshake is sent without the old session.
        let fresh = Session {
            id: None,
            revision: None,
            generation,
        };
        let answer = self.send(&outgoing, fresh).await?;
        let session_id = answer.header_value(header::SESSION_ID);
        let result = read_answer(answer, id, &exchange, self, false).await?;
        let opened = Session {
            id: session_id,
            revision: Some(ServerInfo::from_initialize(&result)?.revision),
            generation: generation + 1,
        };
        let initialized = mcp_wire::notification(method::INITIALIZED, None).into();
        self.notify_in(&opened, initialized, method::INITIALIZED).await?;
        *self.session.write() = opened;
        self.router.notifier.record_reopening();
        Ok(())
    }

    /// Checks whether the server still knows the session, and reopens it otherwise. Returns `true` if the session may
    /// differ from `generation` by now, or if the check was inconclusive.
    pub(super) async fn probe_session(&self, generation: u64) -> bool {
        const LIMIT: Duration = Duration::from_secs(10);
        let session = self.session();
        if session.generation != generation {
            return true;
        }
        if session.id.is_none() {
            return false;
        }
        let (id, params) = (self.next_id(), Params::default());
        let exchange = Exchange::new(RequestOptions::default());
        let outgoing = OutgoingRequest {
            id,
            method: method::PING,
            params: &params,
            exchange: &exchange,
        };
        let asked = timeout(LIMIT, self.call(&outgoing)).await;
        let is_conclusive = asked.is_ok_and(|answer| match answer {
            Ok(_) => true,
            // A permanent refusal is conclusive, too.
            Err(error) => match error.kind() {
                ClientErrorKind::Rpc(_) | ClientErrorKind::Auth { .. } => true,
                ClientErrorKind::HttpStatus { status, .. } => is_permanent_refusal(*status),
                _ => false,
            },
        });
        !is_conclusive || self.session().generation != generation
    }
}

/// `true` if a refusal means that the session is unknown: 404 by the specification, 400 with a text about sessions in
/// practice. An error with the id of the request is its response: whoever wrote it has examined the request, which may
/// have run.
fn is_expired(error: &ClientError) -> bool {
    let Some((status, body)) = error.http_status() else {
        return false;
    };
    let mentions_session = || body.to_ascii_lowercase().contains("session");
    match status {
        // Some servers also reject the session with the id of the request, and name it in the text.
        404 => !error.is_answer() || mentions_session(),
        400 => !error.is_answer() && mentions_session(),
        _ => false,
    }
}
