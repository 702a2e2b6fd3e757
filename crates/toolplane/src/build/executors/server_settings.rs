//! Settings of a server, from its description in a configuration.

use tool_manifest::{Configuration, ServerTransport};

fn server_target(
    spec: &tool_manifest::ServerSpec,
    defaults: &tool_manifest::Defaults,
) -> tool_exec_mcp::ServerTarget {
    use tool_exec_mcp::{HttpTarget, HttpTransport, NETWORK_VARIABLES, ServerTarget, StdioTarget};

    let sandbox = spec.sandbox.as_ref().map(server_sandbox);
    // A sandbox has a proxy of its own.
    let usual = match &sandbox {
        Some(sandbox) if sandbox.is_enforced() => &[],
        _ => NETWORK_VARIABLES,
    };
    match spec.transport.clone() {
        ServerTransport::Stdio {
            command,
            args,
            env,
            inherit_env,
            cwd,
            env_file,
        } => {
            let mut target = StdioTarget::new(command).args(args);
            target.inherit = inherit_env
                .or_else(|| defaults.inherit_env.clone())
                .unwrap_or_else(|| usual.iter().copied().map(str::to_owned).collect());
            (target.env, target.cwd, target.sandbox) = (env, cwd, sandbox.map(Box::new));
            target.env_file = env_file;
            target.into()
        }
        ServerTransport::Http {
            url,
            headers,
            transport,
        } => {
            let mut target = HttpTarget::new(url).transport(match transport {
                tool_manifest::HttpTransportSpec::Either => HttpTransport::Either,
                tool_manifest::HttpTransportSpec::Streamable => HttpTransport::Streamable,
                tool_manifest::HttpTransportSpec::Sse => HttpTransport::Sse,
                tool_manifest::HttpTransportSpec::WebSocket => HttpTransport::WebSocket,
            });
            target.headers = headers;
            target.into()
        }
        ServerTransport::Refused { reason } => ServerTarget::Refused(reason),
    }
}

fn server_sandbox(spec: &tool_manifest::SandboxSpec) -> tool_exec_mcp::ServerSandbox {
    use tool_exec_mcp::{ServerSandbox, ServerSandboxLevel};
    use tool_settings::SandboxChoice;

    let mut sandbox = ServerSandbox::default();
    sandbox.level = match spec.level {
        SandboxChoice::Bwrap => ServerSandboxLevel::Bwrap,
        SandboxChoice::Landlock => ServerSandboxLevel::Landlock,
        SandboxChoice::None => ServerSandboxLevel::Unsandboxed,
        _ => ServerSandboxLevel::Strongest,
    };
    sandbox.reads.clone_from(&spec.reads);
    sandbox.writes.clone_from(&spec.writes);
    sandbox.network = spec.network.hosts().to_vec();
    sandbox.cpu_time = spec.cpu_time;
    sandbox.memory = spec.memory;
    sandbox.processes = spec.processes;
    sandbox.open_files = spec.open_files;
    sandbox.disk = spec.disk;
    sandbox
}

