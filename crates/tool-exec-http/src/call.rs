use std::{
    borrow::Cow,
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{CONTENT_ENCODING, LOCATION},
};
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use reqwest::{Client, Response};
use tokio::{
    sync::Mutex as AsyncMutex,
    task::spawn_blocking,
    time::{error::Elapsed, timeout},
};
use tool_core::{
    Backend, CallContext, ErrorKind, Invoke, Outcome, Preview, Reference, Refresh, Reply, Secret, Secrets,
    ToolError, format_duration, hide_fields, is_status_not_taken, sanitised,
};
use tracing::debug;
use url::Url;

use crate::{
    address::check_parsed,
    client::Clients,
    dispatch::MarkingBody,
    failure::{Failure, broken, error_answer, left_open, not_connected},
    json_path::PathError,
    mapping::MappingError,
    plan::{Plan, Selection, may_lead_to},
    redact::LastMasks,
    request::Request,
    response::{MediaType, result_of},
    settings::Redirects,
    status::{is_of_gateway, refuses_credentials},
    text::Scope,
    traffic::Flow,
};

/// A prepared HTTP tool.
pub(crate) struct HttpTool {
    pub plan: Arc<Plan>,
    pub clients: Arc<Clients>,
    /// The requests to its upstream.
    pub flow: Arc<Flow>,
    pub secrets: Arc<dyn Secrets>,
    /// The values that the upstream refused last, told apart by a digest.
    pub refused: Mutex<Option<u64>>,
    /// Held while others are got, so that many calls share that.
    pub renewing: AsyncMutex<()>,
    pub masks: LastMasks,
}

/// How many redirects a call follows.
const MAX_REDIRECTS: usize = 3;
/// A response larger than this is searched off the thread, so that a deadline still ends the call.
const SEARCHED_HERE: usize = 256 << 10;

impl Invoke for HttpTool {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
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
            Ok(Ok(reply)) => return Ok(reply.into()),
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

impl Backend for HttpTool {
    async fn refresh_credentials(&self, refresh: Refresh) -> bool {
        let _turn = self.renewing.lock().await;
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

    /// The clients, unless values come in that may be others under another configuration.
    fn backend_id(&self) -> Option<usize> {
        let is_fixed = self.plan.references.is_empty();
        is_fixed.then(|| Arc::as_ptr(&self.clients).addr())
    }

    async fn preview(&self, cx: &CallContext) -> Result<Option<Preview>, ToolError> {
        self.previewed(cx).await.map(Some)
    }
}

impl HttpTool {
    async fn exchange(&self, cx: &CallContext) -> Result<Reply, Failure> {
        let plan = &*self.plan;
        let values = self.values().await?;
        let masks = self.masks.of(&values, &plan.secrets);
        let hidden = plan.hidden_fields(cx.tool().settings().redacted_fields());
        let request = self.request(cx, &values)?;
        let method = request.method.clone();
        let running = self.flow.begin();
        let (response, was_taken) = self.follow(request, cx).await?;
        let status = response.status();
        debug!(
            tool = %plan.tool,
            %method,
            status = status.as_u16(),
            arguments = %masks.message(&sanitised(&hide_fields(cx.arguments.raw(), &hidden))),
            "http call answered"
        );
        if !plan.expected.holds(status) {
            if refuses_credentials(status) {
                *self.refused() = Some(self.digest(&values));
            }
            let is_own = !was_taken && !is_of_gateway(status);
            if is_own && is_status_not_taken(status.as_u16()) {
                cx.dispatch().not_taken();
            } else if is_own {
                cx.dispatch().answered();
            }
            let error = error_answer(response, &hidden, &masks, cx.clock.wall()).await;
            let error = if is_own { error } else { left_open(error, cx) };
            return Err(error.into());
        }
        let media = MediaType::of(response.headers());
        let body = match method {
            Method::HEAD => Bytes::new(),
            _ => self.body(response, cx).await?,
        };
        drop(running);
        // Whoever gives up from here on leaves an answer behind that nobody has read.
        let result = async {
            // Hides secrets that the upstream says back.
            let whole = result_of(body, &media)?;
            let whole = masks.result(&whole).unwrap_or(whole);
            // Hidden before anything is selected: a selection may leave a field's name behind.
            self.select(hide_fields(&whole, &hidden)).await
        }
        .await;
        cx.dispatch().answered();
        let result = result?;
        let mut reply = Reply::value(result);
        if status == StatusCode::PARTIAL_CONTENT {
            reply.mark_partial();
        }
        Ok(reply)
    }

