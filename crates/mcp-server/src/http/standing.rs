//! What a request is written in, and whose it is.

use std::sync::Arc;

use http::StatusCode;
use mcp_wire::{Era, Revision, RpcError, code, header, meta_key, method};
use raw_json::RawJson;

use super::{
    endpoint::{Endpoint, Inbound},
    headers::{self, Found, Known},
    session::Session,
};
use crate::{Mirrored, Peer, Principal, Service, outline::Outline, protocol};

/// What a request is written in, and the session that it belongs to.
pub(super) struct Standing {
    pub(super) revision: Revision,
    pub(super) session: Option<Arc<Session>>,
    /// Whether the service has to get to know the tool before the headers can be checked against its arguments.
    pub(super) is_unlearned: bool,
}

/// A request that cannot be served, and the status that says so.
pub(super) type Fault = (StatusCode, RpcError);

impl<S: Service> Endpoint<S> {
    /// The session that a request names, if it names one.
    pub(super) fn session(
        &self,
        named: Found<'_>,
        principal: &Principal,
    ) -> Result<Option<Arc<Session>>, Fault> {
        let unknown = || {
            let error = RpcError::new(code::INVALID_REQUEST, "unknown session; initialize a new one");
            (StatusCode::NOT_FOUND, error)
        };
        match named.first {
            Some(_) if named.is_repeated => {
                let message = "the header `mcp-session-id` stands there twice";
                let error = RpcError::new(code::INVALID_REQUEST, message);
                Err((StatusCode::BAD_REQUEST, error))
            }
            Some(id) => {
                let id = id.to_str().map_err(|_| unknown())?;
                self.sessions.get(id, principal).map(Some).ok_or_else(unknown)
            }
            None => Ok(None),
        }
    }

    /// What a request of the legacy era is written in: what its session agreed on, or what its header says.
    pub(super) fn legacy(&self, inbound: &Inbound) -> Result<Standing, Fault> {
        let bad = |error| (StatusCode::BAD_REQUEST, error);
        let known = Known::of(&inbound.parts.headers);
        let version = known.version.single(header::PROTOCOL_VERSION).map_err(bad)?;
        let revision = match version.map(|version| (version, version.parse::<Revision>())) {
            None => Revision::WITHOUT_HEADER,
            Some((_, Ok(revision))) if revision.era() == Era::Legacy => revision,
            Some((_, Ok(_))) => {
                return Err(bad(protocol::missing_meta(meta_key::PROTOCOL_VERSION)));
            }
            Some((version, Err(_))) => return Err(bad(protocol::unsupported_version(version))),
        };
        let session = self.session(known.session, &inbound.principal)?;
        if session.is_none() && self.options.requires_session {
            let message = "the header `mcp-session-id` is missing; initialize a session";
            return Err(bad(RpcError::new(code::INVALID_REQUEST, message)));
        }
        let revision = session
            .as_ref()
            .map_or(revision, |session| session.client.revision);
        Ok(Standing {
            revision,
            session,
            is_unlearned: false,
        })
    }

    /// What a request of the modern era is written in, once its headers agree with its body.
    pub(super) fn modern(
        &self,
        inbound: &Inbound,
        declared: &RawJson,
        outline: &Outline,
        method: &str,
    ) -> Result<Standing, Fault> {
        let bad = |error| (StatusCode::BAD_REQUEST, error);
        let Some(version) = declared.text() else {
            return Err(bad(protocol::missing_meta(meta_key::PROTOCOL_VERSION)));
        };
        let known = Known::of(&inbound.parts.headers);
        let name = headers::check_mirrored(&known, &version, method, outline).map_err(bad)?;
        let revision = protocol::modern_revision(declared, outline).map_err(bad)?;
        let mut standing = stateless(revision);
        if let (method::TOOLS_CALL, Some(tool)) = (method, name) {
            standing.is_unlearned = !self.check_params(inbound, &tool, outline)?;
        }
        Ok(standing)
    }

    /// Checks that the headers of a call say what its arguments say, and tells whether that could be done: not when the
    /// service does not know the tool.
    pub(super) fn check_params(
        &self,
        inbound: &Inbound,
        tool: &str,
        outline: &Outline,
    ) -> Result<bool, Fault> {
        let peer = stateless_peer(&inbound.principal, outline);
        match self.core.service.mirrored(tool, &peer) {
            Mirrored::Nothing => Ok(true),
            Mirrored::Params(params) => {
                headers::check_params(&params, &inbound.parts.headers, outline.arguments.as_ref())
                    .map_err(|error| (StatusCode::BAD_REQUEST, error))?;
                Ok(true)
            }
            Mirrored::Unknown => Ok(false),
        }
    }
}

/// The client of a request of the modern era.
pub(super) fn stateless_peer(principal: &Principal, outline: &Outline) -> Peer {
    Peer {
        connection: None,
        principal: principal.clone(),
        capabilities: outline.capabilities.clone(),
    }
}

pub(super) fn stateless(revision: Revision) -> Standing {
    Standing {
        revision,
        session: None,
        is_unlearned: false,
    }
}
