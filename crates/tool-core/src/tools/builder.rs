use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    AnyJson, Backend, CheckJson, Descriptor, DynBackend, ExecutorSpec, InProcess, Invoke, Metadata,
    OrDefault, Provenance, Setting, Settings, Tool, ToolParts, ToolState, UpstreamState,
};

/// Builder of a [`Tool`] that no registry resolves, with defaults for everything: the operator wrote it, it accepts any
/// arguments, and layers use their defaults.
///
/// Each built tool has a [generation](Tool::generation) of its own, so cached replies of one are never those of another: two
/// closures may differ where their descriptors do not. Build a tool once, and share it.
///
/// # Examples
/// ```
/// use tool_core::{Tool, ToolError, invoke_fn, serde_json::json};
///
/// let tool = Tool::builder("weather")
///     .description("The weather somewhere.")
///     .read_only(true)
///     .run(invoke_fn(|_| async { Ok::<_, ToolError>(json!({"sky": "clear"})) }));
/// assert_eq!(&**tool.name(), "weather");
/// ```
#[must_use]
pub struct ToolBuilder {
    descriptor: Descriptor,
    input: Arc<dyn CheckJson>,
    output: Option<Arc<dyn CheckJson>>,
    settings: Settings,
    provenance: Provenance,
    upstream: Option<Arc<UpstreamState>>,
    state: Option<Arc<ToolState>>,
}

/// Generation of the next tool. Those of configurations count from zero and never get here.
static NEXT_GENERATION: AtomicU64 = AtomicU64::new(1 << 63);

impl Tool {
    /// Starts a tool with this name. It is not checked: see [`check_name`](crate::check_name).
    pub fn builder(name: impl Into<Arc<str>>) -> ToolBuilder {
        ToolBuilder::from_descriptor(Descriptor::new(name, ExecutorSpec::new("function")))
    }
}

impl ToolBuilder {
    /// Starts with a description of the tool as data. Its schemas are shown to agents; [`ToolBuilder::input`] and
    /// [`ToolBuilder::output`] set the checks.
    pub fn from_descriptor(descriptor: Descriptor) -> Self {
        Self {
            descriptor,
            input: Arc::new(AnyJson),
            output: None,
            settings: Settings::default(),
            provenance: Provenance::default(),
            upstream: None,
            state: None,
        }
    }

    /// Sets the description for agents: what the tool does and when to use it.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.descriptor.description = description.into();
        self
    }

    /// Sets the compiled schema of the arguments; its document becomes part of the definition. Default: [`AnyJson`].
    pub fn input(mut self, schema: impl CheckJson + 'static) -> Self {
        if let Some(document) = schema.document() {
            self.descriptor.input_schema = document.clone();
        }
        self.input = Arc::new(schema);
        self
    }

    /// Sets the compiled schema of the results; its document becomes part of the definition. Default: none.
    pub fn output(mut self, schema: impl CheckJson + 'static) -> Self {
        if let Some(document) = schema.document() {
            self.descriptor.output_schema = Some(document.clone());
        }
        self.output = Some(Arc::new(schema));
        self
    }

    /// Sets all settings.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the setting of one layer, replacing the one of the same type, as the operator's own for this very tool. It is
    /// fitted to the tool when the tool is built: see [`Setting::settled`].
    pub fn setting(mut self, setting: impl Setting) -> Self {
        self.descriptor.overrides.set(setting.clone());
        self.settings.set(setting);
        self
    }

    /// Sets the time limits of a whole call and of one attempt.
    pub fn timeouts(mut self, call: Duration, attempt: Duration) -> Self {
        self.settings.call_timeout = call;
        self.settings.attempt_timeout = attempt;
        self
    }

    /// Sets guarantees, cost and requirements.
    pub fn metadata(mut self, metadata: Metadata) -> Self {
        self.descriptor.metadata = metadata.into();
        self
    }

    /// Declares that calling the tool twice has the effect of calling it once. Only then is an attempt repeated that may
    /// have run.
    pub fn idempotent(mut self, is_idempotent: bool) -> Self {
        self.descriptor.metadata.idempotent = Some(is_idempotent);
        self
    }

    /// Declares that the tool changes nothing.
    pub fn read_only(mut self, is_read_only: bool) -> Self {
        self.descriptor.metadata.read_only = Some(is_read_only);
        self
    }

    /// Sets the names and the place by which policy rules and approvals recognize the tool.
    pub fn provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }

    /// Sets the upstream whose limits and breakers the tool shares.
    pub fn upstream(mut self, upstream: &Arc<UpstreamState>) -> Self {
        self.upstream = Some(upstream.clone());
        self
    }

    /// Sets the state from earlier calls, such as those of the same tool before it was described anew. Default: a new one.
    pub fn state(mut self, state: Arc<ToolState>) -> Self {
        self.state = Some(state);
        self
    }

    /// Builds the tool with a backend in this process: a closure by [`invoke_fn`](crate::invoke_fn), or any [`Invoke`].
    #[must_use]
    pub fn run(self, backend: impl Invoke + 'static) -> Arc<Tool> {
        self.run_on(InProcess(backend))
    }

    /// Builds the tool with a backend.
    #[must_use]
    pub fn run_on(self, backend: impl Backend + 'static) -> Arc<Tool> {
        self.run_on_dyn(Arc::new(backend))
    }

    /// Builds the tool with a backend that an [`Executor`](crate::Executor) prepared.
    #[must_use]
    pub fn run_on_dyn(self, backend: Arc<dyn DynBackend>) -> Arc<Tool> {
        let upstream = self.upstream;
        let settings = self.settings.settled(&self.descriptor);
        let tool = Tool::new(ToolParts {
            input: self.input,
            output: self.output,
            provenance: self.provenance.into(),
            state: self.state.unwrap_or_else(|| Arc::new(ToolState::new(upstream))),
            settings,
            ..ToolParts::new(Arc::new(self.descriptor), backend)
        });
        Arc::new(tool.in_generation(NEXT_GENERATION.fetch_add(1, Ordering::Relaxed)))
    }
}

impl ToolParts {
    /// Creates the parts of a tool that accepts any arguments, with the default settings and no earlier state.
    #[must_use]
    pub fn new(descriptor: Arc<Descriptor>, executor: Arc<dyn DynBackend>) -> Self {
        Self {
            descriptor,
            input: Arc::new(AnyJson),
            output: None,
            executor,
            provenance: OrDefault::default(),
            state: Arc::default(),
            settings: Settings::default(),
        }
    }
}

impl fmt::Debug for ToolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolBuilder")
            .field("descriptor", &self.descriptor)
            .finish_non_exhaustive()
    }
}
