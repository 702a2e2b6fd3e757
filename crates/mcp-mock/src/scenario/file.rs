//! File format of a scenario.

use mcp_server::ServerIdentity;
use mcp_wire::Era;
use raw_json::RawJson;
use serde::Deserialize;

use super::{
    reply::ReplyFile,
    values::{Entries, Json},
};
use crate::{MockPrompt, MockReply, MockResource, MockServer, MockServerBuilder, MockTool, json::array};

/// A whole scenario.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    name: Option<String>,
    title: Option<String>,
    version: Option<String>,
    instructions: Option<String>,
    era: Option<EraFile>,
    page_size: Option<usize>,
    capabilities: Option<Json>,
    #[serde(default)]
    tools: Entries<ToolFile>,
    #[serde(default)]
    prompts: Entries<PromptFile>,
    #[serde(default)]
    resources: Entries<ResourceFile>,
    #[serde(default)]
    resource_templates: Entries<TemplateFile>,
    #[serde(default)]
    on: Entries<Vec<ReplyFile>>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EraFile {
    Legacy,
    Modern,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolFile {
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<Json>,
    output_schema: Option<Json>,
    annotations: Option<Json>,
    #[serde(default)]
    members: Entries<Json>,
    #[serde(default)]
    replies: Vec<ReplyFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptFile {
    title: Option<String>,
    description: Option<String>,
    #[serde(default)]
    arguments: Entries<ArgumentFile>,
    #[serde(default)]
    members: Entries<Json>,
    #[serde(default)]
    replies: Vec<ReplyFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArgumentFile {
    description: Option<String>,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    complete: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResourceFile {
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    #[serde(default)]
    members: Entries<Json>,
    #[serde(default)]
    replies: Vec<ReplyFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TemplateFile {
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    #[serde(default)]
    complete: Entries<Vec<String>>,
    #[serde(default)]
    members: Entries<Json>,
    #[serde(default)]
    replies: Vec<ReplyFile>,
}

impl From<File> for MockServerBuilder {
    fn from(file: File) -> Self {
        let usual = ServerIdentity::new("mock", env!("CARGO_PKG_VERSION"));
        let mut info = ServerIdentity::new(
            file.name.unwrap_or(usual.name),
            file.version.unwrap_or(usual.version),
        );
        info.title = file.title;
        info.instructions = file.instructions;
        let mut builder = MockServer::builder().info(info);
        if let Some(era) = file.era {
            builder = builder.era(match era {
                EraFile::Legacy => Era::Legacy,
                EraFile::Modern => Era::Modern,
            });
        }
        if let Some(entries) = file.page_size {
            builder = builder.page_size(entries);
        }
        if let Some(capabilities) = file.capabilities {
            builder = builder.capabilities(capabilities.into());
        }
        for (name, tool) in file.tools.0 {
            builder = builder.tool(tool.named(name));
        }
        for (name, prompt) in file.prompts.0 {
            builder = builder.prompt(prompt.named(name));
        }
        for (uri, resource) in file.resources.0 {
            builder = builder.resource(resource.at(uri));
        }
        for (uri, template) in file.resource_templates.0 {
            builder = builder.resource(template.at(uri));
        }
        for (method, replies) in file.on.0 {
            for reply in replies {
                builder = builder.on(method.clone(), reply.into());
            }
        }
        builder
    }
}

/// Combines the given members, under their names on the wire.
fn given<const N: usize>(
    members: [(&'static str, Option<RawJson>); N],
    more: Entries<Json>,
) -> Vec<(String, RawJson)> {
    let named = members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let more = more.0.into_iter().map(|(name, value)| (name, value.into()));
    named.chain(more).collect()
}

fn text(text: Option<String>) -> Option<RawJson> {
    text.map(|text| RawJson::from(&*text))
}

fn json(json: Option<Json>) -> Option<RawJson> {
    json.map(Into::into)
}

fn replies(files: Vec<ReplyFile>) -> impl Iterator<Item = MockReply> {
    files.into_iter().map(Into::into)
}

impl ToolFile {
    pub(super) fn named(self, name: String) -> MockTool {
        let members = [
            ("title", text(self.title)),
            ("description", text(self.description)),
            ("inputSchema", json(self.input_schema)),
            ("outputSchema", json(self.output_schema)),
            ("annotations", json(self.annotations)),
        ];
        let tool = given(members, self.members)
            .into_iter()
            .fold(MockTool::new(name), |tool, (name, value)| {
                tool.member(&name, value)
            });
        replies(self.replies).fold(tool, MockTool::reply)
    }
}

impl PromptFile {
    pub(super) fn named(self, name: String) -> MockPrompt {
        let mut prompt = MockPrompt::new(name);
        let mut arguments = Vec::new();
        for (name, argument) in self.arguments.0 {
            let mut listed = vec![
                ("name", RawJson::from(name.as_str())),
                ("required", RawJson::from(argument.required)),
            ];
            listed.extend(text(argument.description).map(|description| ("description", description)));
            arguments.push(RawJson::from_members(&listed));
            prompt = prompt.complete(&name, argument.complete);
        }
        let arguments = (!arguments.is_empty()).then(|| array(&arguments));
        let members = [
            ("title", text(self.title)),
            ("description", text(self.description)),
            ("arguments", arguments),
        ];
        let prompt = given(members, self.members)
            .into_iter()
            .fold(prompt, |prompt, (name, value)| prompt.member(&name, value));
        replies(self.replies).fold(prompt, MockPrompt::reply)
    }
}

impl ResourceFile {
    pub(super) fn at(self, uri: String) -> MockResource {
        let members = [
            ("name", text(self.name)),
            ("title", text(self.title)),
            ("description", text(self.description)),
            ("mimeType", text(self.mime_type)),
        ];
        filled(MockResource::new(uri), given(members, self.members), self.replies)
    }
}

impl TemplateFile {
    pub(super) fn at(self, uri: String) -> MockResource {
        let members = [
            ("name", text(self.name)),
            ("title", text(self.title)),
            ("description", text(self.description)),
            ("mimeType", text(self.mime_type)),
        ];
        let completed = self.complete.0.into_iter();
        let template = completed.fold(MockResource::template(uri), |template, (part, values)| {
            template.complete(&part, values)
        });
        filled(template, given(members, self.members), self.replies)
    }
}

fn filled(resource: MockResource, members: Vec<(String, RawJson)>, files: Vec<ReplyFile>) -> MockResource {
    let resource = members
        .into_iter()
        .fold(resource, |resource, (name, value)| resource.member(&name, value));
    replies(files).fold(resource, MockResource::reply)
}
