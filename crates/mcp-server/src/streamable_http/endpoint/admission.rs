//! Admission of a request: checks of its head, and the revision and session under which it is served.

use std::sync::Arc;

use http::{StatusCode, request::Parts};
use mcp_wire::{Era, Revision, RpcError, code, header, meta_key, method};
use raw_json::RawJson;

use super::{Endpoint, HttpResponse};
use crate::{
    HeaderParams, Peer, Principal, ProgressReporter, RequestContext, Service, protocol,
    request::ParsedParams,
    streamable_http::{
        head::{self, FoundHeader, KnownHeaders, RequestFormat},
        response,
        session::Session,
    },
};

/// Request whose head has passed all checks.
#[derive(Clone)]
pub(in crate::streamable_http) struct Admitted {
    pub(in crate::streamable_http) parts: Arc<Parts>,
    pub(in crate::streamable_http) principal: Principal,
    pub(in crate::streamable_http) format: RequestFormat,
}

/// Revision and session under which a message is served.
pub(super) struct Admission {
    pub(super) revision: Revision,
    pub(super) session: Option<Arc<Session>>,
}

/// Reason why a message cannot be served: a status, and the error that explains it.
pub(super) type Refusal = (StatusCode, RpcError);

impl Admitted {
    /// Returns the context of a message.
    pub(super) fn into_context(self, admission: &Admission, params: ParsedParams) -> RequestContext {
        let session = admission.session.as_ref();
        RequestContext {
            revision: admission.revision,
            params,
            client: session.map(|session| Arc::clone(&session.client)),
            session: session.map(|session| Arc::clone(&session.id)),
            connection: session.map(|session| session.handle.number()),
            connection_name: session.map(|session| session.handle.name()),
            principal: self.principal,
            progress: ProgressReporter::default(),
            is_traced: self.format.is_traced,
            http: Some(self.parts),
            is_copy: false,
        }
    }

    /// Returns the client of a modern request.
    pub(super) fn peer(&self, params: &ParsedParams) -> Peer {
        Peer {
            connection: None,
            principal: self.principal.clone(),
            capabilities: params.capabilities.clone(),
        }
    }
}

impl Admission {
    /// Returns the admission of a modern message, which has no session.
    pub(super) fn without_session(revision: Revision) -> Self {
        Self {
            revision,
            session: None,
        }
    }
}

impl<S: Service> Endpoint<S> {
    /// Makes all checks that need only the head, and identifies the principal.
    pub(super) async fn admit(&self, parts: Arc<Parts>) -> Result<Admitted, Box<HttpResponse>> {
        let format = self.check_format(&parts)?;
        let principal = self.identify(&parts).await?;
        Ok(Admitted {
            parts,
            principal,
            format,
        })
    }

    /// Checks the host, the origin and the path of a request, and returns its format.
    fn check_format(&self, parts: &Parts) -> Result<RequestFormat, Box<HttpResponse>> {
        let known = KnownHeaders::from_map(&parts.headers);
        self.check_names(parts, &known)?;
        self.check_path(parts)?;
        Ok(RequestFormat::from_headers(&known, &parts.headers))
    }

    /// Makes the same checks as for MCP, except that of the path, for a request to another route.
    pub(in crate::streamable_http) async fn admit_elsewhere(
        &self,
        parts: &Parts,
    ) -> Result<Principal, Box<HttpResponse>> {
        self.check_names(parts, &KnownHeaders::from_map(&parts.headers))?;
        self.identify(parts).await
    }

    /// Checks the host, the origin and the path of a request.
    pub(super) fn check_head(&self, parts: &Parts) -> Result<(), Box<HttpResponse>> {
        self.check_names(parts, &KnownHeaders::from_map(&parts.headers))?;
        self.check_path(parts)
    }

    fn check_path(&self, parts: &Parts) -> Result<(), Box<HttpResponse>> {
        let path = self.options.path.as_deref();
        if path.is_some_and(|path| path != parts.uri.path()) && !self.is_sse_path(parts) {
            let message = "nothing is served at this path";
            return Err(Box::new(response::refuse(StatusCode::NOT_FOUND, message)));
        }
        Ok(())
    }

    fn check_names(&self, parts: &Parts, known: &KnownHeaders<'_>) -> Result<(), Box<HttpResponse>> {
        let refuse = |message: &str| Err(Box::new(response::refuse(StatusCode::FORBIDDEN, message)));
        let allowed = self.options.allowed.load();
        let own_host = self.options.own_host.as_deref();
        if !head::is_host_allowed(known, &parts.uri, &allowed.hosts, own_host) {
            let setting = self.options.host_setting;
            return refuse(&format!(
                "this host name is not served here; admit it with `{setting}`"
            ));
        }
        if !head::is_origin_allowed(known, &parts.uri, &allowed, own_host) {
            let setting = self.options.origin_setting;
            return refuse(&format!(
                "this origin is not allowed: it is neither the server's own nor listed; admit it with `{setting}`"
            ));
        }
        Ok(())
    }

