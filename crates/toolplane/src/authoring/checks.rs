//! Checks of a draft before it is stored: every problem at once, each with the change that mends it.

use std::{collections::BTreeMap, sync::Arc};

use raw_json::{JsonKind, RawJson};
use serde_json::Value;
use tool_core::{Caller, Descriptor, Origin, SecretUse, Target, Template, Tool};
use tool_manifest::{AuthoringSpec, GatewayMode};
use tool_policy::{Denial, Rules};
use tool_registry::{PublishError, PublishOptions, Publisher, ToolRecord};
use tool_scan::{has_mixed_scripts, name_skeleton};
use tool_schema::{Schema, verify};

use super::{
    Authoring, AuthoringError, DraftProblem,
    draft::{ReadDraft, of_publication},
};
use crate::StoredManifests;

/// Maximum size of a description, in bytes.
const MAX_DESCRIPTION: usize = 4 << 10;
/// Maximum depth of a schema.
const MAX_SCHEMA_DEPTH: usize = 32;
/// Maximum number of properties of a schema, at all depths.
const MAX_PROPERTIES: usize = 200;
/// Maximum number of examples that are calls.
const MAX_EXAMPLES: usize = 20;

/// Number of tools among which a search must find a tool.
const TOP: usize = 5;
/// Maximum number of sentences of a tool that are searched for.
const MAX_SEARCHED: usize = 20;

/// Result of the checks of a draft that may be stored.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) warnings: Vec<String>,
}

/// Checks a draft.
pub(super) async fn check(
    authoring: &Authoring,
    caller: &Caller,
    draft: &ReadDraft,
    record: Option<&ToolRecord>,
) -> Result<Checked, AuthoringError> {
    let mut problems = Vec::new();
    let mut checked = Checked::default();
    let descriptor = with_files(draft);
    check_name(authoring, &descriptor, record, &mut problems, &mut checked);
    check_texts(&descriptor, &mut problems);
    check_schemas(&descriptor, &mut problems);
    check_examples(&descriptor, &mut problems);
    check_credentials(&descriptor, &mut problems);
    check_permissions(caller, &descriptor, &mut problems);
    check_executor(authoring, caller, draft, &descriptor, &mut problems).await?;
    if problems.is_empty() {
        check_version(authoring, draft, &mut problems).await?;
        checked
            .warnings
            .extend(searches(authoring, caller, &descriptor).await);
    }
    match problems.is_empty() {
        true => Ok(checked),
        false => {
            for problem in &mut problems {
                problem.path = draft.locate(&problem.path);
            }
            Err(AuthoringError::Invalid(problems))
        }
    }
}

/// Returns the descriptor with the files of the draft and the trust of an agent.
fn with_files(draft: &ReadDraft) -> Descriptor {
    let mut descriptor = draft.descriptor.clone();
    let files = draft.new.files.iter();
    descriptor.files = files
        .map(|(path, file)| (path.clone(), file.content.clone()))
        .collect();
    descriptor.origin = Origin::agent("the draft", false);
    descriptor
}

/// Names: nobody else's, and not to be taken for another one.
fn check_name(
    authoring: &Authoring,
    descriptor: &Descriptor,
    record: Option<&ToolRecord>,
    problems: &mut Vec<DraftProblem>,
    checked: &mut Checked,
) {
    let name = &*descriptor.name;
    let mut problem = |message: String| {
        problems.push(DraftProblem::new("name", "name", message, "choose another name"));
    };
    let reserved = [
        GatewayMode::META_TOOLS,
        AuthoringSpec::META_TOOLS,
        &[AuthoringSpec::EXECUTE],
    ];
    if reserved.concat().contains(&name) {
        problem(format!("`{name}` is the name of a meta-tool"));
    }
    if has_mixed_scripts(name) {
        problem("its letters are of several scripts".to_owned());
    }
    let registry = &authoring.plane.0.registry;
    if let Some((owner, prefix)) = registry.namespace_of(name) {
        problem(format!("names that begin with `{prefix}` belong to `{owner}`"));
    }
    let snapshot = registry.snapshot();
    let is_new = record.is_none_or(|record| record.latest.is_none());
    if is_new && snapshot.get(name).is_some() {
        problem(format!("`{name}` is the name of another tool"));
    }
    let skeleton = name_skeleton(name);
    let others = snapshot.tools().iter().filter(|tool| **tool.name() != *name);
    for other in others.map(|tool| &**tool.name()) {
        if name_skeleton(other) == skeleton {
            problem(format!("it looks like the name of `{other}`"));
            break;
        }
        let is_near = other.len().abs_diff(name.len()) <= 1 && strsim::damerau_levenshtein(other, name) == 1;
        if is_new && is_near {
            checked
                .warnings
                .push(format!("its name differs from `{other}` in one letter only"));
        }
    }
}

