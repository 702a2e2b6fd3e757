use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Weak},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header::LOCATION};
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use reqwest::{Client, Response};
use tokio::{
    sync::Mutex as AsyncMutex,
    task::spawn_blocking,
    time::{Instant, error::Elapsed, timeout},
};
use tool_core::{
    Backend, CallContext, Dispatch, ErrorKind, Invoke, Outcome, Preview, Progress, Reference, Refresh, Reply,
    Secret, Secrets, ToolError, format_duration, hide_fields, is_status_not_taken, sanitize_arguments,
};
use tracing::debug;
use url::Url;

use crate::{
    client::{Clients, MarkingBody, UpstreamTraffic},
    compile::{Plan, Redirects, ResultSelection, is_allowed_url},
    mapping::MappingError,
    operation::{FirstAnswer, Operation, Operations, with_callback_url},
    redaction::{MaskCache, SecretMasks},
    request::Request,
    response::{
        BodyChunks, BodyLimits, Failure, MediaType, PathError, StreamReader, broken, decode_body,
        error_response, is_gateway_error, not_connected, refuses_credentials, silent, with_unknown_outcome,
        within,
    },
    template::{Scope, check_parsed},
};

/// HTTP tool, ready to be called.
pub(crate) struct HttpBackend {
    pub plan: Arc<Plan>,
    pub clients: Arc<Clients>,
    /// Counters of the requests to its upstream.
    pub traffic: Arc<UpstreamTraffic>,
    pub secrets: Arc<dyn Secrets>,
    /// Digest of the credentials that the upstream refused last.
    pub refused: Mutex<Option<u64>>,
    /// Held during a refresh, so that concurrent calls share one refresh.
    pub refreshing: AsyncMutex<()>,
    pub masks: MaskCache,
    pub operations: Operations,
    /// This backend, for the tasks that its operations become.
    pub this: Weak<Self>,
}

/// End of the exchange of a call.
enum Exchanged {
    Reply(Reply),
    /// The API goes on to work.
    Operation(Box<Operation>),
}

/// Maximum number of redirects that a call follows.
const MAX_REDIRECTS: usize = 3;
/// Maximum size of a response that is searched on the thread of the call, in bytes. Larger ones are searched on a blocking
/// thread, so that a deadline can still end the call.
pub(crate) const MAX_INLINE_SEARCH: usize = 256 << 10;

impl Invoke for HttpBackend {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let start = Instant::now();
        if let Some(operation) = self.parked_operation(cx) {
            return Box::pin(self.go_on(cx, operation, start)).await;
        }
        let own = self.plan.timeout;
        let limit = cx.remaining().map_or(own, |remaining| remaining.min(own));
        if limit.is_zero() {
            return Err(ToolError::new(
                ErrorKind::Timeout,
                "no time was left to send the request",
            ));
        }
        let done = timeout(limit, self.exchange(cx)).await;
        let failure = match done {
            Ok(Ok(Exchanged::Reply(reply))) => return Ok(reply.into()),
            // Boxed, so that the future of any other call has no room for it.
            Ok(Ok(Exchanged::Operation(operation))) => {
                return Box::pin(self.go_on(cx, *operation, start)).await;
            }
            Ok(Err(failure)) => failure,
            Err(Elapsed { .. }) => Failure::Unanswered(
                ErrorKind::Timeout,
                format!("the upstream did not answer within {}", format_duration(limit)),
                None,
            ),
        };
        let error = failure.into_error(cx);
        debug!(tool = %self.plan.tool, kind = %error.kind(), "http call failed");
        Err(error)
    }
}

impl Backend for HttpBackend {
    async fn refresh_credentials(&self, refresh: Refresh) -> bool {
        let _guard = self.refreshing.lock().await;
        let refused = *self.refused();
        if self.is_changed(refused).await {
            return true;
        }
        if refresh == Refresh::Peek || self.plan.references.is_empty() {
            return false;
        }
        for reference in &self.plan.references {
            if let Err(error) = self.secrets.renew(reference).await {
                debug!(tool = %self.plan.tool, %error, "a credential cannot be renewed");
            }
        }
        self.is_changed(refused).await
    }

