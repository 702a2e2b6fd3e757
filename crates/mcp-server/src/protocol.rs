//! Requests that the protocol itself answers, the same on both transports.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use mcp_wire::{Era, Id, Request, Revision, RpcError, code, extension, meta_key, method};
use raw_json::{JsonKind, RawJson};

use crate::{
    Answer, RequestContext, ServerIdentity, Service,
    client::{ConnectionHandle, LegacyClient},
    notifications::SubscriptionFilter,
    request::ParsedParams,
    unknown_method,
};

/// Service with the protocol in front of it.
#[derive(Debug)]
pub(crate) struct Core<S> {
    pub(crate) service: S,
    info: RawJson,
}

/// Response to a request, ready to be sent.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) frame: Vec<u8>,
    /// Code of the error, if it is one.
    pub(crate) error: Option<i64>,
}

/// Maximum size of what a legacy client declares when it opens a connection, in bytes. It is kept as long as the session.
const MAX_CLIENT: usize = 16 * 1024;

impl<S: Service> Core<S> {
    pub(crate) fn new(service: S) -> Self {
        let info = service.info();
        Self {
            service,
            info: implementation(&info),
        }
    }

    /// Creates the handle of a new connection or session of the service.
    pub(crate) fn new_connection(self: &Arc<Self>) -> ConnectionHandle {
        let core = Arc::clone(self);
        ConnectionHandle::new(move |number| core.service.on_disconnect(number))
    }

    /// Opens a legacy connection.
    pub(crate) fn initialize(&self, request: &Request) -> Result<(LegacyClient, RawJson), RpcError> {
        let invalid = |message: &str| RpcError::new(code::INVALID_PARAMS, message);
        let params = request
            .params
            .as_ref()
            .ok_or_else(|| invalid("`params` are missing"))?;
        let asked = params.get("protocolVersion").and_then(|version| version.string());
        let asked = asked.ok_or_else(|| invalid("`protocolVersion` must be a string"))?;
        let revision = Revision::negotiate(&asked);
        let declared = |key| {
            let value = params.get(key).filter(|value| value.kind() == JsonKind::Object);
            // Copied, so that a session does not keep the whole message alive.
            value.map(|value| RawJson::parse(value.as_str().to_owned()).unwrap_or(RawJson::object()))
        };
        let client = LegacyClient::new(revision, declared("clientInfo"), declared("capabilities"));
        let size = |part: &Option<RawJson>| part.as_ref().map_or(0, RawJson::len);
        if size(&client.info) + size(&client.capabilities) > MAX_CLIENT {
            return Err(invalid("`clientInfo` and `capabilities` are larger than 16 KiB"));
        }
        let mut members = vec![
            ("protocolVersion", RawJson::from(revision.as_str())),
            ("capabilities", self.service.capabilities(revision)),
            ("serverInfo", self.info.clone()),
        ];
        members.extend(self.instructions());
        Ok((client, RawJson::from_members(&members)))
    }

    /// Answers a request that the protocol itself handles. Returns `None` for a request to the service.
    pub(crate) fn answer_protocol(
        &self,
        request: &Request,
        revision: Revision,
        client: Option<&LegacyClient>,
    ) -> Option<Result<RawJson, RpcError>> {
        let unknown = || Some(Err(unknown_method(&request.method)));
        match (revision.era(), &*request.method) {
            (_, method::TOOLS_CALL) => None,
            (Era::Legacy, method::PING) => Some(Ok(RawJson::object())),
            (Era::Modern, method::DISCOVER) => Some(Ok(self.discover())),
            (Era::Legacy, method::LOGGING_SET_LEVEL) => {
                if self.service.capabilities(revision).get("logging").is_none() {
                    return unknown();
                }
                Some(set_log_level(request, client))
            }
            (Era::Legacy, method::DISCOVER | method::SUBSCRIPTIONS_LISTEN)
            | (
                Era::Modern,
                method::INITIALIZE
                | method::PING
                | method::LOGGING_SET_LEVEL
                | method::RESOURCES_SUBSCRIBE
                | method::RESOURCES_UNSUBSCRIBE
                | method::SUBSCRIPTIONS_LISTEN,
            ) => unknown(),
            _ => None,
        }
    }