/// Texts that a model reads: short, and without orders or hidden parts.
fn check_texts(descriptor: &Descriptor, problems: &mut Vec<DraftProblem>) {
    let n_bytes = descriptor.description.len();
    if n_bytes > MAX_DESCRIPTION {
        let message = format!("the description has {n_bytes} bytes");
        let fix = format!("at most {MAX_DESCRIPTION} are allowed");
        problems.push(DraftProblem::new("description", "size", message, fix));
    }
    if descriptor.description.trim().is_empty() {
        let fix = "say what the tool does and when to use it";
        problems.push(DraftProblem::new(
            "description",
            "description",
            "the description is empty",
            fix,
        ));
    }
    let text = |text: &str| RawJson::from(text);
    let words = |words: &[String]| RawJson::from(serde_json::json!(words));
    let metadata = &descriptor.metadata;
    let read = RawJson::from_members(&[
        ("title", text(descriptor.title.as_deref().unwrap_or_default())),
        ("description", text(&descriptor.description)),
        ("input_schema", descriptor.input_schema.clone()),
        (
            "output_schema",
            descriptor.output_schema.clone().unwrap_or_default(),
        ),
        ("examples", words(&metadata.examples)),
        ("aliases", words(&metadata.aliases)),
        ("tags", words(&metadata.tags)),
        ("capabilities", words(&metadata.capabilities)),
    ]);
    for finding in tool_scan::scan(&read) {
        let path = finding.place.trim_start_matches('/').replace('/', ".");
        let message = format!("the text {}: `{}`", finding.description, finding.excerpt);
        let fix =
            "describe the tool in plain words, without orders to the reader and without hidden characters";
        problems.push(DraftProblem::new(path, "text", message, fix));
    }
}

/// Schemas: usable, and within their budgets.
fn check_schemas(descriptor: &Descriptor, problems: &mut Vec<DraftProblem>) {
    let schemas = [
        ("input_schema", Some(&descriptor.input_schema)),
        ("output_schema", descriptor.output_schema.as_ref()),
    ];
    for (path, schema) in schemas {
        let Some(schema) = schema else { continue };
        let mut problem = |message: String, fix: &str| {
            problems.push(DraftProblem::new(path, "schema", message, fix));
        };
        let (depth, n_properties) = extent(schema);
        if depth > MAX_SCHEMA_DEPTH {
            problem(format!("it is {depth} levels deep"), "write at most 32 levels");
        }
        if n_properties > MAX_PROPERTIES {
            problem(
                format!("it has {n_properties} properties"),
                "write at most 200 properties",
            );
        }
        let verified = match path {
            "input_schema" => verify(schema).map_err(|error| error.to_string()),
            _ => Schema::compile(schema)
                .map(drop)
                .map_err(|error| error.to_string()),
        };
        if let Err(reason) = verified {
            problem(
                reason,
                "write a JSON Schema whose root has `type: object`, without references to other documents",
            );
        }
    }
    let schema = &descriptor.input_schema;
    let properties = schema.get("properties");
    let required = schema.get("required").unwrap_or_default();
    for name in required.items().filter_map(|name| name.string()) {
        let is_known = properties
            .as_ref()
            .is_some_and(|properties| properties.get(&name).is_some());
        let is_open = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"]
            .iter()
            .any(|key| schema.get(key).is_some());
        if !is_known && !is_open {
            let message = format!(
                "`{}` is required and not among the properties",
                name.escape_debug()
            );
            problems.push(DraftProblem::new(
                "input_schema.required",
                "schema",
                message,
                "add it to `properties`",
            ));
        }
    }
}