    fn protocol(&self) -> Option<&'static str> {
        Some("http")
    }

    /// Returns the address of the shared clients. Returns `None` for tools with references, whose values may depend on the
    /// configuration.
    fn backend_id(&self) -> Option<usize> {
        let is_fixed = self.plan.references.is_empty();
        is_fixed.then(|| Arc::as_ptr(&self.clients).addr())
    }

    async fn preview(&self, cx: &CallContext) -> Result<Option<Preview>, ToolError> {
        self.build_preview(cx).await.map(Some)
    }
}

impl HttpBackend {
    async fn exchange(&self, cx: &CallContext) -> Result<Exchanged, Failure> {
        let plan = &*self.plan;
        let values = self.values().await?;
        let masks = self.masks.for_values(&values, &plan.secrets);
        let hidden = plan.hidden_fields(cx.tool().settings().redacted_fields());
        let calls_back = plan.operation.as_ref().filter(|plan| plan.takes_callback);
        let callback = calls_back
            .map(|plan| self.operations.issue(plan.lifetime))
            .transpose()?;
        let request = self.request(cx, &values, callback.as_ref().map(|callback| &callback.url))?;
        let method = request.method.clone();
        let running = self.traffic.begin();
        let (response, was_taken) = self.follow(request, cx, cx.dispatch()).await?;
        let status = response.status();
        debug!(
            tool = %plan.tool,
            %method,
            status = status.as_u16(),
            arguments = %masks.message(&sanitize_arguments(&hide_fields(cx.arguments.raw(), &hidden))),
            "http call answered"
        );
        if !plan.expected.contains(status) {
            if refuses_credentials(status) {
                *self.refused() = Some(self.digest(&values));
            }
            let is_own = !was_taken && !is_gateway_error(status);
            if is_own && is_status_not_taken(status.as_u16()) {
                cx.dispatch().not_taken();
            } else if is_own {
                cx.dispatch().answered();
            }
            let error = error_response(response, &hidden, &masks, cx.clock.wall()).await;
            let error = if is_own {
                error
            } else {
                with_unknown_outcome(error, cx)
            };
            return Err(error.into());
        }
        let first = plan.operation.as_ref();
        let first = first.map(|plan| (plan, response.url().clone(), response.headers().clone()));
        let whole = self
            .whole(
                response,
                cx.origin.progress.as_deref(),
                cx.dispatch(),
                (&masks, &hidden),
            )
            .await?;
        drop(running);
        if let (Some((operation, url, headers)), Ok(whole)) = (first, &whole) {
            let first = FirstAnswer {
                status,
                url,
                headers,
                whole,
                values: &values,
            };
            if let Some(operation) = Box::pin(self.begin_operation(cx, operation, first, callback)).await? {
                return Ok(Exchanged::Operation(Box::new(operation)));
            }
        }
        // A cancellation from here on drops a complete answer unread.
        let result = async { self.result(whole?, &masks, &hidden).await }.await;
        cx.dispatch().answered();
        let result = result?;
        let mut reply = Reply::value(result);
        if status == StatusCode::PARTIAL_CONTENT {
            reply.mark_partial();
        }
        Ok(Exchanged::Reply(reply))
    }

    /// Returns the result in an answer, without what is hidden.
    pub(crate) async fn result(
        &self,
        whole: RawJson,
        masks: &SecretMasks,
        hidden: &[String],
    ) -> Result<RawJson, ToolError> {
        // Hides secrets that the upstream echoes.
        let whole = masks.result(&whole).unwrap_or(whole);
        // Hide fields before the selection, since a selection may drop a field's name.
        self.select(hide_fields(&whole, hidden)).await
    }

