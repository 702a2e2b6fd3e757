//! Calls of meta-tools, as calls of other tools: `tool_call`, and `execute`, one meta-tool for everything.

use mcp_server::RequestContext;
use raw_json::{JsonKind, RawJson};
use toolplane::{
    core::{ErrorKind, ToolError},
    manifest::AuthoringSpec,
};

use super::{arguments::IndirectTarget, meta_tools::MetaTool};
use crate::gateway::GatewayState;

/// Request that the call of a meta-tool stands for.
#[derive(Debug)]
pub(crate) enum Redirection {
    /// Search with these arguments of `tool_search`.
    Search(Option<RawJson>),
    /// Definitions by these arguments of `tool_describe`.
    Describe(Option<RawJson>),
    /// Call of a tool.
    Call(IndirectTarget),
}

/// Arguments of `execute`.
#[derive(Debug)]
struct ExecuteArguments {
    action: String,
    item: Option<String>,
    parameters: RawJson,
}

impl GatewayState {
    /// Reads what a call of a meta-tool asks for.
    pub(crate) fn redirect(
        &self,
        meta_tool: MetaTool,
        cx: &RequestContext,
    ) -> Result<Redirection, ToolError> {
        let arguments = cx.arguments();
        match meta_tool {
            MetaTool::Search => Ok(Redirection::Search(arguments.cloned())),
            MetaTool::Describe => Ok(Redirection::Describe(arguments.cloned())),
            MetaTool::Call => IndirectTarget::read(arguments).map(Redirection::Call),
            MetaTool::Execute => {
                let caller = self.caller(cx.principal());
                if !caller.has_permission(AuthoringSpec::CREATE) {
                    let message = format!("there is no tool `{}`", AuthoringSpec::EXECUTE);
                    return Err(ToolError::new(ErrorKind::NotFound, message));
                }
                ExecuteArguments::read(arguments)?.redirect()
            }
        }
    }
}

impl ExecuteArguments {
    fn read(arguments: Option<&RawJson>) -> Result<Self, ToolError> {
        let (mut kind, mut action, mut item, mut parameters) = (None, None, None, RawJson::object());
        for (key, value) in arguments.iter().flat_map(|arguments| arguments.parts()) {
            let text = || {
                let text = value.text().map(std::borrow::Cow::into_owned);
                text.ok_or_else(|| invalid(&format!("`{key}` must be a string")))
            };
            match &*key {
                "item_type" => kind = Some(text()?),
                "action" => action = Some(text()?),
                "item_id" => item = Some(text()?),
                "parameters" if value.kind() == JsonKind::Object => parameters = value.to_raw(),
                "parameters" => return Err(invalid("`parameters` must be an object")),
                other => {
                    return Err(invalid(&format!(
                        "unknown property `{other}`; there are `item_type`, `action`, `item_id` and `parameters`"
                    )));
                }
            }
        }
        match kind.as_deref() {
            Some("tool") => {}
            Some(other) => {
                let shown: String = other.chars().take(40).collect();
                return Err(invalid(&format!(
                    "there are no items of the type `{}`; write `tool`",
                    shown.escape_debug()
                )));
            }
            None => return Err(invalid("missing required property `item_type`; write `tool`")),
        }
        Ok(Self {
            action: action.ok_or_else(|| invalid("missing required property `action`"))?,
            item,
            parameters,
        })
    }

    fn redirect(self) -> Result<Redirection, ToolError> {
        let call = |name: &str, arguments: RawJson| {
            Ok(Redirection::Call(IndirectTarget {
                name: name.to_owned(),
                arguments: Some(arguments),
            }))
        };
        match self.action.as_str() {
            "search" => Ok(Redirection::Search(Some(self.search()))),
            "load" => {
                let names = RawJson::from_serialize(&[self.item()?]).expect("a text can be written");
                Ok(Redirection::Describe(Some(RawJson::from_members(&[(
                    "names", names,
                )]))))
            }
            "run" => call(self.item()?, self.parameters.clone()),
            "create" => call("tool_create", self.draft()?),
            "update" => call("tool_update", self.draft()?),
            "test" => call("tool_test", self.of_item()?),
            "publish" => call("tool_publish", self.of_item()?),
            "rollback" => call("tool_rollback", self.of_item()?),
            "delete" => call("tool_delete", self.of_item()?),
            other => {
                let shown: String = other.chars().take(40).collect();
                Err(invalid(&format!(
                    "there is no action `{}`; there are `search`, `load`, `run`, `create`, `update`, `test`, `publish`, \
                     `rollback` and `delete`",
                    shown.escape_debug()
                )))
            }
        }
    }

    fn item(&self) -> Result<&str, ToolError> {
        let item = self.item.as_deref();
        item.ok_or_else(|| {
            invalid(&format!(
                "`{}` needs `item_id`, the name of the tool",
                self.action
            ))
        })
    }

    /// Returns the parameters of a search; without a query, the name that was asked for is the query.
    fn search(&self) -> RawJson {
        let has_query = ["query", "queries"]
            .iter()
            .any(|key| self.parameters.get(key).is_some());
        match self.item.as_deref().filter(|_| !has_query) {
            Some(item) => {
                let with_query = self.parameters.with_members(&[("query", RawJson::from(item))]);
                with_query.unwrap_or_else(|_| self.parameters.clone())
            }
            None => self.parameters.clone(),
        }
    }

    /// Returns the arguments of `tool_create` and `tool_update`: `content` is the manifest.
    fn draft(&self) -> Result<RawJson, ToolError> {
        let mut members = Vec::new();
        let mut content = None;
        for (key, value) in self.parameters.parts() {
            match &*key {
                "content" | "manifest" => content = Some(value.to_raw()),
                "files" => members.push(("files", value.to_raw())),
                "version" => members.push(("version", value.to_raw())),
                other => {
                    return Err(invalid(&format!(
                        "unknown parameter `{other}`; there are `content`, `files` and `version`"
                    )));
                }
            }
        }
        let content =
            content.ok_or_else(|| invalid("`parameters` needs `content`, the manifest of the tool"))?;
        let named = content.get("tool_id").and_then(|name| name.string());
        if let (Some(item), Some(named)) = (&self.item, named)
            && *item != named
        {
            return Err(invalid("`item_id` and `tool_id` of the manifest differ"));
        }
        members.push(("manifest", content));
        Ok(RawJson::from_members(&members))
    }

    /// Returns the parameters with the name of the tool.
    fn of_item(&self) -> Result<RawJson, ToolError> {
        let named = self
            .parameters
            .with_members(&[("name", RawJson::from(self.item()?))]);
        named.map_err(|error| invalid(&error.to_string()))
    }
}

fn invalid(message: &str) -> ToolError {
    ToolError::new(ErrorKind::InvalidArguments, message)
}
