use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{
    Arguments, Backend, CallContext, Caller, Clock, Descriptor, ExecutorSpec, InProcess, Invoke, Metadata,
    Origin, Provenance, Settings, Target, Tool, ToolParts, ToolState, UpstreamState,
};
use tool_schema::LazySchema;

/// A tool for a test, with defaults for everything.
#[derive(Debug, Clone)]
pub struct TestTool {
    /// Descriptor of the tool.
    pub descriptor: Descriptor,
    /// Settings of the tool.
    pub settings: Settings,
    /// Source of the tool, beyond its descriptor.
    pub provenance: Provenance,
    /// State shared with other tools of the upstream.
    pub upstream: Option<Arc<UpstreamState>>,
    /// State from earlier calls; a new one if absent.
    pub state: Option<Arc<ToolState>>,
}

impl TestTool {
    /// Creates a tool that the operator wrote, that takes any object and that the executor `scripted` runs.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut descriptor = Descriptor::new(name, ExecutorSpec::new("scripted"));
        descriptor.description = format!("The tool {name}.");
        descriptor.input_schema = RawJson::from(json!({"type": "object"}));
        descriptor.origin = Origin::operator("test");
        Self {
            descriptor,
            settings: Settings::default(),
            provenance: Provenance::default(),
            upstream: None,
            state: None,
        }
    }

    /// Sets the input schema.
    #[must_use]
    pub fn input(mut self, schema: Value) -> Self {
        self.descriptor.input_schema = RawJson::from(schema);
        self
    }

    /// Sets the output schema.
    #[must_use]
    pub fn output(mut self, schema: Value) -> Self {
        self.descriptor.output_schema = Some(RawJson::from(schema));
        self
    }

    /// Sets the limits of a whole call and of one attempt.
    #[must_use]
    pub fn limits(mut self, call: Duration, attempt: Duration) -> Self {
        self.settings.call_timeout = call;
        self.settings.attempt_timeout = attempt;
        self
    }

    /// Sets the upstream.
    #[must_use]
    pub fn upstream(mut self, upstream: &Arc<UpstreamState>) -> Self {
        self.upstream = Some(upstream.clone());
        self
    }

    /// Sets the metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: Metadata) -> Self {
        self.descriptor.metadata = metadata.into();
        self
    }

    /// Builds the tool with a backend in this process.
    #[must_use]
    pub fn build(self, runs: impl Invoke + 'static) -> Arc<Tool> {
        self.build_on(InProcess(runs))
    }

    /// Builds the tool with this backend.
    #[must_use]
    pub fn build_on(self, backend: impl Backend + 'static) -> Arc<Tool> {
        let input = LazySchema::new(self.descriptor.input_schema.clone());
        let output = self.descriptor.output_schema.clone().map(LazySchema::new);
        let mut parts = ToolParts::new(Arc::new(self.descriptor), Arc::new(backend));
        parts.input = Arc::new(input);
        parts.output = output.map(|output| Arc::new(output) as _);
        parts.provenance = self.provenance.into();
        let state = self.state;
        parts.state = state.unwrap_or_else(|| Arc::new(ToolState::new(self.upstream)));
        // As the test gives them: a registry has fitted the settings of a tool to it.
        parts.settings = self.settings;
        Arc::new(Tool::new(parts))
    }
}

/// Returns the context of a call by the local caller.
///
/// # Panics
/// If the arguments are no object.
#[must_use]
pub fn call(tool: Arc<Tool>, arguments: Value, clock: Arc<dyn Clock>) -> CallContext {
    let arguments = Arguments::from_value(arguments).expect("a test gives usable arguments");
    CallContext::new(
        Target::Tool(tool),
        Arc::new(arguments),
        Arc::new(Caller::local()),
        clock,
    )
}
