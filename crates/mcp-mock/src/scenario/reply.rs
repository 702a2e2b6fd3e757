//! Replies as they are written in scenarios.

use mcp_wire::{LogLevel, RpcError, code};
use raw_json::RawJson;
use serde::Deserialize;

use super::{
    file::{PromptFile, ResourceFile, TemplateFile, ToolFile},
    values::{Entries, Json, JsonText, Time},
};
use crate::{Misbehavior, MockReply};

/// The answer to one request.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Fields")]
pub(super) struct ReplyFile(MockReply);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    text: Option<String>,
    template: Option<String>,
    structured: Option<Json>,
    result: Option<Json>,
    json: Option<JsonText>,
    failure: Option<String>,
    error: Option<ErrorFile>,
    no_answer: Option<bool>,
    delay: Option<Time>,
    #[serde(default)]
    before: Vec<StepFile>,
    #[serde(default)]
    misbehave: Vec<MisbehaviourFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorFile {
    code: Option<i64>,
    message: String,
    data: Option<Json>,
}

/// What happens before an answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StepFile {
    Delay(Time),
    Progress(Json),
    Log(LogFile),
    Notify(NotifyFile),
    Ask(AskFile),
    Elicit(ElicitFile),
    AddTools(Entries<ToolFile>),
    RemoveTool(String),
    AddPrompts(Entries<PromptFile>),
    RemovePrompt(String),
    AddResources(Entries<ResourceFile>),
    AddResourceTemplates(Entries<TemplateFile>),
    RemoveResource(String),
    UpdateResource(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogFile {
    level: Level,
    data: Json,
    logger: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Level(LogLevel);

impl TryFrom<String> for Level {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
            .map(Self)
            .map_err(|_| format!("`{text}` is no level of log messages, such as `info` or `error`"))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotifyFile {
    method: String,
    params: Option<Json>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskFile {
    key: String,
    method: String,
    params: Option<Json>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ElicitFile {
    key: String,
    message: String,
    schema: Json,
}

/// How an answer misbehaves.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MisbehaviourFile {
    WrongId,
    StringId,
    WithoutId,
    Raw(String),
    Oversize(usize),
    InvalidUtf8,
    Twice,
    GarbageBefore(String),
    GarbageAfter(String),
    Flood(usize),
    PauseHalfway(Time),
    Drip(DripFile),
    Cut,
    CutAfter(usize),
    Close,
    Deaf(Time),
    Status(StatusFile),
    ContentType(String),
    EmptyStream,
    Event(String),
    DropSession,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DripFile {
    bytes: usize,
    every: Time,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusFile {
    code: u16,
    #[serde(default)]
    headers: Entries<String>,
    #[serde(default)]
    body: String,
}

impl TryFrom<Fields> for ReplyFile {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Self, String> {
        let never = fields.no_answer.unwrap_or_default().then(MockReply::never);
        let outcomes = [
            ("text", fields.text.map(MockReply::text)),
            ("template", fields.template.map(MockReply::template)),
            (
                "structured",
                fields
                    .structured
                    .map(|content| MockReply::structured(content.into())),
            ),
            (
                "result",
                fields.result.map(|result| MockReply::result(result.into())),
            ),
            ("json", fields.json.map(|text| MockReply::result(text.0))),
            ("failure", fields.failure.map(MockReply::failure)),
            ("error", fields.error.map(|error| MockReply::error(error.into()))),
            ("no_answer", never),
        ];
        let mut given = outcomes
            .into_iter()
            .filter_map(|(key, reply)| Some((key, reply?)));
        let first = given.next();
        if let (Some((first, _)), Some((second, _))) = (&first, given.next()) {
            return Err(format!(
                "a reply has one answer, but here are `{first}` and `{second}`"
            ));
        }
        let mut reply = first.map_or_else(MockReply::usual, |(_, reply)| reply);
        if let Some(time) = fields.delay {
            reply = reply.delay(time.0);
        }
        reply = fields.before.into_iter().fold(reply, step);
        let misbehaviours = fields.misbehave.into_iter().map(Misbehavior::from);
        Ok(Self(misbehaviours.fold(reply, MockReply::misbehave)))
    }
}

impl From<ReplyFile> for MockReply {
    fn from(file: ReplyFile) -> Self {
        file.0
    }
}

impl From<ErrorFile> for RpcError {
    fn from(file: ErrorFile) -> Self {
        let mut error = Self::new(file.code.unwrap_or(code::INTERNAL_ERROR), file.message);
        error.data = file.data.map(Into::into);
        error
    }
}

fn step(reply: MockReply, step: StepFile) -> MockReply {
    match step {
        StepFile::Delay(time) => reply.delay(time.0),
        StepFile::Progress(report) => reply.progress_report(report.into()),
        StepFile::Log(LogFile { level, data, logger }) => {
            let mut members = vec![("data", RawJson::from(data))];
            members.extend(logger.map(|logger| ("logger", RawJson::from(&*logger))));
            let message = RawJson::object().with_members(&members);
            reply.log_message(level.0, message.expect("an empty object is an object"))
        }
        StepFile::Notify(NotifyFile { method, params }) => reply.notify(method, params.map(Into::into)),
        StepFile::Ask(AskFile { key, method, params }) => reply.ask(key, method, params.map(Into::into)),
        StepFile::Elicit(ElicitFile { key, message, schema }) => reply.elicit(key, &message, &schema.into()),
        StepFile::AddTools(Entries(tools)) => tools
            .into_iter()
            .fold(reply, |reply, (name, tool)| reply.add_tool(tool.named(name))),
        StepFile::RemoveTool(name) => reply.remove_tool(name),
        StepFile::AddPrompts(Entries(prompts)) => prompts.into_iter().fold(reply, |reply, (name, prompt)| {
            reply.add_prompt(prompt.named(name))
        }),
        StepFile::RemovePrompt(name) => reply.remove_prompt(name),
        StepFile::AddResources(Entries(resources)) => {
            resources.into_iter().fold(reply, |reply, (uri, resource)| {
                reply.add_resource(resource.at(uri))
            })
        }
        StepFile::AddResourceTemplates(Entries(templates)) => {
            templates.into_iter().fold(reply, |reply, (uri, template)| {
                reply.add_resource_template(template.at(uri))
            })
        }
        StepFile::RemoveResource(uri) => reply.remove_resource(uri),
        StepFile::UpdateResource(uri) => reply.update_resource(uri),
    }
}

impl From<MisbehaviourFile> for Misbehavior {
    fn from(file: MisbehaviourFile) -> Self {
        match file {
            MisbehaviourFile::WrongId => Self::WrongId,
            MisbehaviourFile::StringId => Self::StringId,
            MisbehaviourFile::WithoutId => Self::WithoutId,
            MisbehaviourFile::Raw(text) => Self::Raw(text),
            MisbehaviourFile::Oversize(bytes) => Self::Oversize(bytes),
            MisbehaviourFile::InvalidUtf8 => Self::InvalidUtf8,
            MisbehaviourFile::Twice => Self::Twice,
            MisbehaviourFile::GarbageBefore(text) => Self::GarbageBefore(text),
            MisbehaviourFile::GarbageAfter(text) => Self::GarbageAfter(text),
            MisbehaviourFile::Flood(count) => Self::Flood(count),
            MisbehaviourFile::PauseHalfway(time) => Self::PauseHalfway(time.0),
            MisbehaviourFile::Drip(DripFile { bytes, every }) => Self::Drip {
                bytes,
                every: every.0,
            },
            MisbehaviourFile::Cut => Self::Cut(None),
            MisbehaviourFile::CutAfter(bytes) => Self::Cut(Some(bytes)),
            MisbehaviourFile::Close => Self::Close,
            MisbehaviourFile::Deaf(time) => Self::Deaf(time.0),
            MisbehaviourFile::Status(StatusFile { code, headers, body }) => Self::Status {
                status: code,
                headers: headers.0,
                body,
            },
            MisbehaviourFile::ContentType(kind) => Self::ContentType(kind),
            MisbehaviourFile::EmptyStream => Self::EmptyStream,
            MisbehaviourFile::Event(text) => Self::Event(text),
            MisbehaviourFile::DropSession => Self::DropSession,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reply_has_one_answer() {
        let fields: Result<ReplyFile, _> = serde_json::from_value(json!({"text": "a", "failure": "b"}));
        let message = fields.unwrap_err().to_string();
        assert_eq!(
            message,
            "a reply has one answer, but here are `text` and `failure`"
        );
    }
}