    async fn identify(&self, parts: &Parts) -> Result<Principal, Box<HttpResponse>> {
        let identified = match (&self.options.authenticate, &self.options.identify) {
            (Some(authenticate), _) => authenticate.authenticate(parts).await,
            (None, Some(identify)) => identify(parts),
            (None, None) => Ok(self.anonymous.clone()),
        };
        identified.map_err(|refusal| Box::new(response::refusal(refusal)))
    }

    /// Returns the session that a request names, if it names one.
    pub(super) fn session(
        &self,
        named: FoundHeader<'_>,
        principal: &Principal,
    ) -> Result<Option<Arc<Session>>, Refusal> {
        let unknown = || {
            let error = RpcError::new(code::INVALID_REQUEST, "unknown session; initialize a new one");
            (StatusCode::NOT_FOUND, error)
        };
        match named.first {
            Some(_) if named.is_repeated => {
                let message = "the header `mcp-session-id` is repeated";
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

    /// Admits a legacy message: under the revision that its session negotiated, or that its header names.
    pub(super) fn admit_legacy(&self, admitted: &Admitted) -> Result<Admission, Refusal> {
        let known = KnownHeaders::from_map(&admitted.parts.headers);
        let version = known
            .version
            .single(header::PROTOCOL_VERSION)
            .map_err(bad_request)?;
        let revision = match version.map(|version| (version, version.parse::<Revision>())) {
            None => Revision::WITHOUT_HEADER,
            Some((_, Ok(revision))) if revision.era() == Era::Legacy => revision,
            Some((_, Ok(_))) => {
                return Err(bad_request(protocol::missing_meta(meta_key::PROTOCOL_VERSION)));
            }
            Some((version, Err(_))) => return Err(bad_request(protocol::unsupported_version(version))),
        };
        let session = self.session(known.session, &admitted.principal)?;
        if session.is_none() && self.options.requires_session {
            let message = "the header `mcp-session-id` is missing; initialize a session";
            return Err(bad_request(RpcError::new(code::INVALID_REQUEST, message)));
        }
        let revision = session
            .as_ref()
            .map_or(revision, |session| session.client.revision);
        Ok(Admission { revision, session })
    }

    /// Admits a modern request: checks that its headers agree with its body. The mirrored arguments of a tool that has to be
    /// looked up are returned as they are.
    pub(super) fn admit_modern(
        &self,
        admitted: &Admitted,
        declared: &RawJson,
        params: &ParsedParams,
        method: &str,
    ) -> Result<(Admission, HeaderParams<'_>), Refusal> {
        let Some(version) = declared.text() else {
            return Err(bad_request(protocol::missing_meta(meta_key::PROTOCOL_VERSION)));
        };
        let known = KnownHeaders::from_map(&admitted.parts.headers);
        let name = head::check_mirrored(&known, &version, method, params).map_err(bad_request)?;
        let revision = protocol::modern_revision(declared, params).map_err(bad_request)?;
        let mut pending = HeaderParams::None;
        if let (method::TOOLS_CALL, Some(tool)) = (method, name) {
            match self.core.service.header_params(&tool, &admitted.peer(params)) {
                lookup @ HeaderParams::Pending(_) => pending = lookup,
                ready => check_header_params(&ready, admitted, params)?,
            }
        }
        Ok((Admission::without_session(revision), pending))
    }
}

/// Checks that the headers of a call repeat its arguments. Headers of an unknown tool cannot be checked, and are refused.
pub(super) fn check_header_params(
    header_params: &HeaderParams<'_>,
    admitted: &Admitted,
    params: &ParsedParams,
) -> Result<(), Refusal> {
    let headers = &admitted.parts.headers;
    match header_params {
        HeaderParams::None => Ok(()),
        HeaderParams::Known(mirrored) => {
            head::check_params(mirrored, headers, params.arguments.as_ref()).map_err(bad_request)
        }
        HeaderParams::UnknownTool | HeaderParams::Pending(_) => {
            let tool = params.name.as_ref().and_then(RawJson::text).unwrap_or_default();
            head::refuse_params(headers, &tool).map_err(bad_request)
        }
    }
}

fn bad_request(error: RpcError) -> Refusal {
    (StatusCode::BAD_REQUEST, error)
}
