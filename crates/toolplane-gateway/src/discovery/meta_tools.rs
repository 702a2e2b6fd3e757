//! Definitions of the meta-tools, and the answers of those that only read.

use std::{fmt::Write, sync::Arc};

use mcp_server::{Answer, Peer, RequestContext};
use raw_json::RawJson;
use serde::Serialize;
use toolplane::{
    Authoring, FoundTools,
    core::{Caller, Descriptor, ErrorKind, ExecutorSpec, Tool, ToolError, invoke_fn},
    manifest::AuthoringSpec,
    policy::text_for_caller,
    search::{SearchRequest, signature},
};

use super::arguments::{DescribeArguments, SearchArguments};
use crate::{client::client_identity, gateway::GatewayState, render};

/// Meta-tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetaTool {
    /// Finds tools.
    Search,
    /// Returns the definitions of tools.
    Describe,
    /// Calls a tool.
    Call,
    /// Any of these, and makes tools.
    Execute,
}

/// Maximum number of drafts that a search names.
const MAX_DRAFTS: usize = 20;

const SEARCH: &str = "Finds tools by what they do. Most tools are not listed: search before you conclude that there is none. Returns signatures, best first; `tool_describe` returns the whole definition, `tool_call` calls a tool. For a task of several steps, give one query for each step.";
const SEARCH_SCHEMA: &str = r#"{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do, or its name"},"queries":{"type":"array","items":{"type":"string"},"description":"Several queries at once, one for each step of a task"},"server":{"type":"string","description":"Only tools of this server"},"tag":{"type":"string","description":"Only tools with this tag"},"capability":{"type":"string","description":"Only tools with this capability"},"permission":{"type":"string","description":"Only tools that need this permission"},"sort":{"enum":["relevance","sla","latency"],"description":"Order of the results; relevance by default"},"limit":{"type":"integer","minimum":1,"maximum":50,"description":"Maximum number of results; 8 by default"}},"additionalProperties":false}"#;
const DESCRIBE: &str = "Returns the definitions of tools, with the JSON Schemas of their arguments.";
const DESCRIBE_SCHEMA: &str = r#"{"type":"object","properties":{"names":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":20,"description":"Names of the tools"}},"required":["names"],"additionalProperties":false}"#;
const CALL: &str = "Calls a tool that `tool_search` found, and returns its result.";
const CALL_SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"Name of the tool"},"arguments":{"type":"object","description":"Arguments of the tool, as its definition asks for them"}},"required":["name"],"additionalProperties":false}"#;

const EXECUTE: &str = "Finds, makes and calls tools. `search` takes `query`; `run` calls the tool `item_id` with `parameters`; `create` and `update` take `content`, a manifest, and `files`; `test`, `publish`, `rollback`, `delete` and `load` are about the tool `item_id`.";
const EXECUTE_SCHEMA: &str = r#"{"type":"object","properties":{"item_type":{"const":"tool","description":"Kind of item"},"action":{"enum":["search","load","run","create","update","test","publish","rollback","delete"],"description":"What to do"},"item_id":{"type":"string","description":"Name of the tool"},"parameters":{"type":"object","description":"For `run` the arguments of the tool; otherwise those of the action, such as `query`, `content`, `files`, `version`, `to` and `arguments`"}},"required":["item_type","action"],"additionalProperties":false}"#;

/// Returns the meta-tools by which clients find and call tools, as they are listed.
pub(super) fn definitions() -> Vec<Arc<Tool>> {
    vec![
        definition("tool_call", CALL, CALL_SCHEMA, None),
        definition("tool_describe", DESCRIBE, DESCRIBE_SCHEMA, Some(true)),
        definition("tool_search", SEARCH, SEARCH_SCHEMA, Some(true)),
    ]
}

/// Returns the meta-tool for everything, as it is listed.
pub(super) fn execute_definition() -> Arc<Tool> {
    definition(AuthoringSpec::EXECUTE, EXECUTE, EXECUTE_SCHEMA, None)
}

fn definition(name: &str, description: &str, schema: &str, is_read_only: Option<bool>) -> Arc<Tool> {
    let mut descriptor = Descriptor::new(name, ExecutorSpec::new("meta"));
    description.clone_into(&mut descriptor.description);
    descriptor.input_schema = RawJson::parse(schema.to_owned()).expect("the text is JSON");
    descriptor.metadata.read_only = is_read_only;
    // It is only listed: the edge answers its calls, or makes them calls of the named tool.
    let never = invoke_fn(|_| async {
        Err::<RawJson, _>(ToolError::new(
            ErrorKind::NotFound,
            "a meta-tool is no tool of its own",
        ))
    });
    toolplane::core::ToolBuilder::from_descriptor(descriptor).run(never)
}

impl MetaTool {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "tool_search" => Some(Self::Search),
            "tool_describe" => Some(Self::Describe),
            "tool_call" => Some(Self::Call),
            _ => None,
        }
    }
}

impl GatewayState {
    /// Answers a call of `tool_search`.
    pub(crate) async fn search_tools(&self, cx: &RequestContext, arguments: Option<&RawJson>) -> Answer {
        let request = match SearchArguments::read(arguments) {
            Ok(arguments) => arguments.request(),
            Err(error) => return render::failed_tool_result(&error),
        };
        let caller = self.caller(cx.principal());
        let client = client_identity(&Peer::from_request(cx), &caller);
        let wait = self.options.list_wait;
        let found = self
            .plane
            .search_within_for(&request, &caller, &client, wait)
            .await;
        let mut text = search_text(&request, &found);
        if let Some(drafts) = self.drafts_of(&caller).await {
            let _ = write!(text, "\n{drafts}");
        }
        self.text_result(&text, false)
    }

