use std::{
    borrow::Cow,
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
    Arguments, Asker, CallContext, Caller, ClientIdentity, Clock, CorrelationId, Disabled, DynInvoke,
    ErrorKind, Event, Feature, Instant, LayerDecision, Ledger, LedgerEntry, ListWarning, Mode, Observers,
    Outcome, PrepareError, SourceState, SourceStatus, Target, Tool, ToolError, format_duration,
};
use tool_manifest::{LoadOptions, Syntax};
use tool_policy::{ApprovalDesk, CredentialRefreshLayer, Denial, ErrorPolicyLayer, Redactor, SharedRules};
use tool_registry::{Refused, Registry, Snapshot};
use tool_runtime::CacheLayer;

use crate::{
    BuildError, Builder, CallRequest, View,
    error::NotUsable,
    executors::Running,
    health::HealthMonitor,
    hooks::Hooks,
    reload::Reloading,
    request::{Address, Requested},
    views::Views,
};

/// One governed set of tools. Cloning shares it; [`Toolplane::shutdown`] ends it.
#[derive(Clone)]
pub struct Toolplane(pub(crate) Arc<Inner>);

/// A [`Toolplane`] that may be gone: see [`Toolplane::downgrade`].
#[derive(Clone)]
pub struct WeakToolplane(Weak<Inner>);

impl WeakToolplane {
    /// The toolplane, if it is still there.
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
    pub(crate) share: CacheLayer,
    pub(crate) callers: ArcSwap<Callers>,
    pub(crate) running: ArcSwap<Running>,
    pub(crate) reloading: Reloading,
    pub(crate) watch: HealthMonitor,
    pub(crate) hooks: Hooks,
    pub(crate) surface: ErrorPolicyLayer,
    pub(crate) chaos: ChaosLayer,
    pub(crate) redactor: Redactor,
}

/// Those whom edges call for unless they know better.
pub(crate) struct Callers {
    pub(crate) local: Arc<Caller>,
    pub(crate) anonymous: Arc<Caller>,
}

/// How a call went and what each layer decided about it.
#[derive(Debug)]
pub struct Explained {
    /// How it ended.
    pub result: Result<Outcome, ToolError>,
    /// What the layers decided, in the order in which they did.
    pub notes: Vec<LayerDecision>,
}

impl Toolplane {
    /// Begins a toolplane without tools.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A toolplane with the tools and servers of a configuration file. No server is started before it is needed.
    ///
    /// # Errors
    /// When the file is not usable, with every problem's line.
    pub fn from_file(path: impl Into<PathBuf>) -> Result<Self, BuildError> {
        Self::load(&LoadOptions::new().path(path))
    }

    /// A toolplane of a configuration given as text.
    ///
    /// # Errors
    /// As [`Toolplane::from_file`].
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

    /// What this caller may see: tools, and the prompts and resources of servers. Servers that are not started yet are
    /// started for it, and those that fail are missing: see [`Toolplane::sources`].
    pub async fn list(&self, caller: &Caller) -> View {
        let snapshot = self.0.registry.load().await;
        self.view(&snapshot, caller)
    }

    /// What this caller may see from this client: as [`Toolplane::list`], with the lists of connections that servers keep
    /// for the client alone in the place of those that all share.
    pub async fn list_for(&self, caller: &Caller, client: &ClientIdentity) -> View {
        let snapshot = self.0.registry.load_for(client).await;
        self.view(&snapshot, caller)
    }

    /// What this caller may see out of what is known already: starts nothing.
    #[must_use]
    pub fn known(&self, caller: &Caller) -> View {
        self.view(&self.0.registry.snapshot(), caller)
    }

    pub(crate) fn view(&self, snapshot: &Arc<Snapshot>, caller: &Caller) -> View {
        self.0.views.get(snapshot, &self.0.rules.load(), caller)
    }