/// Returns the depth of a document and the number of properties of all schemas in it.
fn extent(json: &RawJson) -> (usize, usize) {
    match json.kind() {
        JsonKind::Object => json.parts().fold((1, 0), |(depth, n), (key, value)| {
            let value = value.to_raw();
            let own = match &*key {
                "properties" => value.members().count(),
                _ => 0,
            };
            let (below, n_below) = extent(&value);
            (depth.max(below + 1), n + own + n_below)
        }),
        JsonKind::Array => json.items().fold((1, 0), |(depth, n), item| {
            let (below, n_below) = extent(&item);
            (depth.max(below + 1), n + n_below)
        }),
        _ => (0, 0),
    }
}

/// Examples: calls that the schema accepts, unless they are to be refused.
fn check_examples(descriptor: &Descriptor, problems: &mut Vec<DraftProblem>) {
    let calls = &descriptor.metadata.example_calls;
    if calls.len() > MAX_EXAMPLES {
        let message = format!("{} examples are calls", calls.len());
        problems.push(DraftProblem::new(
            "examples",
            "examples",
            message,
            "write at most 20",
        ));
    }
    let Ok(schema) = Schema::compile(&descriptor.input_schema) else {
        return;
    };
    for call in calls {
        let expects_refusal = matches!(
            call.expected,
            tool_core::ExpectedResult::Error(tool_core::ErrorKind::InvalidArguments)
        );
        let arguments: Value = call.arguments.to().unwrap_or_default();
        if let Err(error) = schema.check(&arguments)
            && !expects_refusal
        {
            let message = format!("the call with {}: {error}", shown(&call.arguments));
            let fix = "write arguments that the schema accepts, or expect `error: invalid_arguments`";
            problems.push(DraftProblem::new("examples", "examples", message, fix));
        }
        if let tool_core::ExpectedResult::Shape(shape) = &call.expected
            && let Err(error) = Schema::compile(shape)
        {
            let message = format!("the shape of the call with {}: {error}", shown(&call.arguments));
            let fix = "write a JSON Schema";
            problems.push(DraftProblem::new("examples", "examples", message, fix));
        }
    }
}

