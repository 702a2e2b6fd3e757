use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{
    Arguments, Backend, CallContext, Caller, Clock, Descriptor, ExecutorSpec, Feature, InProcess, Invoke,
    Metadata, Origin, Overrides, Provenance, Settings, Target, Tool, ToolParts, ToolState, Trust,
    UpstreamState,
};
use tool_schema::LazySchema;

/// A tool for a test: everything about it has a default that a test can change.
#[derive(Debug, Clone)]
pub struct TestTool {
    /// The tool as data.
    pub descriptor: Descriptor,
    /// Its settings.
    pub settings: Settings,
    /// Where it comes from, as far as the descriptor does not say.
    pub provenance: Provenance,
    /// What it has in common with other tools.
    pub upstream: Option<Arc<UpstreamState>>,
    /// What is known of it from earlier calls; nothing yet, in a state of its own, if absent.
    pub state: Option<Arc<ToolState>>,
}

impl TestTool {
    /// A tool of this name that the operator wrote, that takes any object and is run by the executor `scripted`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let descriptor = Descriptor {
            feature: Feature::Tool,
            name: name.into(),
            uri: None,
            title: None,
            description: format!("The tool {name}."),
            version: None,
            input_schema: RawJson::from(json!({"type": "object"})),
            output_schema: None,
            executor: ExecutorSpec {
                kind: "scripted".to_owned(),
                config: json!({}),
            },
            timeout: None,
            metadata: Metadata::default(),
            overrides: Overrides::default(),
            definition: None,
            origin: Origin {
                place: "test".to_owned(),
                trust: Trust::Operator,
            },
        };
        Self {
            descriptor,
            settings: Settings::default(),
            provenance: Provenance::default(),
            upstream: None,
            state: None,
        }
    }

    /// The same tool with this schema of its arguments.
    #[must_use]
    pub fn input(mut self, schema: Value) -> Self {
        self.descriptor.input_schema = RawJson::from(schema);
        self
    }

    /// The same tool with this schema of its results.
    #[must_use]
    pub fn output(mut self, schema: Value) -> Self {
        self.descriptor.output_schema = Some(RawJson::from(schema));
        self
    }

    /// The same tool with these limits for a whole call and for one attempt.
    #[must_use]
    pub fn limits(mut self, call: Duration, attempt: Duration) -> Self {
        self.settings.call_timeout = call;
        self.settings.attempt_timeout = attempt;
        self
    }

    /// The same tool, of this upstream.
    #[must_use]
    pub fn upstream(mut self, upstream: &Arc<UpstreamState>) -> Self {
        self.upstream = Some(upstream.clone());
        self
    }

    /// The same tool with other metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: Metadata) -> Self {
        self.descriptor.metadata = metadata;
        self
    }

    /// Builds the tool on something that runs in this process.
    #[must_use]
    pub fn build(self, runs: impl Invoke + 'static) -> Arc<Tool> {
        self.build_on(InProcess(runs))
    }

    /// Builds the tool on this backend.
    #[must_use]
    pub fn build_on(self, backend: impl Backend + 'static) -> Arc<Tool> {
        Arc::new(Tool::new(ToolParts {
            input: Arc::new(LazySchema::new(self.descriptor.input_schema.clone())),
            output: self
                .descriptor
                .output_schema
                .clone()
                .map(|schema| Arc::new(LazySchema::new(schema)) as _),
            descriptor: Arc::new(self.descriptor),
            executor: Arc::new(backend),
            provenance: self.provenance,
            state: self
                .state
                .unwrap_or_else(|| Arc::new(ToolState::new(self.upstream))),
            settings: self.settings,
        }))
    }
}

/// A call of this tool by the local caller.
///
/// # Panics
/// When the arguments are no object.
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