    /// The tool of this name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], with the nearest name there is, if there is none that this caller may see;
    /// [`ErrorKind::Unavailable`] if an operator switched it off.
    pub async fn describe(&self, name: &str, caller: &Caller) -> Result<Arc<Tool>, ToolError> {
        let tool = self.0.registry.find(name).await;
        let Some(tool) = tool else {
            return Err(self.not_found(Feature::Tool, name, caller));
        };
        let admitted = self.0.rules.load().admit(&tool, caller);
        match admitted {
            Ok(()) => Ok(tool),
            Err(refusal @ Denial::SwitchedOff { .. }) => Err(refusal.into()),
            // What the caller may not see is not there.
            Err(_) => Err(self.not_found(Feature::Tool, name, caller)),
        }
    }

    /// Makes a call.
    ///
    /// # Cancellation
    /// Dropping the future cancels the call; a tool that is told of cancellation is told.
    ///
    /// # Errors
    /// When there is no result: see [`ErrorKind`].
    pub fn call(&self, request: CallRequest) -> impl Future<Output = Result<Outcome, ToolError>> + Send {
        // Before anything is awaited, so that no future has room for the request.
        let known = self.known_context(request);
        async move {
            let mut cx = match known {
                Ok(cx) => cx,
                // Rare, and the future of every call would have room for it.
                Err(request) => Box::pin(self.found_context(request)).await?,
            };
            self.0.stack.invoke_boxed(&mut cx).await
        }
    }

    /// How many calls of one turn run at once where nothing else is asked for.
    pub const WINDOW: NonZeroUsize = NonZeroUsize::new(5).expect("5 is not 0");