/// Returns arguments for a message.
fn shown(arguments: &RawJson) -> String {
    const MAX_SHOWN: usize = 200;
    let text = arguments.as_str();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Credentials: none is written out, since everyone who may read the tool would have it.
fn check_credentials(descriptor: &Descriptor, problems: &mut Vec<DraftProblem>) {
    let fields = tool_core::written_credentials(&descriptor.executor.config).into_iter();
    let mut fields: Vec<_> = fields
        .map(|pointer| format!("executor{}", pointer.replace('/', ".")))
        .collect();
    if tool_core::hide_credentials(&descriptor.description) != descriptor.description {
        fields.push("description".to_owned());
    }
    for path in fields {
        let message = "a credential is written out";
        let fix = "write a reference such as `${API_KEY}`, which an operator grants to the tool";
        problems.push(DraftProblem::new(path, "credential", message, fix));
    }
}

/// Permissions: at most those of the author.
fn check_permissions(caller: &Caller, descriptor: &Descriptor, problems: &mut Vec<DraftProblem>) {
    for permission in &descriptor.metadata.required_permissions {
        if !caller.has_permission(permission) {
            let message = format!("you do not have the permission `{}`", permission.escape_debug());
            let fix = "make a tool that needs no more than you may do";
            problems.push(DraftProblem::new(
                "required_permissions",
                "permission",
                message,
                fix,
            ));
        }
    }
}

/// Executor: of an allowed kind, with usable settings, and with no more reach than agents may have.
async fn check_executor(
    authoring: &Authoring,
    caller: &Caller,
    draft: &ReadDraft,
    descriptor: &Descriptor,
    problems: &mut Vec<DraftProblem>,
) -> Result<(), AuthoringError> {
    let (spec, registry) = (&authoring.state.spec, &authoring.plane.0.registry);
    let kind = &descriptor.executor.kind;
    if !spec.allows_kind(kind) {
        let message = format!("agents cannot make tools of kind `{}` here", kind.escape_debug());
        let fix = format!("there are {}", spec.allowed_kinds().join(", "));
        problems.push(DraftProblem::new("executor.kind", "kind", message, fix));
        return Ok(());
    }
    // A draft may wait for an executor.
    let Some(reach) = registry.reach(descriptor) else {
        return Ok(());
    };
    for host in reach.hosts.iter().filter(|host| !spec.hosts.includes(host)) {
        let message = format!("tools of agents may not reach `{}`", host.escape_debug());
        let fix = match spec.hosts.hosts() {
            [] => "an operator allows hosts under `authoring.hosts`; none is allowed now".to_owned(),
            hosts => format!(
                "use one of {}; an operator allows others under `authoring.hosts`",
                hosts.join(", ")
            ),
        };
        problems.push(DraftProblem::new("executor", "host", message, fix));
    }
    if reach.is_any_host {
        let message = "the host is not written out: neither an argument nor a secret chooses it";
        let fix = "write the scheme and the host, such as `https://api.example.com/{path}`";
        problems.push(DraftProblem::new("executor", "host", message, fix));
    }
    let placeholder = without_secrets(descriptor, &reach.secrets);
    let is_proposed = match &draft.server {
        Some((server, _)) => super::servers::find(authoring, server)?.is_none(),
        None => false,
    };
    if !is_proposed && let Err(refused) = registry.check(&placeholder) {
        if refused.problems.is_empty() && refused.missing_kind.is_none() {
            problems.push(DraftProblem::new("", "tool", refused.reason, ""));
        }
        // Its packages are locked after all checks: that takes longest.
        let is_unlocked = super::draft::is_unlocked(descriptor);
        for problem in refused.problems {
            if is_unlocked && problem.pointer == "/requires" {
                continue;
            }
            let path = format!("executor{}", problem.pointer.replace('/', "."));
            let fix = problem.hint.unwrap_or_default();
            problems.push(DraftProblem::new(path, "executor", problem.message, fix));
        }
    }
    // A missing permission is reported already.
    if problems.iter().all(|problem| problem.rule != "permission") {
        check_wrapped(authoring, caller, &placeholder, problems);
    }
    #[cfg(feature = "workflows")]
    check_steps(authoring, caller, descriptor, problems).await;
    Ok(())
}

/// Steps of a workflow: there are such tools, its author may call them, and the arguments fit. A workflow is called with the
/// permissions of its callers, who may be led to call what its author may not.
#[cfg(feature = "workflows")]
async fn check_steps(
    authoring: &Authoring,
    caller: &Caller,
    descriptor: &Descriptor,
    problems: &mut Vec<DraftProblem>,
) {
    let rules = authoring.plane.0.rules.load();
    let is_visible = |tool: &Arc<Tool>| rules.admit_call(&Target::Tool(tool.clone()), caller).is_ok();
    if tool_flow::WorkflowExecutor::settings(descriptor).is_some() {
        // The lists of all servers, as far as they answer.
        authoring.plane.view(caller).await;
    }
    let found = authoring.plane.check_steps(descriptor, Some(&is_visible));
    for found in found.into_iter().filter(|found| !found.is_warning) {
        let path = format!("executor{}", found.problem.pointer.replace('/', "."));
        let fix = found.problem.hint.unwrap_or_default();
        problems.push(DraftProblem::new(path, "step", found.problem.message, fix));
    }
}

/// A tool of a server that is offered under another name: its author may call it.
fn check_wrapped(
    authoring: &Authoring,
    caller: &Caller,
    descriptor: &Descriptor,
    problems: &mut Vec<DraftProblem>,
) {
    let registry = &authoring.plane.0.registry;
    // What cannot be made yet is checked again before it is published.
    let Ok(tool) = registry.make_tool(&Arc::new(descriptor.clone())) else {
        return;
    };
    let rules = authoring.plane.0.rules.load();
    let admitted = admit_wrapped(&rules, &authoring.plane, &tool, caller);
    if let Err(denial) = admitted {
        let fix = "make a tool of what you may call yourself";
        problems.push(DraftProblem::new(
            "executor",
            "permission",
            denial.to_string(),
            fix,
        ));
    }
}

/// Checks that a caller may call a tool under each of its names, those of the tools that it wraps included.
fn admit_wrapped(
    rules: &Rules,
    plane: &crate::Toolplane,
    tool: &Arc<Tool>,
    caller: &Caller,
) -> Result<(), Denial> {
    rules.admit_call(&Target::Tool(tool.clone()), caller)?;
    let snapshot = plane.0.registry.snapshot();
    for name in &tool.provenance().names {
        if let Some(wrapped) = snapshot.get(name) {
            rules.admit_call(&Target::Tool(wrapped.clone()), caller)?;
        }
    }
    Ok(())
}

/// Returns a descriptor whose secrets are replaced by a text: the check of its settings tells nothing about their values, nor
/// whether there are any.
fn without_secrets(descriptor: &Descriptor, uses: &[SecretUse]) -> Descriptor {
    let mut plain = descriptor.clone();
    let config = &mut plain.executor.config;
    if let Some(list) = config.get_mut("headers_from_env") {
        *list = Value::Array(Vec::new());
    }
    for needed in uses {
        if let Some(Value::String(text)) = config.pointer_mut(&needed.field)
            && Template::parse(text).is_ok()
        {
            *text = replace_references(text);
        }
    }
    plain
}

/// Replaces each `${…}` by a word.
fn replace_references(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        // `$$` is a plain dollar sign.
        let is_escaped = rest[..start].ends_with('$') && !rest[..start].ends_with("$$");
        let end = rest[start..].find('}').map(|end| start + end + 1);
        let Some(end) = end.filter(|_| !is_escaped) else {
            out.push_str(&rest[..start + 2]);
            rest = &rest[start + 2..];
            continue;
        };
        out.push_str(&rest[..start]);
        out.push_str("granted");
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Version: its number allows its changes.
async fn check_version(
    authoring: &Authoring,
    draft: &ReadDraft,
    problems: &mut Vec<DraftProblem>,
) -> Result<(), AuthoringError> {
    let store = authoring.publisher.store().clone();
    // Without the check of whether it can run here, which a draft need not.
    let planner = Publisher::new(store, Arc::new(StoredManifests), authoring.plane.0.clock.clone());
    let options = PublishOptions::default().dry_run(true).by_agent(true);
    match planner.publish(draft.new.clone(), "", options).await {
        Ok(_) => Ok(()),
        Err(error @ PublishError::Store(_)) => Err(error.into()),
        Err(error) => {
            problems.push(of_publication(&error));
            Ok(())
        }
    }
}

/// Search: each sentence finds the tool among those that it would compete with, and theirs still find them.
async fn searches(authoring: &Authoring, caller: &Caller, descriptor: &Descriptor) -> Vec<String> {
    let find = |sentence: String| async move {
        let plane = &authoring.plane;
        plane.find_beside(caller, &sentence, descriptor, TOP).await
    };
    let mut warnings = Vec::new();
    let mut rivals: BTreeMap<Arc<str>, Arc<Tool>> = BTreeMap::new();
    let sentences = &descriptor.metadata.examples;
    for sentence in sentences.iter().take(MAX_SEARCHED) {
        let Some(found) = find(sentence.clone()).await else {
            return warnings;
        };
        if !found.names.contains(&descriptor.name) {
            let first = found.names.first();
            let instead = first.map(|name| format!("; `{name}` is found instead"));
            let instead = instead.unwrap_or_default();
            warnings.push(format!(
                "a search for `{}` does not find it{instead}",
                sentence.escape_debug()
            ));
        }
        let named = found
            .rivals
            .into_iter()
            .map(|rival| (rival.name().clone(), rival));
        rivals.extend(named);
    }
    let alike = format!("{} {}", descriptor.name, descriptor.description);
    let alike = find(alike).await.map(|found| found.rivals).unwrap_or_default();
    rivals.extend(alike.into_iter().map(|rival| (rival.name().clone(), rival)));
    for (name, rival) in &rivals {
        let theirs = &rival.descriptor().metadata.examples;
        for sentence in theirs.iter().take(MAX_SEARCHED) {
            let Some(found) = find(sentence.clone()).await else {
                return warnings;
            };
            let is_found = found.rivals.iter().any(|found| found.name() == name);
            if is_found && !found.names.contains(name) {
                warnings.push(format!(
                    "with it, a search for `{}`, an example of `{name}`, does not find `{name}` any more",
                    sentence.escape_debug()
                ));
            }
        }
    }
    warnings
}