    /// Builds the request of a call with these values of references.
    pub(crate) fn request(
        &self,
        cx: &CallContext,
        values: &HashMap<Reference, Secret>,
        callback_url: Option<&Url>,
    ) -> Result<Request, ToolError> {
        let plan = &*self.plan;
        let arguments = with_callback_url(&cx.arguments, callback_url);
        let mut request = plan.request(&Scope {
            arguments: &arguments,
            values,
        })?;
        if let Some(trace) = &cx.trace {
            request.set_trace(trace);
        }
        if let (Some(header), Some(key)) = (&plan.key_header, cx.upstream_idempotency_key())
            && let Ok(key) = HeaderValue::from_str(&key)
        {
            request.headers.insert(header.clone(), key);
        }
        Ok(request)
    }

    pub(crate) fn refused(&self) -> MutexGuard<'_, Option<u64>> {
        self.refused.lock()
    }

    /// Returns `true` if the current values differ from those of this digest.
    async fn is_changed(&self, refused: Option<u64>) -> bool {
        let values = self.values().await;
        refused.is_some_and(|refused| values.is_ok_and(|values| self.digest(&values) != refused))
    }

    /// Returns a digest of the values, comparable within this process.
    pub(crate) fn digest(&self, values: &HashMap<Reference, Secret>) -> u64 {
        let mut hasher = DefaultHasher::new();
        for reference in &self.plan.references {
            values.get(reference).map(Secret::expose).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Resolves every reference to its current value.
    pub(crate) async fn values(&self) -> Result<HashMap<Reference, Secret>, ToolError> {
        let mut values = HashMap::new();
        for reference in &self.plan.references {
            let value = reference.resolve(&*self.secrets).await.map_err(|error| {
                ToolError::new(ErrorKind::Auth, format!("a configured value is missing: {error}"))
                    .with_no_retry()
            })?;
            values.insert(reference.clone(), value);
        }
        Ok(values)
    }

    /// Sends a request and follows the allowed redirects.
    ///
    /// Also returns `true` if a redirect turned the request into a `GET`: the upstream then processed the original request,
    /// and the response is about another resource (RFC 9110, section 15.4.4).
    pub(crate) async fn follow(
        &self,
        mut request: Request,
        cx: &CallContext,
        dispatch: &Arc<Dispatch>,
    ) -> Result<(Response, bool), Failure> {
        let (mut n_followed, mut was_taken) = (0, false);
        loop {
            let response = match self.send(&request, dispatch).await {
                Err(Failure::Known(error)) if was_taken => return Err(with_unknown_outcome(error, cx).into()),
                sent => sent?,
            };
            let status = response.status();
            let redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
            if !redirect || self.plan.expected.contains(status) {
                return Ok((response, was_taken));
            }
            let Some(next) = redirect_target(&request.url, response.headers()) else {
                return Ok((response, was_taken));
            };
            // Only a redirect that is not followed is an answer: the target of a followed one may process the request and
            // never respond.
            if self.plan.redirects == Redirects::None || next.origin() != request.url.origin() {
                dispatch.answered();
                return Err(redirected(status, "to another place, which is not followed"));
            }
            if n_followed == MAX_REDIRECTS {
                dispatch.answered();
                return Err(redirected(status, "too often"));
            }
            n_followed += 1;
            was_taken |= request.follow_to(next, status);
        }
    }

    async fn client(&self) -> Result<Client, ToolError> {
        let key = self.plan.client;
        if let Some(client) = self.clients.existing(key) {
            return Ok(client);
        }
        let clients = self.clients.clone();
        let failed = || ToolError::new(ErrorKind::Internal, "the HTTP client could not be created");
        match spawn_blocking(move || clients.get_or_create(key)).await {
            Ok(made) => made.map_err(|error| failed().with_source(error.without_url())),
            Err(error) => Err(failed().with_source(error)),
        }
    }

    /// Sends one request and waits for the head of its response.
    async fn send(&self, request: &Request, dispatch: &Arc<Dispatch>) -> Result<Response, Failure> {
        let plan = &*self.plan;
        if !is_allowed_url(&request.url, self.clients.address_policy(plan.client)) {
            return Err(not_allowed().into());
        }
        let client = self.client().await?;
        let body = MarkingBody::new(request.body.clone(), Arc::clone(dispatch));
        let builder = client
            .request(request.method.clone(), request.url.clone())
            .headers(request.headers.clone())
            .body(reqwest::Body::wrap(body));
        let silence = plan
            .read_timeout
            .map(|limit| limit.saturating_add(plan.client.connect_timeout));
        match within(silence, builder.send()).await {
            Ok(Ok(response)) => {
                dispatch.sent();
                Ok(response)
            }
            Ok(Err(error)) if error.is_connect() || error.is_builder() => Err(not_connected(&error).into()),
            Ok(Err(error)) => Err(broken(&error)),
            Err(_) => Err(silent()),
        }
    }

    /// Reads a body as a result, and reports it meanwhile if the tool says so. The outer error is a body that did not arrive, the
    /// inner one a body that is no result.
    pub(crate) async fn whole(
        &self,
        response: Response,
        progress: Option<&dyn Progress>,
        dispatch: &Arc<Dispatch>,
        hide: (&SecretMasks, &[String]),
    ) -> Result<Result<RawJson, ToolError>, Failure> {
        let plan = &*self.plan;
        let media = MediaType::from_headers(response.headers());
        let limits = BodyLimits {
            n_bytes: plan.max_response_bytes,
            key: plan.max_response_key,
            silence: plan.read_timeout,
        };
        if plan.method == Method::HEAD {
            return Ok(decode_body(Bytes::new(), &media));
        }
        let chunks = BodyChunks::open(response, limits, dispatch)?;
        let Some(format) = plan.stream else {
            return Ok(decode_body(chunks.collect().await?, &media));
        };
        let reader = StreamReader::new(format, plan.max_response_bytes, progress, hide);
        reader.read(chunks, &media).await
    }

    /// Selects the result from the response.
    async fn select(&self, response: RawJson) -> Result<RawJson, ToolError> {
        let limit = self.plan.max_response_bytes;
        let Some(selection) = self.plan.selection() else {
            return Ok(response);
        };
        if response.len() <= MAX_INLINE_SEARCH {
            return selection.apply(&response, limit);
        }
        let plan = self.plan.clone();
        let searched = spawn_blocking(move || match plan.selection() {
            Some(selection) => selection.apply(&response, limit),
            None => Ok(response),
        });
        searched.await.unwrap_or_else(|error| {
            Err(ToolError::new(ErrorKind::Internal, "searching the response failed").with_source(error))
        })
    }
}

impl ResultSelection {
    fn apply(&self, response: &RawJson, limit: usize) -> Result<RawJson, ToolError> {
        let value = response.to().map_err(|error| {
            ToolError::new(
                ErrorKind::Protocol,
                format!("the upstream's answer is not usable JSON: {error}"),
            )
        })?;
        let too_large = |message: &str| ToolError::new(ErrorKind::ResultTooLarge, message);
        match self {
            Self::Path(path) => path.apply(response, &value).map_err(|PathError::TooLarge| {
                too_large("the upstream's answer has too many values for its `response_path`")
            }),
            Self::Mapping(mapping) => mapping.apply(&value, limit).map_err(|error| match error {
                MappingError::TooLarge => too_large("the mapped result is too large"),
                MappingError::Failed(reason) => ToolError::new(
                    ErrorKind::ResultInvalid,
                    format!("the upstream's answer does not fit the tool's mapping: {reason}"),
                ),
            }),
        }
    }
}

/// Returns the target of a redirect, or `None` if its location is missing or invalid.
fn redirect_target(from: &Url, headers: &HeaderMap) -> Option<Url> {
    let location = headers.get(LOCATION)?.to_str().ok()?;
    let mut next = from.join(location).ok()?;
    next.set_fragment(None);
    check_parsed(&next).ok()?;
    Some(next)
}

fn redirected(status: StatusCode, how: &str) -> Failure {
    let message = format!("the upstream redirects ({}) {how}", status.as_u16());
    ToolError::new(ErrorKind::Protocol, message).into()
}

/// Error for an address that the tool may not reach.
pub(crate) fn not_allowed() -> ToolError {
    ToolError::new(
        ErrorKind::Denied,
        "the upstream's address is not public, and the tool may reach public addresses only",
    )
}
