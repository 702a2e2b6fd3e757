//! Features of this build, and what a configuration needs of them.

use tool_core::Descriptor;
use tool_manifest::{
    Configuration, EmbeddingsSpec, HttpTransportSpec, SandboxSpec, ServerSpec, ServerTransport,
};

use crate::{BuildError, host::extensions::HostExtensions};

/// Returns the kinds of executors that this build lacks, each with its feature.
pub(crate) fn missing_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let kinds = [
        ("mock", "exec-mock", cfg!(feature = "exec-mock")),
        ("http", "exec-http", cfg!(feature = "exec-http")),
        ("mcp", "exec-mcp", cfg!(feature = "exec-mcp")),
        ("bash", "exec-script", cfg!(feature = "exec-script")),
        ("python", "exec-script", cfg!(feature = "exec-script")),
        ("docker", "exec-container", cfg!(feature = "exec-container")),
        ("endpoint", "exec-endpoint", cfg!(feature = "exec-endpoint")),
        ("workflow", "workflows", cfg!(feature = "workflows")),
        ("route", "routes", cfg!(feature = "routes")),
    ];
    kinds
        .into_iter()
        .filter(|(_, _, is_there)| !is_there)
        .map(|(kind, feature, _)| (kind, feature))
}

/// Checks that the build has everything that the configuration needs.
///
/// # Errors
/// [`BuildError::LeftOut`] for servers, transports, sandboxes, tools and health check endpoints without their feature. A kind that an
/// executor of the host program has is not missing.
pub(crate) fn check(configuration: &Configuration, own: &HostExtensions) -> Result<(), BuildError> {
    let servers = || configuration.servers.iter().filter(|server| !server.disabled);
    let server = |server: &ServerSpec| format!("the server `{}`", server.name);
    let tool = |tool: &Descriptor| format!("the tool `{}`", tool.name);
    let tools = || configuration.tools.iter().chain(&own.tools).map(|tool| &**tool);
    BuildError::of_feature("exec-mcp", cfg!(feature = "exec-mcp"), servers().map(server))?;
    let endpoints = configuration
        .endpoints
        .iter()
        .filter(|endpoint| !endpoint.disabled);
    let endpoints = endpoints.map(|endpoint| format!("the endpoint `{}`", endpoint.name));
    BuildError::of_feature("exec-endpoint", cfg!(feature = "exec-endpoint"), endpoints)?;
    let by_websocket = servers().filter(|server| is_websocket(server)).map(server);
    BuildError::of_feature("websocket", cfg!(feature = "websocket"), by_websocket)?;
    let in_sandbox = servers().filter(|server| server.sandbox.as_ref().is_some_and(SandboxSpec::is_enforced));
    BuildError::of_feature("sandbox", cfg!(feature = "sandbox"), in_sandbox.map(server))?;
    for (kind, feature) in missing_kinds().filter(|(kind, _)| !own.has_executor(kind)) {
        let of_kind = tools().filter(|tool| tool.executor.kind == kind);
        BuildError::of_feature(feature, false, of_kind.map(tool))?;
    }
    let is_checked = |tool: &&Descriptor| {
        tool.metadata.health_check_endpoint.is_some() && tool.origin.declarations_count()
    };
    let checked = tools().filter(is_checked);
    let endpoints = checked.map(|tool| format!("the health check endpoint of `{}`", tool.name));
    BuildError::of_feature("outbound", cfg!(feature = "outbound"), endpoints)?;
    let (feature, is_there) = match &configuration.search.embeddings {
        Some(EmbeddingsSpec::Service { .. }) => ("outbound", cfg!(feature = "outbound")),
        Some(EmbeddingsSpec::Directory(_)) => ("embed-local", cfg!(feature = "embed-local")),
        _ => return Ok(()),
    };
    let needed_by = std::iter::once("`search.embeddings`".to_owned());
    BuildError::of_feature(feature, is_there, needed_by)
}

fn is_websocket(server: &ServerSpec) -> bool {
    matches!(
        server.transport,
        ServerTransport::Http {
            transport: HttpTransportSpec::WebSocket,
            ..
        }
    )
}

#[cfg(all(test, feature = "exec-mcp"))]
mod tests {
    use tool_manifest::{LoadOptions, Syntax};

    use super::*;

    #[test]
    fn a_sandbox_that_was_left_out_is_refused() {
        for (sandbox, needs) in [("auto", true), ("{level: bwrap}", true), ("none", false)] {
            let text = format!("servers: {{a: {{command: x, sandbox: {sandbox}}}}}");
            let options = LoadOptions::new().text("configuration", Syntax::Yaml, text);
            let configuration = crate::manifest::load(&options).expect("usable").configuration;
            let checked = check(&configuration, &HostExtensions::default());
            assert_eq!(checked.is_ok(), !needs || cfg!(feature = "sandbox"), "{sandbox}");
        }
    }

    #[test]
    fn a_transport_that_was_left_out_is_refused() {
        for (text, needs) in [
            ("servers: {a: {url: 'ws://127.0.0.1:9/'}}", true),
            ("servers: {a: {url: 'ws://127.0.0.1:9/', disabled: true}}", false),
            ("servers: {a: {url: 'http://127.0.0.1:9/'}}", false),
        ] {
            let options = LoadOptions::new().text("configuration", Syntax::Yaml, text);
            let configuration = crate::manifest::load(&options).expect("usable").configuration;
            let checked = check(&configuration, &HostExtensions::default());
            assert_eq!(checked.is_ok(), !needs || cfg!(feature = "websocket"), "{text}");
            if let Err(error) = checked {
                let text = error.to_string();
                assert!(
                    text.contains("`websocket`") && text.contains("the server `a`"),
                    "{text}"
                );
            }
        }
    }
}