    /// Makes the calls of one turn, so many at once: whenever one ends, the next begins. The results are in the order of
    /// the requests, each call's error in its place. [`Toolplane::WINDOW`] is a good window.
    ///
    /// # Cancellation
    /// Dropping the future cancels the calls that run and makes no others.
    ///
    /// # Examples
    /// ```
    /// # use toolplane::{CallRequest, Toolplane};
    /// # async fn example(plane: &Toolplane) {
    /// let requests = ["weather", "news"].map(CallRequest::new);
    /// for result in plane.call_many(requests, Toolplane::WINDOW).await {
    ///     println!("{result:?}");
    /// }
    /// # }
    /// ```
    pub async fn call_many(
        &self,
        requests: impl IntoIterator<Item = CallRequest>,
        window: NonZeroUsize,
    ) -> Vec<Result<Outcome, ToolError>> {
        let requests: Vec<_> = requests.into_iter().collect();
        let calls = requests
            .into_iter()
            .enumerate()
            .map(|(index, request)| async move {
                // Boxed, so that a call in the window costs a pointer in this future and not all of its own.
                (index, Box::pin(self.call(request)).await)
            });
        // Not `buffered`, which begins no further call while the first of the window is still running.
        let mut results: Vec<_> = stream::iter(calls).buffer_unordered(window.get()).collect().await;
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Makes a call and keeps what each layer decided.
    pub async fn call_explained(&self, request: CallRequest) -> Explained {
        self.explained(self.known_context(request), Mode::Live).await
    }

    /// Goes through everything that a call would, and stops where it would be sent: if every layer lets it pass, the
    /// result is [`Outcome::Pending`], whose detail is the [`Preview`](tool_core::Preview) of the request, if what runs the tool
    /// can tell it. Nothing is counted and nobody is asked. A server is started only for a tool of which no list is known.
    pub async fn dry_run(&self, request: CallRequest) -> Explained {
        let known = match self.known_context(request) {
            Ok(cx) => Ok(cx),
            Err(request) => self.recalled_context(request).await,
        };
        self.explained(known, Mode::DryRun).await
    }

    async fn explained(&self, known: Result<Box<CallContext>, CallRequest>, mode: Mode) -> Explained {
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
                Explained {
                    result,
                    notes: cx.decisions().to_vec(),
                }
            }
            Err(error) => Explained {
                result: Err(error),
                notes: Vec::new(),
            },
        }
    }

    /// The context of a call whose tool is known; gives back any other request. Boxed, since it is large and would be
    /// in the future of the call, and in that of its caller, as often as it is moved.
    fn known_context(&self, request: CallRequest) -> Result<Box<CallContext>, CallRequest> {
        let known = match &request.0.address {
            // One from a kept list is found again when its server runs.
            Address::Tool(name) => {
                let known = self.0.registry.confirmed_for(name, || self.client_of(&request.0));
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

    /// The context of a call whose tool is known from the list of an earlier run; gives back any other request.
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

    /// The context of a call whose server may have to be started first.
    async fn found_context(&self, mut request: CallRequest) -> Result<Box<CallContext>, ToolError> {
        // From where the caller began to wait.
        let deadline = self.deadline(&request);
        let client = self.client_of(&request.0);
        let wanted = &mut *request.0;
        let caller = wanted.caller.get_or_insert_with(|| self.local_caller());
        let found = self.find(&wanted.address, caller, &client, wanted.deadline).await;
        let target = found.inspect_err(|error| {
            self.0.observers.tell(&Event::Unresolved { caller, error });
        })?;
        Ok(self.context(request, target, deadline))
    }

    /// The identity of the client that makes a call.
    fn client_of(&self, request: &Requested) -> ClientIdentity {
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

    /// Looks up what a call is addressed to, whose server may have to be started first, within the caller's deadline. What is
    /// known from a kept list is looked up again in the list of its server, which is started for it; where that fails, the call
    /// is made with what is known, and its layers say what comes of it.
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
            // What the caller may not call starts nothing.
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

    /// Says what is near, out of what this caller may see, and which failed server may have had it.
    pub(crate) fn not_found(&self, feature: Feature, name: &str, caller: &Caller) -> ToolError {
        self.not_found_in(&self.0.registry.snapshot(), feature, name, caller)
    }

    /// [`Toolplane::not_found`] out of what this client may see.
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
        let failed = self.0.registry.failed_owner(feature, name);
        if let Some((server, status)) = failed {
            let message = format!("the server `{server}` of `{name}` is not available");
            let reason = match &status.state {
                SourceState::Failed(reason) => self.0.redactor.text(reason).into_owned(),
                state => format!("it is {state}"),
            };
            let error = ToolError::new(ErrorKind::Unavailable, message).with_source(NotUsable(reason));
            return match status.retry_in {
                Some(pause) => error.with_retry_after(pause),
                None => error,
            };
        }
        let is_it = |refused: &&Refused| refused.feature == feature && refused.name == name;
        if let Some(refused) = snapshot.refused().iter().find(is_it) {
            let message = format!("the {kind} `{name}` is there but cannot be used");
            return ToolError::new(ErrorKind::Unavailable, message)
                .with_no_retry()
                .with_source(NotUsable(refused.reason.clone()));
        }
        let view = self.view(snapshot, caller);
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

    /// The calls that wait for somebody's approval, to be looked at and decided.
    #[must_use]
    pub fn approvals(&self) -> &ApprovalDesk {
        &self.0.desk
    }

    /// How each source of tools is: the configuration's own tools first, then each server.
    #[must_use]
    pub fn sources(&self) -> Vec<(String, SourceStatus)> {
        let mut sources = self.0.registry.status();
        // What a program wrote to its standard error may hold what it was given.
        let hide = |text: &mut String| {
            if let Cow::Owned(hidden) = self.0.redactor.text(text) {
                *text = hidden;
            }
        };
        for (_, status) in &mut sources {
            status.detail.as_mut().map(hide);
            status.last_error.as_mut().map(hide);
            if let SourceState::Failed(reason) = &mut status.state {
                hide(reason);
            }
        }
        sources
    }

    /// A handle that does not keep the toolplane: for what it has itself.
    #[must_use]
    pub fn downgrade(&self) -> WeakToolplane {
        WeakToolplane(Arc::downgrade(&self.0))
    }

    /// The tools, prompts and resources that are switched off since their credentials were refused, and why.
    #[must_use]
    pub fn disabled(&self) -> Vec<(Arc<str>, Disabled)> {
        let off = self.switched_off().into_iter();
        off.map(|(tool, disabled)| (tool.name().clone(), disabled))
            .collect()
    }

    pub(crate) fn switched_off(&self) -> Vec<(Arc<Tool>, Disabled)> {
        let snapshot = self.0.registry.snapshot();
        let all = Feature::ALL
            .into_iter()
            .flat_map(|feature| snapshot.list(feature).iter().cloned());
        let mut off: Vec<(Arc<Tool>, Disabled)> = Vec::new();
        for tool in all.chain(self.0.registry.tools_of_clients()) {
            let is_new = |(known, _): &(Arc<Tool>, _)| !Arc::ptr_eq(known.state(), tool.state());
            if let Some(disabled) = tool.state().disabled()
                && off.iter().all(is_new)
            {
                off.push((tool, disabled));
            }
        }
        off
    }

    /// Switches on again what is switched off under this name, by [an operator](Self::disable) or since its
    /// [credentials were refused](Self::disabled); `false` if nothing was.
    #[expect(
        clippy::must_use_candidate,
        reason = "it does something, whatever it was before"
    )]
    pub fn enable(&self, tool: &str) -> bool {
        let inner = &*self.0;
        let was_off_by_hand = inner.switch_on(tool);
        let why = "an operator says so";
        let off = self.switched_off().into_iter();
        // A tool and a prompt may have the same name.
        off.filter(|(off, _)| **off.name() == *tool)
            .fold(was_off_by_hand, |was_off, (tool, _)| {
                CredentialRefreshLayer::enable(&tool, why, &inner.observers, inner.clock.wall()) || was_off
            })
    }

    /// What is remembered of the call with this id: one with an idempotency key, or one that ended as
    /// [`ErrorKind::OutcomeUnknown`], whose error has the id ([`ToolError::ledger_id`]). It is anybody's call, so it is
    /// for operators.
    pub async fn ledger_entry(&self, id: CorrelationId) -> Option<LedgerEntry> {
        self.0.ledger.find(id).await
    }

    /// The calls of which nobody knows whether the tool ran, the latest first: what somebody has to look into. No more than
    /// `limit`; it is for operators, as [`Toolplane::ledger_entry`] is.
    pub async fn unknown_outcomes(&self, limit: usize) -> Vec<LedgerEntry> {
        self.0.ledger.unknown(limit).await
    }

    /// The tools that are not offered, and why.
    #[must_use]
    pub fn refused(&self) -> Vec<Refused> {
        self.0.registry.snapshot().refused().to_vec()
    }

    /// Warnings about what servers list now: suspicious text in definitions, lists that are longer than allowed, and
    /// names that look alike. Each comes with the source that it is about, without secrets.
    #[must_use]
    pub fn list_warnings(&self) -> Vec<(String, ListWarning)> {
        let mut warnings = self.0.registry.list_warnings();
        for (_, warning) in &mut warnings {
            if let Cow::Owned(hidden) = self.0.redactor.text(&warning.message) {
                warning.message = hidden;
            }
        }
        warnings
    }

    /// What of the executor settings of tools never has an effect, by the tool's name:
    /// [`Loaded::warning`](tool_manifest::Loaded::warning) knows the places.
    #[must_use]
    pub fn warnings(&self) -> Vec<(Arc<str>, PrepareError)> {
        self.0.registry.warnings()
    }

    /// Tells when the tools have changed, by the revision of the new ones.
    #[must_use]
    pub fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.0.registry.changes()
    }

    /// The caller at this machine, with the permissions that the configuration grants it.
    #[must_use]
    pub fn local_caller(&self) -> Arc<Caller> {
        self.0.callers.load().local.clone()
    }

    /// A caller that nothing is known of, with the permissions that the configuration grants it.
    #[must_use]
    pub fn anonymous_caller(&self) -> Arc<Caller> {
        self.0.callers.load().anonymous.clone()
    }

    /// Stops every server and waits for the end of its processes. Calls that are still running fail.
    pub async fn shutdown(&self) {
        let running = self.0.running.load_full();
        self.0.reloading.shutdown(&running).await;
    }
}

/// A new one. It may become the id of a trace, of which everyone expects all bits to be random: those that mark the version
/// of a UUID are mixed with others.
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
