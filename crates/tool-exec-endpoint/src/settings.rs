use std::{collections::BTreeMap, time::Duration};

use mcp_client::Command;
use sha2::{Digest as _, Sha256};
use tool_core::{
    DefinitionPolicy, ListLimits, Pattern, Provider, Reference, SecretError, Secrets, Template, outward_name,
};

/// Executor kind of tools of endpoints.
pub(crate) const EXECUTOR_KIND: &str = "endpoint";
/// Maximum number of endpoints that may be started by one another.
const MAX_DEPTH: u32 = 3;

/// Settings of an endpoint.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EndpointSettings {
    /// Name, unique among sources.
    pub name: String,
    /// Program that answers requests.
    pub command: EndpointCommand,
    /// Time limit of one call of a tool. The default of the configuration applies if absent.
    pub timeout: Option<Duration>,
    /// Time limit of a list: 20 s.
    pub list_timeout: Duration,
    /// Interval at which the list is read again: 5 min, and at least 1 s.
    pub refresh_interval: Duration,
    /// The only tools to offer, by their names at the endpoint. All of them if absent.
    pub include: Option<Vec<Pattern>>,
    /// Tools to exclude, by their names at the endpoint.
    pub exclude: Vec<Pattern>,
    /// Prefix of the names of tools.
    pub prefix: String,
    /// Maximum size of one reply, in bytes: 16 MiB.
    pub max_reply_bytes: usize,
    /// Policy for suspicious definitions.
    pub definitions: DefinitionPolicy,
    /// Limits of the list.
    pub list_limits: ListLimits,
    /// Place of the idempotency key of a call in its request, for an endpoint that does once what it receives twice with the same
    /// key.
    pub key_place: Option<EndpointKeyPlace>,
    /// Number of endpoints that this process runs below: the value of [`Self::DEPTH_VARIABLE`] in its environment. An endpoint
    /// that starts the program which it is an endpoint of would start processes without end.
    pub depth: u32,
}

/// Place of an idempotency key in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointKeyPlace {
    /// This key of the member `_meta` of the request.
    Meta(String),
    /// This argument. Tools whose schema lacks it do not get the key.
    Argument(String),
}

/// Program that answers requests, as an argument vector: no shell reads it. References are resolved at each start.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EndpointCommand {
    /// Program, searched along `PATH` unless it is a path.
    pub program: Template,
    /// Arguments.
    pub args: Vec<Template>,
    /// Variables of its environment, in addition to the base variables.
    pub env: BTreeMap<String, Template>,
    /// Names of variables that are copied from the environment of this process if they are set there. A variable in `env`
    /// replaces the copy.
    pub inherit: Vec<String>,
    /// Working directory.
    pub cwd: Option<Template>,
}

impl EndpointSettings {
    /// Name of the environment variable that tells an endpoint how many endpoints it runs below.
    pub const DEPTH_VARIABLE: &'static str = "TOOLPLANE_ENDPOINT_DEPTH";

    /// Creates the settings of an endpoint with the defaults.
    #[must_use]
    pub fn new(name: impl Into<String>, command: EndpointCommand) -> Self {
        let name = name.into();
        Self {
            prefix: format!("{name}__"),
            name,
            command,
            timeout: None,
            list_timeout: Duration::from_secs(20),
            refresh_interval: Duration::from_secs(300),
            include: None,
            exclude: Vec::new(),
            max_reply_bytes: 16 << 20,
            definitions: DefinitionPolicy::default(),
            list_limits: ListLimits::default(),
            key_place: None,
            depth: 0,
        }
    }

    /// Returns `true` if a tool with this name at the endpoint is offered.
    pub(crate) fn offers(&self, upstream_name: &str) -> bool {
        let matches = |pattern: &Pattern| pattern.matches(upstream_name);
        let is_included = self
            .include
            .as_ref()
            .is_none_or(|include| include.iter().any(matches));
        is_included && !self.exclude.iter().any(matches)
    }

    /// Returns the name under which agents see a tool with this name at the endpoint.
    pub(crate) fn outward_name(&self, upstream_name: &str) -> String {
        outward_name(&format!("{}{upstream_name}", self.prefix))
    }

    /// Returns `true` if too many endpoints have started one another.
    pub(crate) fn is_too_deep(&self) -> bool {
        self.depth >= MAX_DEPTH
    }
}

impl EndpointCommand {
    /// Creates the command of a program without arguments, in the base environment.
    #[must_use]
    pub fn new(program: Template) -> Self {
        Self {
            program,
            args: Vec::new(),
            env: BTreeMap::new(),
            inherit: Vec::new(),
            cwd: None,
        }
    }

    /// Appends arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = Template>) -> Self {
        self.args.extend(args);
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: Template) -> Self {
        self.env.insert(name.into(), value);
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, directory: Template) -> Self {
        self.cwd = Some(directory);
        self
    }

    /// Returns the SHA-256 of the command as it is written: references without their values.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        let mut add = |text: &str| {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        };
        add(&written(&self.program));
        add(&self.args.len().to_string());
        self.args.iter().for_each(|arg| add(&written(arg)));
        for (name, value) in &self.env {
            add(name);
            add(&written(value));
        }
        self.inherit.iter().for_each(|name| add(name));
        add(&self.cwd.as_ref().map(written).unwrap_or_default());
        digest.finalize().into()
    }

    /// Resolves every reference, and returns the command.
    pub(crate) async fn resolve(&self, secrets: &dyn Secrets) -> Result<Command, SecretError> {
        let mut command = Command::new(self.program.resolve(secrets).await?.expose());
        for arg in &self.args {
            command = command.args([arg.resolve(secrets).await?.expose()]);
        }
        for name in self.inherit.iter().filter(|name| !self.env.contains_key(*name)) {
            let reference = Reference::new(Provider::Environment, name.clone());
            match secrets.get(&reference).await {
                Ok(Some(value)) => command = command.env(name, value.expose()),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "an environment variable is not inherited"),
            }
        }
        for (name, value) in &self.env {
            let value = value.resolve(secrets).await?;
            secrets.learn_written(name, value.expose());
            command = command.env(name, value.expose());
        }
        if let Some(cwd) = &self.cwd {
            command = command.current_dir(cwd.resolve(secrets).await?.expose());
        }
        Ok(command)
    }

    /// Returns `true` if a part of the command has references, whose values may change.
    pub(crate) fn has_references(&self) -> bool {
        let texts = [&self.program].into_iter().chain(&self.args);
        let mut texts = texts.chain(self.env.values()).chain(&self.cwd);
        texts.any(|text| text.references().next().is_some()) || !self.inherit.is_empty()
    }
}

/// Returns a text as it is written.
fn written(template: &Template) -> String {
    let parts = template.parts();
    parts
        .map(|part| part.map_or_else(ToString::to_string, str::to_owned))
        .collect()
}
