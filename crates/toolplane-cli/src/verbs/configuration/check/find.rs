//! Checks of a configuration whose files were read.

use raw_json::RawJson;
use tool_schema::Schema;
use toolplane::{
    IdleRule, Toolplane,
    core::PiiHandling,
    flow::WorkflowProblem,
    manifest::{AuthenticationSpec, ConfigPart, Diagnostic, EndpointSpec, Loaded, ServerSpec},
    policy::ArgumentSettings,
};

use crate::{lock, output::text};

/// Reports tools that are not offered: invalid executor settings, or names that two tools have.
pub(super) fn refused(loaded: &Loaded, plane: &Toolplane, problems: &mut Vec<Diagnostic>) {
    for refused in plane.refused() {
        let is_server = |server: &ServerSpec| server.name == refused.source;
        let is_endpoint = |endpoint: &EndpointSpec| endpoint.name == refused.source;
        let configuration = &loaded.configuration;
        if configuration.servers.iter().any(is_server) || configuration.endpoints.iter().any(is_endpoint) {
            // Known from the last run of the server; the rest of the configuration can be used.
            let (kind, name, source) = (refused.feature.as_str(), &refused.name, &refused.source);
            let message = format!(
                "the {kind} `{name}` of `{source}` is not offered: {}",
                refused.reason
            );
            let place = loaded.locate_server(source, "");
            problems.push(Diagnostic::warning(text::line(&message)).with_location(place));
            continue;
        }
        if refused.problems.is_empty() {
            let place = loaded.locate(&refused.name, ConfigPart::Tool, "");
            let message = format!("the tool `{}` is not usable: {}", refused.name, refused.reason);
            problems.push(Diagnostic::error(message).with_location(place));
        }
        let found = refused
            .problems
            .iter()
            .map(|problem| loaded.diagnose(&refused.name, problem));
        problems.extend(found);
    }
}

/// Reports what does not fit between workflows and the tools that they call.
pub(super) fn workflows(loaded: &Loaded, plane: &Toolplane, problems: &mut Vec<Diagnostic>) {
    let found = plane.workflow_problems();
    problems.extend(
        found
            .iter()
            .map(|(workflow, found)| diagnostic(loaded, workflow, found)),
    );
}

/// Reports what routes name and nothing has.
pub(super) fn routes(loaded: &Loaded, plane: &Toolplane, problems: &mut Vec<Diagnostic>) {
    let found = plane.route_problems();
    problems.extend(found.iter().map(|(route, found)| loaded.warning(route, found)));
}

/// Returns a problem of a workflow with its place.
pub(in crate::verbs) fn diagnostic(loaded: &Loaded, workflow: &str, found: &WorkflowProblem) -> Diagnostic {
    if found.is_warning {
        loaded.warning(workflow, &found.problem)
    } else {
        loaded.diagnose(workflow, &found.problem)
    }
}

/// Reports settings of tools that have no effect. A setting that promises a protection is an error.
pub(super) fn settings_without_effect(loaded: &Loaded, problems: &mut Vec<Diagnostic>) {
    for tool in &loaded.configuration.tools {
        let metadata = &tool.metadata;
        let place = |keys: [&str; 2]| {
            let whole = loaded.locate(&tool.name, ConfigPart::Tool, "")?;
            let places = keys.map(|key| loaded.locate(&tool.name, ConfigPart::Tool, &format!("/{key}")));
            places
                .into_iter()
                .flatten()
                .find(|place| *place != whole)
                .or(Some(whole))
        };
        if matches!(
            metadata.pii_handling,
            Some(PiiHandling::Anonymize | PiiHandling::Encrypt)
        ) {
            let message = "`pii_handling` has no effect: personal data in arguments would pass unchanged";
            let hint = "remove it or write `none`; `redact` hides fields in results and logs";
            let place = place(["pii_handling", "piiHandling"]);
            problems.push(Diagnostic::error(message).with_hint(hint).with_location(place));
        }
        if metadata.data_classification.is_some() {
            let message = "`data_classification` has no effect: it is only shown to operators";
            let place = place(["data_classification", "dataClassification"]);
            problems.push(Diagnostic::warning(message).with_location(place));
        }
    }
}

/// Reports rules that match no known name.
pub(super) fn idle_rules(loaded: &Loaded, plane: &Toolplane, problems: &mut Vec<Diagnostic>) {
    for rule in plane.idle_rules() {
        let place = match &rule.server {
            None => loaded.locate_rule(rule.setting, &rule.pattern),
            Some(name) => {
                let servers = &loaded.configuration.servers;
                let pointer = servers
                    .iter()
                    .find(|server| server.name == *name)
                    .and_then(|server| pointer_of(server, &rule))
                    .unwrap_or_default();
                loaded.locate_server(name, &pointer)
            }
        };
        let problem = Diagnostic::warning(rule.to_string()).with_location(place);
        problems.push(match &rule.suggestion {
            Some(suggestion) => problem.with_hint(format!("did you mean `{suggestion}`?")),
            None => problem.with_hint("`toolplane tools ls` lists the names"),
        });
    }
}

