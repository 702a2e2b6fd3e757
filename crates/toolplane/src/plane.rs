use std::{
    fmt,
    num::NonZeroUsize,
    path::PathBuf,
    sync::{Arc, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use futures_util::{StreamExt, stream};
use tool_chaos::ChaosLayer;
use tool_core::{
    Arguments, Asker, CallContext, Caller, ClientIdentity, Clock, CorrelationId, DynInvoke, ErrorKind, Event,
    Feature, Instant, LayerDecision, Ledger, Mode, Observers, Outcome, SourceState, Target, Tool, ToolError,
    format_duration,
};
use tool_manifest::{LoadOptions, Syntax};
use tool_policy::{ApprovalDesk, Denial, ErrorPolicyLayer, Redactor, SharedRules};
use tool_registry::{RefusedFeature, Registry, Snapshot};
use tool_runtime::CacheLayer;

use crate::{
    BuildError, Builder, CallRequest, View,
    build::error::NotUsable,
    build::executors::LiveParts,
    build::reload::ReloadState,
    calls::request::{Address, RequestParts},
    calls::views::Views,
    operate::health::HealthMonitor,
    outgoing::webhooks::Webhooks,
};

/// Governed set of tools. Clones share it; [`Toolplane::shutdown`] ends it.
///
/// # Examples
/// ```
/// use toolplane::{CallRequest, Toolplane};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let plane = Toolplane::from_yaml(
///     "tools: {greet: {description: Greets., executor: {kind: mock, result: {text: hello}}}}",
/// )?;
/// let outcome = plane.call(CallRequest::new("greet")).await?;
/// println!("{outcome:?}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Toolplane(pub(crate) Arc<Inner>);

/// Weak reference to a [`Toolplane`]: see [`Toolplane::downgrade`].
#[derive(Clone)]
pub struct WeakToolplane(Weak<Inner>);

impl WeakToolplane {
    /// Returns the toolplane, if it still exists.
    #[must_use]
    pub fn upgrade(&self) -> Option<Toolplane> {
        self.0.upgrade().map(Toolplane)
    }
}

impl fmt::Debug for WeakToolplane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakToolplane")
    }
}

pub(crate) struct Inner {
    pub(crate) registry: Registry,
    pub(crate) rules: SharedRules,
    pub(crate) observers: Observers,
    pub(crate) views: Views,
    pub(crate) desk: ApprovalDesk,
    pub(crate) stack: Arc<dyn DynInvoke>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) cache: CacheLayer,
    pub(crate) callers: ArcSwap<DefaultCallers>,
    pub(crate) live: ArcSwap<LiveParts>,
    pub(crate) reload: ReloadState,
    pub(crate) watch: HealthMonitor,
    pub(crate) webhooks: Webhooks,
    pub(crate) error_policy: ErrorPolicyLayer,
    pub(crate) chaos: ChaosLayer,
    pub(crate) redactor: Redactor,
}

/// Default callers for surfaces without authentication.
pub(crate) struct DefaultCallers {
    pub(crate) local: Arc<Caller>,
    pub(crate) anonymous: Arc<Caller>,
}

/// Result of a call, and the decisions of each layer.
#[derive(Debug)]
pub struct ExplainedCall {
    /// Result of the call.
    pub result: Result<Outcome, ToolError>,
    /// Decisions of the layers, in order.
    pub decisions: Vec<LayerDecision>,
}

impl Toolplane {
    /// Creates a builder without tools.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Builds a toolplane with the tools and servers of a configuration file. Servers start on first use.
    ///
    /// # Errors
    /// If the file is not usable: every problem with its line.
    pub fn from_file(path: impl Into<PathBuf>) -> Result<Self, BuildError> {
        Self::load(&LoadOptions::new().path(path))
    }

    /// Builds a toolplane from the text of a configuration.
    ///
    /// # Errors
    /// The errors of [`Toolplane::from_file`].
    pub fn from_yaml(text: impl Into<String>) -> Result<Self, BuildError> {
        Self::load(&LoadOptions::new().text("configuration", Syntax::Yaml, text))
    }

    fn load(options: &LoadOptions) -> Result<Self, BuildError> {
        let loaded = crate::manifest::load(options).map_err(BuildError::Configuration)?;
        Self::builder().loaded(&loaded).build()
    }