    /// Answers a call of `tool_describe`.
    pub(crate) async fn describe_tools(&self, cx: &RequestContext, arguments: Option<&RawJson>) -> Answer {
        let names = match DescribeArguments::read(arguments) {
            Ok(arguments) => arguments.names,
            Err(error) => return render::failed_tool_result(&error),
        };
        let caller = self.caller(cx.principal());
        let client = client_identity(&Peer::from_request(cx), &caller);
        let listing = self
            .plane
            .list_within_for(&caller, &client, self.options.list_wait)
            .await;
        let tools = listing.view.tools();
        let mut text = String::new();
        let mut n_found = 0;
        for name in &names {
            let separator = if text.is_empty() { "" } else { "\n" };
            let place = tools.binary_search_by(|tool| (**tool.name()).cmp(name));
            let _ = match place {
                Ok(place) => {
                    n_found += 1;
                    write!(text, "{separator}{}", tools[place].definition())
                }
                Err(_) => match self.draft_text(&caller, name).await {
                    Some(draft) => {
                        n_found += 1;
                        write!(text, "{separator}{draft}")
                    }
                    None => write!(
                        text,
                        "{separator}there is no tool `{name}`; find its name with `tool_search`"
                    ),
                },
            };
        }
        self.text_result(&text, n_found == 0)
    }

    /// Returns the service by which this caller makes tools, if it may.
    fn authoring_of(&self, caller: &Caller) -> Option<Authoring> {
        let authoring = self.plane.authoring()?;
        caller.has_permission(AuthoringSpec::CREATE).then_some(authoring)
    }

    /// Returns a line about the drafts of a caller, which nobody else sees.
    async fn drafts_of(&self, caller: &Caller) -> Option<String> {
        let drafts = self.authoring_of(caller)?.drafts(caller).await.ok()?;
        let n_more = drafts.len().saturating_sub(MAX_DRAFTS);
        let shown = drafts.iter().take(MAX_DRAFTS);
        let shown = shown.map(|draft| format!("{}@{}", draft.tool, draft.head.version));
        let mut line = format!("Your drafts: {}", shown.collect::<Vec<_>>().join(", "));
        if n_more > 0 {
            let _ = write!(line, ", and {n_more} more");
        }
        (!drafts.is_empty()).then_some(line)
    }

    /// Returns the manifest of a draft of a caller, for a model.
    async fn draft_text(&self, caller: &Caller, name: &str) -> Option<String> {
        let authoring = self.authoring_of(caller)?;
        let (tool, version) = match name.split_once('@') {
            Some((tool, version)) => (tool, Some(version.parse().ok()?)),
            None => (name, None),
        };
        let draft = authoring.draft(caller, tool, version.as_ref()).await.ok()?;
        Some(format!("draft {tool}@{}: {}", draft.head.version, draft.manifest))
    }

    /// Returns a result with one text for the model.
    fn text_result(&self, text: &str, is_error: bool) -> Answer {
        #[derive(Serialize)]
        struct Text<'a> {
            r#type: &'static str,
            text: &'a str,
        }

        let content = RawJson::from_serialize(&[Text { r#type: "text", text }]).expect("text can be written");
        let mut members = vec![("content", content)];
        if is_error {
            members.push(("isError", RawJson::from(true)));
        }
        let result = RawJson::from_members(&members);
        // Lists of servers were redacted when they were read. More secrets may have become known since.
        Answer::untyped(self.plane.hide_secrets(&result).unwrap_or(result))
    }
}

/// Returns the results of a search as lines for a model.
fn search_text(request: &SearchRequest, found: &FoundTools) -> String {
    let mut text = String::new();
    for found in &found.tools {
        let descriptor = found.tool.descriptor();
        let line = signature(
            found.tool.name(),
            &descriptor.input_schema,
            &descriptor.description,
        );
        let _ = writeln!(text, "{}", toolplane::escape_for_model(&line));
    }
    let queries = found
        .unmatched
        .iter()
        .filter_map(|number| request.queries().get(*number));
    for query in queries {
        let _ = writeln!(
            text,
            "No tool fits the query: {}",
            toolplane::escape_for_model(query)
        );
    }
    if found.tools.is_empty() && found.unmatched.is_empty() {
        text.push_str("No tool fits the filter.\n");
    }
    if !found.nearest.is_empty() {
        let categories = found.nearest.iter().map(|category| {
            let name = toolplane::escape_for_model(&category.name).into_owned();
            format!("{} {name} ({})", category.kind.as_str(), category.n_tools)
        });
        let categories = categories.collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "Nearest categories, with their numbers of tools: {categories}"
        );
    }
    if !found.missing.is_empty() {
        let missing = found
            .missing
            .iter()
            .map(|missing| format!("{} ({})", missing.server, missing.state.as_str()));
        let missing = missing.collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "Servers whose tools are not known yet: {missing}");
    }
    for warning in &found.warnings {
        let _ = writeln!(text, "Warning: {}", text_for_caller(warning));
    }
    text.truncate(text.trim_end().len());
    text
}