    /// Reads the filter of a modern client's subscription, without the parts that the client may not subscribe to.
    pub(crate) async fn subscription_filter(
        &self,
        request: &Request,
        cx: &RequestContext,
    ) -> Result<SubscriptionFilter, RpcError> {
        let capabilities = self.service.capabilities(cx.revision());
        if !SubscriptionFilter::is_supported_by(&capabilities) {
            return Err(unknown_method(&request.method));
        }
        let filter = SubscriptionFilter::from_request(request, &capabilities)?;
        let tasks = filter.tasks.to_vec();
        if !tasks.is_empty() {
            cx.check_extension(extension::TASKS)?;
            filter.tasks.retain(&self.service.filter_tasks(tasks, cx).await);
        }
        let resources = self.service.filter_resources(filter.resources.to_vec(), cx).await;
        filter.resources.retain(&resources);
        Ok(filter)
    }

    fn instructions(&self) -> Option<(&'static str, RawJson)> {
        let text = self.service.instructions()?;
        Some(("instructions", RawJson::from(text.as_str())))
    }

    fn discover(&self) -> RawJson {
        let mut members = vec![
            ("resultType", RawJson::from("complete")),
            ("supportedVersions", supported_versions()),
            ("capabilities", self.service.capabilities(Revision::LATEST)),
        ];
        members.extend(self.instructions());
        members.extend([
            // The offer may differ from client to client, and a restart may change it.
            ("ttlMs", RawJson::from(0_u64)),
            ("cacheScope", RawJson::from("private")),
            (
                "_meta",
                RawJson::from_members(&[(meta_key::SERVER_INFO, self.info.clone())]),
            ),
        ]);
        RawJson::from_members(&members)
    }

    /// Has the service answer a request, and closes the channel to the client before the response. A panic of the service
    /// fails this request only.
    pub(crate) fn answer(
        self: Arc<Self>,
        request: Request,
        cx: RequestContext,
    ) -> impl Future<Output = Reply> + Send {
        let (id, era) = (request.id.clone(), cx.era());
        let change = SubscriptionChange::from_request(&request, &cx).map(Box::new);
        // Not an `async fn`, whose future would hold the arguments twice.
        async move {
            let call = AssertUnwindSafe(self.service.call(request, &cx)).catch_unwind();
            let outcome = call.await.unwrap_or_else(|_| {
                tracing::error!("the service panicked");
                Err(RpcError::new(code::INTERNAL_ERROR, "internal error"))
            });
            let outcome = match change {
                Some(change) => outcome.and_then(|answer| change.apply().map(|()| answer)),
                None => outcome,
            };
            // Dropping the context closes the channel to the client, before the response is sent.
            drop(cx);
            reply(&id, outcome, era)
        }
    }
}

/// Legacy client's `resources/subscribe` or `resources/unsubscribe`, which takes effect once the service has agreed.
struct SubscriptionChange {
    client: Arc<LegacyClient>,
    uri: String,
    is_subscribe: bool,
}

impl SubscriptionChange {
    fn from_request(request: &Request, cx: &RequestContext) -> Option<Self> {
        let is_subscribe = match &*request.method {
            method::RESOURCES_SUBSCRIBE => true,
            method::RESOURCES_UNSUBSCRIBE => false,
            _ => return None,
        };
        Some(Self {
            client: cx.client.clone()?,
            uri: cx.uri()?.into_owned(),
            is_subscribe,
        })
    }

    fn apply(self) -> Result<(), RpcError> {
        if self.is_subscribe {
            return self.client.filter.resources.insert(self.uri);
        }
        self.client.filter.resources.remove(&self.uri);
        Ok(())
    }
}