    pub(crate) fn from_inner(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Returns everything that this caller may see: tools, and the prompts and resources of servers. Starts servers
    /// that are not running; those that fail are missing: see [`Toolplane::sources`].
    pub async fn view(&self, caller: &Caller) -> View {
        let snapshot = self.0.registry.load().await;
        self.view_of(&snapshot, caller)
    }

    /// Returns everything that this caller may see from this client: like [`Toolplane::view`], with the lists of the
    /// client's own connections instead of the shared ones.
    pub async fn view_for(&self, caller: &Caller, client: &ClientIdentity) -> View {
        let snapshot = self.0.registry.load_for(client).await;
        self.view_of(&snapshot, caller)
    }

    /// Returns everything known that this caller may see. Starts nothing.
    #[must_use]
    pub fn cached_view(&self, caller: &Caller) -> View {
        self.view_of(&self.0.registry.snapshot(), caller)
    }

    pub(crate) fn view_of(&self, snapshot: &Arc<Snapshot>, caller: &Caller) -> View {
        self.0.views.get(snapshot, &self.0.rules.load(), caller)
    }

    /// Returns the tool with this name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], with the nearest name, if there is no such tool that this caller may see;
    /// [`ErrorKind::Unavailable`] if an operator disabled it.
    pub async fn tool(&self, name: &str, caller: &Caller) -> Result<Arc<Tool>, ToolError> {
        let tool = self.0.registry.find(name).await;
        let Some(tool) = tool else {
            return Err(self.not_found(Feature::Tool, name, caller));
        };
        let admitted = self.0.rules.load().admit(&tool, caller);
        match admitted {
            Ok(()) => Ok(tool),
            Err(refusal @ Denial::Disabled { .. }) => Err(refusal.into()),
            // A tool that the caller may not see does not exist for it.
            Err(_) => Err(self.not_found(Feature::Tool, name, caller)),
        }
    }

    /// Makes a call.
    ///
    /// # Cancellation
    /// Dropping the future cancels the call. A backend that supports cancellation is notified.
    ///
    /// # Errors
    /// If there is no result: see [`ErrorKind`].
    pub fn call(&self, request: CallRequest) -> impl Future<Output = Result<Outcome, ToolError>> + Send {
        // Before any await, so that no future holds the request.
        let known = self.known_context(request);
        async move {
            let mut cx = match known {
                Ok(cx) => cx,
                // Boxed: rare, and the future of every call would hold it.
                Err(request) => Box::pin(self.found_context(request)).await?,
            };
            self.0.stack.invoke_boxed(&mut cx).await
        }
    }

    /// Default number of concurrent calls of one turn.
    pub const DEFAULT_CONCURRENCY: NonZeroUsize = NonZeroUsize::new(5).expect("5 is not 0");

    /// Makes the calls of one turn, at most `concurrency` at a time. Results are in the order of the requests, and
    /// each call has an error of its own. See [`Toolplane::DEFAULT_CONCURRENCY`].
    ///
    /// # Cancellation
    /// Dropping the future cancels the running calls and makes no others.
    ///
    /// # Examples
    /// ```
    /// # use toolplane::{CallRequest, Toolplane};
    /// # async fn example(plane: &Toolplane) {
    /// let requests = ["weather", "news"].map(CallRequest::new);
    /// for result in plane.call_many(requests, Toolplane::DEFAULT_CONCURRENCY).await {
    ///     println!("{result:?}");
    /// }
    /// # }
    /// ```
    pub async fn call_many(
        &self,
        requests: impl IntoIterator<Item = CallRequest>,
        concurrency: NonZeroUsize,
    ) -> Vec<Result<Outcome, ToolError>> {
        let requests: Vec<_> = requests.into_iter().collect();
        let calls = requests
            .into_iter()
            .enumerate()
            .map(|(index, request)| async move {
                // Boxed, so that each concurrent call adds a pointer to this future instead of its size.
                (index, Box::pin(self.call(request)).await)
            });
        // Not `buffered`, which starts no further call while the first of the concurrency is running.
        let mut results: Vec<_> = stream::iter(calls)
            .buffer_unordered(concurrency.get())
            .collect()
            .await;
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Makes a call and records the decisions of each layer.
    pub async fn call_explained(&self, request: CallRequest) -> ExplainedCall {
        self.explained(self.known_context(request), Mode::Live).await
    }

    /// Passes a call through all layers and stops before it is sent. If every layer lets it pass, the result is
    /// [`Outcome::Pending`] with the [`Preview`](tool_core::Preview) of the request as its detail, if the backend
    /// supports it. Counts nothing and asks nobody. Starts a server only for a tool in no known list.
    pub async fn dry_run(&self, request: CallRequest) -> ExplainedCall {
        let known = match self.known_context(request) {
            Ok(cx) => Ok(cx),
            Err(request) => self.recalled_context(request).await,
        };
        self.explained(known, Mode::DryRun).await
    }

    async fn explained(&self, known: Result<Box<CallContext>, CallRequest>, mode: Mode) -> ExplainedCall {
        let now = || self.0.clock.now();
        let start = now();
        let (cx, is_known) = match known {
            Ok(cx) => (Ok(cx), true),
            Err(request) => (self.found_context(request).await, false),
        };
        match cx {
            Ok(mut cx) => {
                cx.mode = mode;
                cx.record_decisions();
                if !is_known {
                    let waited = now().since(start);
                    cx.explain("find", || {
                        format!(
                            "it was not known yet: servers that may have it were ready after {}",
                            format_duration(waited)
                        )
                    });
                }
                let result = self.0.stack.invoke_boxed(&mut cx).await;
                ExplainedCall {
                    result,
                    decisions: cx.decisions().to_vec(),
                }
            }
            Err(error) => ExplainedCall {
                result: Err(error),
                decisions: Vec::new(),
            },
        }
    }

    /// Returns the context of a call whose tool is known, or gives the request back. Boxed, since it is large and the
    /// futures of the call and of its caller would hold it as often as it is moved.
    fn known_context(&self, request: CallRequest) -> Result<Box<CallContext>, CallRequest> {
        let known = match &request.0.address {
            // A tool from a cached list is looked up again once its server runs.
            Address::Tool(name) => {
                let known = self
                    .0
                    .registry
                    .get_confirmed_for(name, || self.client_of(&request.0));
                known.map(Target::Tool)
            }
            _ => None,
        };
        match known {
            Some(target) => {
                let deadline = self.deadline(&request);
                Ok(self.context(request, target, deadline))
            }
            None => Err(request),
        }
    }

    /// Returns the context of a call whose tool is in a cached list, or gives the request back.
    async fn recalled_context(&self, request: CallRequest) -> Result<Box<CallContext>, CallRequest> {
        let Address::Tool(name) = &request.0.address else {
            return Err(request);
        };
        self.0.registry.recall().await;
        let Some(tool) = self.0.registry.get(name) else {
            return Err(request);
        };
        let deadline = self.deadline(&request);
        Ok(self.context(request, Target::Tool(tool), deadline))
    }

    /// Returns the context of a call whose server may have to start first.
    async fn found_context(&self, mut request: CallRequest) -> Result<Box<CallContext>, ToolError> {
        // Counted from the moment at which the caller began to wait.
        let deadline = self.deadline(&request);
        let client = self.client_of(&request.0);
        let wanted = &mut *request.0;
        let caller = wanted.caller.get_or_insert_with(|| self.local_caller());
        let found = self.find(&wanted.address, caller, &client, wanted.deadline).await;
        let target = found.inspect_err(|error| {
            self.0.observers.emit(&Event::unresolved(caller, error));
        })?;
        Ok(self.context(request, target, deadline))
    }

    /// Returns the identity of the calling client.
    fn client_of(&self, request: &RequestParts) -> ClientIdentity {
        let local = || self.local_caller();
        let caller = request.caller.clone().unwrap_or_else(local);
        let (ask, key) = (request.ask.as_deref(), request.client.as_ref());
        ClientIdentity::new(ask, key, request.client_capabilities, &caller)
    }

    fn deadline(&self, request: &CallRequest) -> Option<Instant> {
        request.0.deadline.map(|deadline| self.0.clock.now() + deadline)
    }

    fn context(&self, request: CallRequest, target: Target, deadline: Option<Instant>) -> Box<CallContext> {
        let inner = &*self.0;
        let request = request.0;
        let caller = request.caller.unwrap_or_else(|| self.local_caller());
        let arguments = request.arguments.unwrap_or_else(|| Arc::new(Arguments::none()));
        let cx = CallContext::new(target, arguments, caller, inner.clock.clone());
        let mut cx = Box::new(cx);
        cx.correlation_id = correlation_id();
        cx.deadline = deadline;
        cx.origin.progress = request.progress;
        cx.trace = request.trace;
        cx.origin.client = request.client;
        cx.origin.client_capabilities = request.client_capabilities;
        cx.origin.ask = request.ask.map(|ask| Asker::new(ask, inner.clock.clone()));
        cx.extras = request.extras;
        cx
    }

    /// Looks up the target of a call within the caller's deadline, and starts its server if necessary. An entry of a
    /// cached list is looked up again in the list of its server; if that fails, the cached one is called, and the
    /// layers handle the failure.
    pub(crate) async fn find(
        &self,
        address: &Address,
        caller: &Caller,
        client: &ClientIdentity,
        deadline: Option<Duration>,
    ) -> Result<Target, ToolError> {
        let (feature, name) = address.wanted();
        let look = |snapshot: &Snapshot| match address {
            Address::Resource(uri) => snapshot.resource(uri),
            _ => snapshot
                .find(feature, name)
                .map(|found| address.target(found.clone())),
        };
        let look_up = || self.0.registry.find_in(Some(client), feature, name, look);
        let find = async {
            let found = look_up().await?;
            // A call that would be denied starts nothing.
            if self.0.rules.load().admit_call(&found, caller).is_err()
                || !self.0.registry.confirm(found.tool()).await
            {
                return Some(found);
            }
            look_up().await
        };
        let found = match deadline {
            Some(deadline) => tokio::time::timeout(deadline, find).await.map_err(|_| {
                let message = format!(
                    "the server of `{name}` did not start within {}",
                    format_duration(deadline)
                );
                ToolError::new(ErrorKind::Timeout, message)
            })?,
            None => find.await,
        };
        found.ok_or_else(|| self.not_found_by(feature, name, caller, client))
    }

    /// Returns the error for an unknown name, with the nearest name that this caller may see and the failed server
    /// that may have it.
    pub(crate) fn not_found(&self, feature: Feature, name: &str, caller: &Caller) -> ToolError {
        self.not_found_in(&self.0.registry.snapshot(), feature, name, caller)
    }

    /// [`Toolplane::not_found`] for the view of this client.
    pub(crate) fn not_found_by(
        &self,
        feature: Feature,
        name: &str,
        caller: &Caller,
        client: &ClientIdentity,
    ) -> ToolError {
        self.not_found_in(&self.0.registry.snapshot_for(client), feature, name, caller)
    }

    fn not_found_in(
        &self,
        snapshot: &Arc<Snapshot>,
        feature: Feature,
        name: &str,
        caller: &Caller,
    ) -> ToolError {
        let kind = feature.as_str();
        let failed = self.0.registry.find_failed_source(feature, name);
        if let Some((server, status)) = failed {
            let message = format!("the server `{server}` of `{name}` is not available");
            let reason = match &status.state {
                SourceState::Failed(reason) => self.0.redactor.hide_in_text(reason).into_owned(),
                state => format!("it is {state}"),
            };
            let error = ToolError::new(ErrorKind::Unavailable, message).with_source(NotUsable(reason));
            return match status.retry_in {
                Some(pause) => error.with_retry_after(pause),
                None => error,
            };
        }
        let is_it = |refused: &&RefusedFeature| refused.feature == feature && refused.name == name;
        if let Some(refused) = snapshot.refused().iter().find(is_it) {
            let message = format!("the {kind} `{name}` is there but cannot be used");
            return ToolError::new(ErrorKind::Unavailable, message)
                .with_no_retry()
                .with_source(NotUsable(refused.reason.clone()));
        }
        let view = self.view_of(snapshot, caller);
        let nearest = view
            .list(feature)
            .iter()
            .map(|tool| tool.descriptor().uri.as_ref().unwrap_or(tool.name()))
            .map(|known| (strsim::damerau_levenshtein(name, known), known))
            .filter(|(distance, candidate)| *distance <= candidate.len().max(name.len()) / 3)
            .min();
        let message = match nearest {
            Some((_, nearest)) => format!("there is no {kind} `{name}`; did you mean `{nearest}`?"),
            None => format!("there is no {kind} `{name}`"),
        };
        ToolError::new(ErrorKind::NotFound, message)
    }

    /// Returns the desk of pending approvals, for people who decide.
    #[must_use]
    pub fn approvals(&self) -> &ApprovalDesk {
        &self.0.desk
    }

    /// Returns a weak reference, for owners that the toolplane itself owns.
    #[must_use]
    pub fn downgrade(&self) -> WeakToolplane {
        WeakToolplane(Arc::downgrade(&self.0))
    }

    /// Returns a receiver of changes of the tools; its value is their revision.
    #[must_use]
    pub fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.0.registry.changes()
    }

    /// Returns the caller on this machine, with the permissions that the configuration grants it.
    #[must_use]
    pub fn local_caller(&self) -> Arc<Caller> {
        self.0.callers.load().local.clone()
    }

    /// Returns the unauthenticated caller, with the permissions that the configuration grants it.
    #[must_use]
    pub fn anonymous_caller(&self) -> Arc<Caller> {
        self.0.callers.load().anonymous.clone()
    }

    /// Stops every server and waits until its processes have ended. Running calls fail.
    pub async fn shutdown(&self) {
        let running = self.0.live.load_full();
        self.0.reload.shutdown(&running).await;
    }
}

/// Returns a new id. It may become a trace id, all bits of which are expected to be random, so the version bits of a
/// UUID are mixed with others.
fn correlation_id() -> CorrelationId {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    let low = low ^ high.rotate_left(17);
    let high = high ^ low.rotate_left(29);
    CorrelationId(u128::from(high) << 64 | u128::from(low))
}

impl fmt::Debug for Toolplane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolplane")
            .field("registry", &self.0.registry)
            .finish_non_exhaustive()
    }
}