    /// Makes the request of a call with these values.
    pub(crate) fn request(
        &self,
        cx: &CallContext,
        values: &HashMap<Reference, Secret>,
    ) -> Result<Request, ToolError> {
        let plan = &*self.plan;
        let arguments: Vec<(Cow<'_, str>, RawJson)> = cx.arguments.raw().members().collect();
        let mut request = plan.request(&Scope {
            arguments: &arguments,
            values,
        })?;
        if let Some(trace) = &cx.trace {
            request.belongs_to(trace);
        }
        if let (Some(header), Some(key)) = (&plan.key_header, cx.upstream_idempotency_key())
            && let Ok(key) = HeaderValue::from_str(&key)
        {
            request.headers.insert(header.clone(), key);
        }
        Ok(request)
    }

    fn refused(&self) -> MutexGuard<'_, Option<u64>> {
        self.refused.lock()
    }

    /// Whether the present values are others than those of this digest.
    async fn is_changed(&self, refused: Option<u64>) -> bool {
        let values = self.values().await;
        refused.is_some_and(|refused| values.is_ok_and(|values| self.digest(&values) != refused))
    }

    /// Tells values apart, within this process.
    fn digest(&self, values: &HashMap<Reference, Secret>) -> u64 {
        let mut hasher = DefaultHasher::new();
        for reference in &self.plan.references {
            values.get(reference).map(Secret::expose).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The present value of every reference.
    pub(crate) async fn values(&self) -> Result<HashMap<Reference, Secret>, ToolError> {
        let mut values = HashMap::new();
        for reference in &self.plan.references {
            let value = reference.resolve(&*self.secrets).await.map_err(|error| {
                ToolError::new(ErrorKind::Auth, format!("a configured value is missing: {error}"))
                    .with_source(error)
                    .with_no_retry()
            })?;
            values.insert(reference.clone(), value);
        }
        Ok(values)
    }

    /// Sends a request and follows the redirects that may be followed. Says also whether one of them took the request and led
    /// to a place to look at: what is answered there is not about the request (RFC 9110, section 15.4.4).
    async fn follow(&self, mut request: Request, cx: &CallContext) -> Result<(Response, bool), Failure> {
        let (mut n_followed, mut was_taken) = (0, false);
        loop {
            let response = match self.send(&request, cx).await {
                Err(Failure::Known(error)) if was_taken => return Err(left_open(error, cx).into()),
                sent => sent?,
            };
            let status = response.status();
            let redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
            if !redirect || self.plan.expected.holds(status) {
                return Ok((response, was_taken));
            }
            let Some(next) = redirect_target(&request.url, response.headers()) else {
                return Ok((response, was_taken));
            };
            // Only a redirect that ends here is an answer: the next place may do what was asked for and stay silent.
            if self.plan.redirects == Redirects::None || next.origin() != request.url.origin() {
                cx.dispatch().answered();
                return Err(redirected(status, "to another place, which is not followed"));
            }
            if n_followed == MAX_REDIRECTS {
                cx.dispatch().answered();
                return Err(redirected(status, "too often"));
            }
            n_followed += 1;
            was_taken |= request.follow_to(next, status);
        }
    }

    async fn client(&self) -> Result<Client, ToolError> {
        let key = self.plan.client;
        if let Some(client) = self.clients.made(key) {
            return Ok(client);
        }
        let clients = self.clients.clone();
        let failed = || ToolError::new(ErrorKind::Internal, "no HTTP client can be made");
        match spawn_blocking(move || clients.make(key)).await {
            Ok(made) => made.map_err(|error| failed().with_source(error.without_url())),
            Err(error) => Err(failed().with_source(error)),
        }
    }

    /// Sends one request and waits for the head of its response.
    async fn send(&self, request: &Request, cx: &CallContext) -> Result<Response, Failure> {
        let plan = &*self.plan;
        if !may_lead_to(&request.url, self.clients.reach(plan.client)) {
            return Err(not_allowed().into());
        }
        let client = self.client().await?;
        let dispatch = cx.dispatch().clone();
        let body = MarkingBody::new(request.body.clone(), dispatch.clone());
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

    /// Reads a body, counting what comes out of its decompression.
    async fn body(&self, mut response: Response, cx: &CallContext) -> Result<Bytes, Failure> {
        let limit = self.plan.max_response_bytes;
        let too_large = || {
            cx.dispatch().answered();
            let key = self.plan.max_response_key;
            let message =
                format!("the upstream's answer is larger than the allowed {limit} bytes of `{key}`");
            Failure::from(ToolError::new(ErrorKind::ResultTooLarge, message))
        };
        if let Some(coding) = response.headers().get(CONTENT_ENCODING)
            && coding != "identity"
        {
            let message = "the upstream's answer is compressed in a way that was not asked for";
            return Err(ToolError::new(ErrorKind::Protocol, message).into());
        }
        let announced = response.content_length().unwrap_or(0);
        if announced > limit as u64 {
            return Err(too_large());
        }
        let mut body = Vec::new();
        let mut first = None;
        loop {
            let chunk = match within(self.plan.read_timeout, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Err(broken(&error)),
                Err(_) => return Err(silent()),
            };
            let so_far = first.as_ref().map_or(body.len(), Bytes::len);
            if chunk.len() > limit - so_far {
                return Err(too_large());
            }
            // Most answers come in one piece, which then needs no copy.
            if so_far == 0 {
                first = Some(chunk);
                continue;
            }
            if let Some(first) = first.take() {
                body.reserve(
                    usize::try_from(announced)
                        .unwrap_or(0)
                        .max(first.len() + chunk.len()),
                );
                body.extend_from_slice(&first);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(first.unwrap_or_else(|| body.into()))
    }

    /// The part of the response that is the result.
    async fn select(&self, response: RawJson) -> Result<RawJson, ToolError> {
        let limit = self.plan.max_response_bytes;
        let Some(selection) = &self.plan.selection else {
            return Ok(response);
        };
        if response.len() <= SEARCHED_HERE {
            return selection.apply(&response, limit);
        }
        let plan = self.plan.clone();
        let searched = spawn_blocking(move || match &plan.selection {
            Some(selection) => selection.apply(&response, limit),
            None => Ok(response),
        });
        searched.await.unwrap_or_else(|error| {
            Err(ToolError::new(ErrorKind::Internal, "searching the response failed").with_source(error))
        })
    }
}

impl Selection {
    fn apply(&self, response: &RawJson, limit: usize) -> Result<RawJson, ToolError> {
        let value = response.to().map_err(|error| {
            ToolError::new(
                ErrorKind::Protocol,
                format!("the upstream's answer is no usable JSON: {error}"),
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

/// Waits no longer than a limit, if there is one.
async fn within<F: Future>(limit: Option<Duration>, future: F) -> Result<F::Output, Elapsed> {
    match limit {
        Some(limit) => timeout(limit, future).await,
        None => Ok(future.await),
    }
}

/// Where a redirect leads; nothing if it names no place that a request could go to.
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

fn silent() -> Failure {
    let message = "the upstream fell silent".to_owned();
    Failure::Unanswered(ErrorKind::Timeout, message, None)
}

/// The address is none that the tool may reach.
pub(crate) fn not_allowed() -> ToolError {
    ToolError::new(
        ErrorKind::Denied,
        "the upstream's address is not public, and the tool may not reach others",
    )
}