fn set_log_level(request: &Request, client: Option<&LegacyClient>) -> Result<RawJson, RpcError> {
    let level = request
        .params
        .as_ref()
        .and_then(|params| params.get("level")?.string());
    let level = level.and_then(|level| level.parse().ok());
    let level = level
        .ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "`level` must be a level of log messages"))?;
    // Without a session the level cannot be kept.
    if let Some(client) = client {
        client.set_log_level(level);
    }
    Ok(RawJson::object())
}

/// Checks the revision and the capabilities that a modern message declares.
pub(crate) fn modern_revision(declared: &RawJson, params: &ParsedParams) -> Result<Revision, RpcError> {
    let Some(version) = declared.text() else {
        return Err(missing_meta(meta_key::PROTOCOL_VERSION));
    };
    let revision = version.parse::<Revision>().ok();
    let Some(revision) = revision.filter(|revision| revision.era() == Era::Modern) else {
        return Err(unsupported_version(&version));
    };
    let capabilities = params.capabilities.as_ref().map(RawJson::kind);
    if capabilities != Some(JsonKind::Object) {
        return Err(missing_meta(meta_key::CLIENT_CAPABILITIES));
    }
    Ok(revision)
}

pub(crate) fn missing_meta(key: &str) -> RpcError {
    RpcError::new(
        code::INVALID_PARAMS,
        format!("`params._meta` must hold `{key}` in this revision"),
    )
}

pub(crate) fn unsupported_version(requested: &str) -> RpcError {
    let requested: String = requested.chars().take(64).collect();
    let data = [
        ("supported", supported_versions()),
        ("requested", RawJson::from(&*requested)),
    ];
    RpcError::new(
        code::UNSUPPORTED_PROTOCOL_VERSION,
        format!("unsupported protocol version `{requested}`"),
    )
    .with_data(RawJson::from_members(&data))
}

pub(crate) fn duplicate_id(id: &Id) -> RpcError {
    let message = format!("a request with the id {id} is in flight already");
    RpcError::new(code::INVALID_REQUEST, message)
}

/// Writes the response to a request.
pub(crate) fn reply(id: &Id, outcome: Result<Answer, RpcError>, era: Era) -> Reply {
    match outcome {
        Ok(answer) => Reply {
            frame: answer_frame(id, &answer, era),
            error: None,
        },
        Err(error) => Reply {
            frame: mcp_wire::error(Some(id.as_raw()), &error),
            error: Some(error.code),
        },
    }
}

fn answer_frame(id: &Id, answer: &Answer, era: Era) -> Vec<u8> {
    let result = &answer.result;
    let is_typed = era == Era::Legacy
        || answer
            .has_type
            .unwrap_or_else(|| result.get("resultType").is_some());
    let inner = result.as_bytes().strip_prefix(b"{").filter(|_| !is_typed);
    let Some(inner) = inner else {
        return mcp_wire::result(id, result);
    };
    let is_empty = inner.trim_ascii_start() == b"}";
    let mut out = Vec::with_capacity(72 + id.as_raw().len() + result.len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_raw().as_bytes());
    out.extend_from_slice(b",\"result\":{\"resultType\":\"complete\"");
    out.extend_from_slice(if is_empty { b"" } else { b"," });
    out.extend_from_slice(inner);
    out.push(b'}');
    out
}

fn supported_versions() -> RawJson {
    let newest_first: Vec<&str> = Revision::ALL
        .iter()
        .rev()
        .map(|revision| revision.as_str())
        .collect();
    RawJson::from_serialize(&newest_first).expect("strings can be written")
}

fn implementation(info: &ServerIdentity) -> RawJson {
    let mut members = vec![("name", RawJson::from(&*info.name))];
    members.extend(info.title.as_deref().map(|title| ("title", RawJson::from(title))));
    members.push(("version", RawJson::from(&*info.version)));
    RawJson::from_members(&members)
}