pub(super) fn server_settings(
    spec: &tool_manifest::ServerSpec,
    configuration: &Configuration,
) -> tool_exec_mcp::ServerSettings {
    use tool_exec_mcp::{EraChoice, Isolation, KeyPlace, ServerSettings};
    use tool_manifest::EraSpec;
    use tool_runtime::IdempotencyKeyPlace;

    let defaults = &configuration.defaults;
    let target = server_target(spec, defaults);
    let mut settings = ServerSettings::new(spec.name.as_str(), target);
    // A limit of the whole call has precedence over one of an attempt.
    let call_timeout = spec.overrides.call_timeout.unwrap_or(std::time::Duration::MAX);
    settings.timeout = spec.timeout.map(|timeout| timeout.min(call_timeout));
    settings.start_timeout = spec.start_timeout.unwrap_or(defaults.start_timeout);
    settings.refresh_interval = spec.refresh_interval.unwrap_or(defaults.refresh_interval);
    let is_lazy = spec.start.unwrap_or(defaults.start) == tool_manifest::StartMode::Lazy && !spec.required;
    let is_program = matches!(spec.transport, ServerTransport::Stdio { .. });
    let idle_timeout = spec.idle_timeout.or(defaults.idle_timeout);
    settings.is_lazy = is_lazy;
    settings.idle_timeout = idle_timeout.filter(|limit| !limit.is_zero() && is_lazy && is_program);
    settings.keep_lists = spec.keep_lists.unwrap_or(defaults.keep_lists);
    settings.include = spec.include.clone();
    settings.exclude = spec.exclude.clone();
    settings.rename = spec.rename.clone();
    settings.prefix = spec.prefix();
    settings.max_message = defaults.max_result_bytes;
    settings.era = match spec.era {
        EraSpec::Auto => EraChoice::Auto,
        EraSpec::Legacy => EraChoice::Legacy,
        EraSpec::Modern => EraChoice::Modern,
        EraSpec::Newest => EraChoice::Newest,
    };
    settings.isolation = match spec.isolation {
        tool_manifest::IsolationSpec::Auto => Isolation::Auto,
        tool_manifest::IsolationSpec::Shared => Isolation::Shared,
        tool_manifest::IsolationSpec::Session => Isolation::Session,
        tool_manifest::IsolationSpec::Principal => Isolation::Principal,
    };
    set_health(&mut settings, &spec.health);
    settings.key_place = spec.overrides.get().cloned().map(|place| match place {
        IdempotencyKeyPlace::Meta(key) => KeyPlace::Meta(key),
        IdempotencyKeyPlace::Argument(name) => KeyPlace::Argument(name),
    });
    settings.definitions = spec.definitions.unwrap_or(configuration.policy.definitions);
    settings.list_limits = spec.list_limits.or(defaults.list_limits);
    settings.instructions = spec.instructions.clone();
    settings.max_connections = spec.max_connections.unwrap_or(settings.max_connections);
    settings
}

fn set_health(settings: &mut tool_exec_mcp::ServerSettings, spec: &tool_manifest::ServerHealthSpec) {
    settings.check_interval = spec.interval;
    settings.check_at_start = spec.at_start;
    if let Some(tool) = spec.tool.clone() {
        settings.health_check = tool_exec_mcp::HealthCheck::tool(tool.name, tool.arguments);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tool_manifest::{LoadOptions, Syntax};

    use super::*;

    /// Tests that the limit of an attempt raises the limit of a call which the operator did not set.
    #[test]
    fn what_is_said_of_a_call_goes_before_what_is_said_of_an_attempt() {
        for (said, expected) in [
            ("timeout_ms: 5000", Some(5)),
            ("timeout_ms: 5000, call_timeout: 1s", Some(1)),
            ("timeout_ms: 5000, call_timeout: 9s", Some(5)),
            ("call_timeout: 1s", None),
        ] {
            let text = format!("servers: {{web: {{url: \"http://127.0.0.1:9/mcp\", {said}}}}}");
            let options = LoadOptions::new().text("configuration", Syntax::Yaml, text);
            let configuration = crate::manifest::load(&options).expect("usable").configuration;
            let settings = server_settings(&configuration.servers[0], &configuration);
            assert_eq!(settings.timeout, expected.map(Duration::from_secs), "{said}");
        }
    }

    #[test]
    fn variables_that_are_handed_down() {
        let inherited = |text: &str| {
            let options = LoadOptions::new().text("configuration", Syntax::Yaml, text);
            let configuration = crate::manifest::load(&options).expect("usable").configuration;
            match server_settings(&configuration.servers[0], &configuration).target {
                tool_exec_mcp::ServerTarget::Stdio(target) => target.inherit,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            inherited("servers: {a: {command: x}}"),
            tool_exec_mcp::NETWORK_VARIABLES
        );
        for (text, expected) in [
            ("servers: {a: {command: x, inherit_env: []}}", &[][..]),
            ("servers: {a: {command: x, inherit_env: [A]}}", &["A"]),
            ("defaults: {inherit_env: []}\nservers: {a: {command: x}}", &[]),
            ("servers: {a: {command: x, sandbox: auto}}", &[]),
            (
                "servers: {a: {command: x, sandbox: auto, inherit_env: [A]}}",
                &["A"],
            ),
            (
                "servers: {a: {command: x, sandbox: none}}",
                tool_exec_mcp::NETWORK_VARIABLES,
            ),
            (
                "defaults: {inherit_env: [A]}\nservers: {a: {command: x, inherit_env: [B]}}",
                &["B"],
            ),
        ] {
            assert_eq!(inherited(text), expected, "{text}");
        }
    }
}
