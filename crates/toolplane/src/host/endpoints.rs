//! Command endpoints.

use std::sync::Arc;

use tool_core::{Descriptor, Secrets, Source};
use tool_exec_endpoint::{
    CommandEndpoint, EndpointCommand, EndpointExecutor, EndpointKeyPlace, EndpointSettings,
};
use tool_manifest::{Configuration, EndpointSpec};
use tool_runtime::IdempotencyKeyPlace;

/// Endpoint and the one source that represents it.
#[derive(Clone)]
pub(crate) struct LiveEndpoint {
    pub(crate) endpoint: Arc<CommandEndpoint>,
    pub(crate) source: Arc<dyn Source>,
}

/// Creates the endpoints of a configuration. Those of `before` with equal settings are reused, with their lists.
pub(crate) fn endpoints(
    configuration: &Configuration,
    secrets: &Arc<dyn Secrets>,
    before: &[LiveEndpoint],
) -> Vec<LiveEndpoint> {
    let specs = configuration.endpoints.iter().filter(|spec| !spec.disabled);
    let live = specs.map(|spec| {
        let settings = settings(spec, configuration);
        let mut known = before.iter();
        let known = known.find(|known| *known.endpoint.settings() == settings);
        known.cloned().unwrap_or_else(|| {
            let endpoint = CommandEndpoint::new(settings, secrets.clone());
            let source = endpoint.source();
            LiveEndpoint { endpoint, source }
        })
    });
    live.collect()
}

fn settings(spec: &EndpointSpec, configuration: &Configuration) -> EndpointSettings {
    let defaults = &configuration.defaults;
    let mut command = EndpointCommand::new(spec.command.clone()).args(spec.args.iter().cloned());
    command.env.clone_from(&spec.env);
    command.cwd.clone_from(&spec.cwd);
    let inherit = spec.inherit_env.as_ref().or(defaults.inherit_env.as_ref());
    command.inherit = inherit.cloned().unwrap_or_default();
    let mut settings = EndpointSettings::new(spec.name.as_str(), command);
    // A limit of the whole call has precedence over one of an attempt.
    let call_timeout = spec.overrides.call_timeout.unwrap_or(std::time::Duration::MAX);
    settings.timeout = spec.timeout.map(|timeout| timeout.min(call_timeout));
    settings.list_timeout = spec.list_timeout.unwrap_or(defaults.start_timeout);
    settings.refresh_interval = spec.refresh_interval.unwrap_or(defaults.refresh_interval);
    settings.include.clone_from(&spec.include);
    settings.exclude.clone_from(&spec.exclude);
    settings.prefix = spec.prefix();
    settings.max_reply_bytes = defaults.max_result_bytes;
    settings.definitions = spec.definitions.unwrap_or(configuration.policy.definitions);
    settings.list_limits = spec.list_limits.or(defaults.list_limits);
    settings.key_place = spec.overrides.get().cloned().map(|place| match place {
        IdempotencyKeyPlace::Meta(key) => EndpointKeyPlace::Meta(key),
        IdempotencyKeyPlace::Argument(name) => EndpointKeyPlace::Argument(name),
    });
    settings.depth = depth();
    settings
}

/// Returns the number of endpoints that this process runs below.
fn depth() -> u32 {
    let variables = tool_manifest::process_variables().into_iter();
    let mut depth = variables.filter(|(name, _)| name == EndpointSettings::DEPTH_VARIABLE);
    let depth = depth.find_map(|(_, value)| value.to_str()?.parse().ok());
    depth.unwrap_or_default()
}

/// Returns what a command endpoint says about its tool beyond the definition: its members `command`, `origin` and `safety`, as
/// far as it has them. Tools of other kinds have none.
#[must_use]
pub fn endpoint_facts(tool: &Descriptor) -> Vec<(&'static str, String)> {
    EndpointExecutor::facts(tool)
}
