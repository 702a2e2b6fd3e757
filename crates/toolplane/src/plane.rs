use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Weak},
};

use arc_swap::ArcSwap;
use tool_chaos::ChaosLayer;
use tool_core::{
    Caller, ClientIdentity, Clock, Descriptor, DynInvoke, Feature, Ledger, Observers, Reach, Tool, ToolError,
};
use tool_observe::UsageRecorder;
use tool_policy::{ApprovalDesk, Denial, ErrorPolicyLayer, Redactor, SharedPrincipals, SharedRules};
use tool_registry::{Publisher, ReadManifest, Registry, Snapshot};
use tool_runtime::CacheLayer;

use crate::{
    BuildError, Builder, View, authoring::AuthoringState, build::background::Background,
    build::executors::LiveParts, build::reload::ReloadState, callers::authentication::Authentication,
    calls::views::Views, discovery::Discovery, host::stored_manifests::CheckedManifests,
    operate::health::HealthMonitor, outgoing::webhooks::Webhooks,
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
/// println!("{}", outcome.into_reply()?.text()); // {"text":"hello"}
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
    pub(crate) background: Arc<Background>,
    pub(crate) rules: SharedRules,
    pub(crate) observers: Observers,
    pub(crate) views: Views,
    pub(crate) desk: ApprovalDesk,
    pub(crate) stack: Arc<dyn DynInvoke>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) cache: CacheLayer,
    pub(crate) callers: ArcSwap<DefaultCallers>,
    pub(crate) principals: SharedPrincipals,
    pub(crate) authentication: Authentication,
    pub(crate) live: ArcSwap<LiveParts>,
    pub(crate) reload: ReloadState,
    pub(crate) publisher: Option<Publisher>,
    pub(crate) watch: HealthMonitor,
    pub(crate) webhooks: Webhooks,
    pub(crate) error_policy: ErrorPolicyLayer,
    pub(crate) chaos: ChaosLayer,
    pub(crate) redactor: Redactor,
    pub(crate) discovery: Discovery,
    pub(crate) usage: Option<UsageRecorder>,
    pub(crate) authoring: ArcSwap<AuthoringState>,
}

impl Inner {
    /// Starts the background work, unless that was done or this is outside of a runtime.
    #[inline]
    pub(crate) fn start_background(&self) {
        self.background.start(&self.registry);
    }
}

/// Default callers for surfaces without authentication, and the other callers that the policy names.
pub(crate) struct DefaultCallers {
    pub(crate) local: Arc<Caller>,
    pub(crate) anonymous: Arc<Caller>,
    /// Principals that the policy names, each with the setting.
    pub(crate) named: Vec<(&'static str, String)>,
}

impl Toolplane {
    /// Creates a builder without tools.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Builds a toolplane with the tools and servers of a configuration file. Servers start on first use. To add
    /// observers or layers, use [`Builder::file`]. Needs no runtime: see [`Builder::build`].
    ///
    /// A tool that cannot be used is left out: see [`Toolplane::refused`].
    ///
    /// # Errors
    /// If the file is not usable: every problem with its line. Otherwise the errors of [`Builder::build`].
    pub fn from_file(path: impl Into<PathBuf>) -> Result<Self, BuildError> {
        Self::builder().file(path)?.build()
    }

    /// Builds a toolplane from the text of a configuration: like [`Toolplane::from_file`].
    ///
    /// # Errors
    /// The errors of [`Toolplane::from_file`].
    pub fn from_yaml(text: impl Into<String>) -> Result<Self, BuildError> {
        Self::builder().yaml(text)?.build()
    }

    pub(crate) fn from_inner(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Returns the registry, whose background work has started if this is inside a runtime.
    pub(crate) fn registry(&self) -> &Registry {
        self.0.start_background();
        &self.0.registry
    }

    /// Returns everything that this caller may see: tools, and the prompts and resources of servers. Starts servers
    /// that are not running; those that fail are missing: see [`Toolplane::sources`].
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. Servers that are starting continue to start.
    pub async fn view(&self, caller: &Caller) -> View {
        let snapshot = self.registry().load().await;
        self.view_of(&snapshot, caller)
    }

    /// Returns everything that this caller may see from this client: like [`Toolplane::view`], with the lists of the
    /// client's own connections instead of the shared ones.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. Servers that are starting continue to start.
    pub async fn view_for(&self, caller: &Caller, client: &ClientIdentity) -> View {
        let snapshot = self.registry().load_for(client).await;
        self.view_of(&snapshot, caller)
    }

    /// Returns everything known that this caller may see. Starts nothing.
    #[must_use]
    pub fn cached_view(&self, caller: &Caller) -> View {
        self.view_of(&self.0.registry.snapshot(), caller)
    }

    pub(crate) fn view_of(&self, snapshot: &Arc<Snapshot>, caller: &Caller) -> View {
        self.0.views.get(snapshot, &self.0.rules, caller)
    }

    /// Returns the tool with this name, or this version of it for `tool@version`. Starts servers that may have it.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. Servers that are starting continue to start.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](tool_core::ErrorKind::NotFound), with the nearest name, if there is no such tool that this caller may see;
    /// [`ErrorKind::Unavailable`](tool_core::ErrorKind::Unavailable) if an operator disabled it.
    pub async fn tool(&self, name: &str, caller: &Caller) -> Result<Arc<Tool>, ToolError> {
        let mut tool = match name.split_once('@') {
            Some((name, version)) => Some(self.registry().find_version(name, version).await?),
            None => self.registry().find(name).await,
        };
        if tool.is_none() {
            tool = self.find_by_spelling(name, None).await;
        }
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

    /// Returns the publisher of the store's tools: see [`Builder::store`](crate::Builder::store). `None` without a store.
    #[must_use]
    pub fn publisher(&self) -> Option<&Publisher> {
        self.0.publisher.as_ref()
    }

    /// Returns the reader of manifests by which a publisher of another store accepts only tools that can run here.
    #[must_use]
    pub fn manifests(&self) -> Arc<dyn ReadManifest> {
        Arc::new(CheckedManifests(self.0.registry.clone()))
    }

    /// Returns the reach of a tool, whether it is offered or not: the secrets and hosts that its settings name. `None` if there is no
    /// executor of its kind here.
    #[must_use]
    pub fn reach(&self, tool: &Descriptor) -> Option<Reach> {
        self.0.registry.reach(tool)
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
        self.registry().changes()
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

    /// Stops every server and container, waits until its processes have ended, stores the definitions that were accepted by their
    /// first use, [closes](tool_core::Ledger::close) the ledger, and writes the last usage. Running calls fail.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. Servers whose shutdown began are not used again.
    pub async fn shutdown(&self) {
        let running = self.0.live.load_full();
        self.0.reload.shutdown(&running).await;
        if let Err(error) = self.pins().flush().await {
            tracing::warn!(%error, "definitions of first use are not stored: the next run accepts what it finds");
        }
        self.0.ledger.close().await;
        if let Some(usage) = &self.0.usage {
            // A failure is logged.
            let _ = usage.flush().await;
        }
    }
}

impl fmt::Debug for Toolplane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolplane")
            .field("registry", &self.0.registry)
            .finish_non_exhaustive()
    }
}