/// Reports principals of the policy that no client can authenticate as, and undefined roles of tokens.
pub(super) async fn principals(loaded: &Loaded, plane: &Toolplane, problems: &mut Vec<Diagnostic>) {
    let has_tokens = loaded.configuration.gateway.auth == AuthenticationSpec::Tokens;
    let (idle, undefined) = match (plane.idle_principals().await, plane.undefined_roles().await) {
        (Ok(idle), Ok(undefined)) => (idle, undefined),
        (Err(error), _) | (_, Err(error)) => {
            let message = format!("nobody can authenticate: {error}");
            problems.push(Diagnostic::error(text::line(&message)));
            return;
        }
    };
    for rule in idle {
        let hint = match &rule.suggestion {
            Some(suggestion) => format!("did you mean `{suggestion}`?"),
            None if has_tokens => format!(
                "`toolplane tokens create {}` makes a token",
                text::line(&rule.pattern)
            ),
            None => "set `gateway.auth: tokens`, so that clients authenticate".to_owned(),
        };
        let place = loaded.locate_rule(rule.setting, &rule.pattern);
        problems.push(
            Diagnostic::warning(rule.to_string())
                .with_hint(hint)
                .with_location(place),
        );
    }
    for role in undefined {
        let hint = match &role.suggestion {
            Some(suggestion) => format!("did you mean `{suggestion}`?"),
            None => "define it under `policy.roles`, or revoke the token".to_owned(),
        };
        problems.push(Diagnostic::warning(text::line(&role.to_string())).with_hint(hint));
    }
}

/// Returns the JSON Pointer to a rule in the settings of its server.
fn pointer_of(server: &ServerSpec, rule: &IdleRule) -> Option<String> {
    let patterns = match rule.setting {
        "include" => server.include.as_deref()?,
        "exclude" => &server.exclude,
        setting => return Some(format!("/{setting}/{}", escaped(&rule.pattern))),
    };
    let index = patterns
        .iter()
        .position(|pattern| pattern.as_str() == rule.pattern)?;
    Some(format!("/{}/{index}", rule.setting))
}

/// Escapes a key for a JSON Pointer (RFC 6901, section 3).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Reports schemas that do not compile. At run time the first call would report them.
pub(super) fn schemas(loaded: &Loaded, problems: &mut Vec<Diagnostic>) {
    for tool in &loaded.configuration.tools {
        let mut check = |schema: &RawJson, part: ConfigPart, name: &str| match Schema::compile(schema) {
            Ok(schema) => problems.extend(schema.warnings().iter().map(|warning| {
                let place = loaded.locate(&tool.name, part, "");
                Diagnostic::warning(format!("the {name} of `{}`: {warning}", tool.name)).with_location(place)
            })),
            Err(error) => {
                let place = loaded.locate(&tool.name, part, error.pointer());
                let message = format!("the {name} of `{}` is not usable: {}", tool.name, error.reason());
                problems.push(Diagnostic::error(message).with_location(place));
            }
        };
        check(&tool.input_schema, ConfigPart::InputSchema, "input schema");
        if let Some(schema) = &tool.output_schema {
            check(schema, ConfigPart::OutputSchema, "output schema");
        }
        let input = Schema::compile(&tool.input_schema);
        for default in input.iter().flat_map(Schema::unusable_defaults) {
            let place = loaded.locate(&tool.name, ConfigPart::InputSchema, &default.pointer);
            let message = format!("the input schema of `{}`: {default}", tool.name);
            problems.push(Diagnostic::warning(message).with_location(place));
        }
    }
}

/// Reports unusable defaults in the schemas of servers, for tools whose defaults are filled in.
pub(super) fn defaults_of_servers(loaded: &Loaded, plane: &Toolplane, problems: &mut Vec<Diagnostic>) {
    for tool in plane.cached_view(&plane.local_caller()).tools() {
        let server = tool.descriptor().executor.config.get("server");
        let (Some(server), true) = (
            server.and_then(|name| name.as_str()),
            tool.settings()
                .get()
                .is_some_and(ArgumentSettings::fills_defaults),
        ) else {
            continue;
        };
        // Tools of the configuration are reported with their lines.
        if loaded
            .configuration
            .tools
            .iter()
            .any(|own| own.name == *tool.name())
        {
            continue;
        }
        let input = Schema::compile(&tool.descriptor().input_schema);
        for default in input.iter().flat_map(Schema::unusable_defaults) {
            let message = format!("the input schema of `{}`: {default}", tool.name());
            let place = loaded.locate_server(server, "");
            problems.push(Diagnostic::warning(text::line(&message)).with_location(place));
        }
    }
}

/// Reports references without a value. Executors check those of their settings.
pub(super) fn references(loaded: &Loaded, problems: &mut Vec<Diagnostic>) {
    problems.extend(loaded.check_references(&loaded.secrets()));
}

/// Reports a lock file that cannot be used, and its sources that are not in the configuration.
pub(super) fn lock_file(loaded: &Loaded, problems: &mut Vec<Diagnostic>) {
    let path = lock::path(loaded);
    let file = path.display();
    let known = match lock::read(loaded) {
        Ok(Some(known)) => known,
        Ok(None) => return,
        Err(failure) => {
            problems.push(Diagnostic::error(failure.message).with_hint(failure.hint.unwrap_or_default()));
            return;
        }
    };
    for source in known.sources().filter(|source| known.server(source).is_some()) {
        let mut servers = loaded.configuration.servers.iter();
        let mut endpoints = loaded.configuration.endpoints.iter();
        if !servers.any(|server| *server.name == **source)
            && !endpoints.any(|endpoint| *endpoint.name == **source)
        {
            let message =
                format!("`{file}` has definitions of the server `{source}`, which is not configured");
            let hint = format!("`toolplane lock --update {source}` removes them");
            problems.push(Diagnostic::warning(message).with_hint(hint));
        }
    }
}
