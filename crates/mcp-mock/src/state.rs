use std::sync::Arc;

use bytes::Bytes;
use mcp_server::{Notifier, ServerIdentity};
use mcp_wire::{Era, Message, RpcError, code, method};
use raw_json::RawJson;
use serde_json::json;

use crate::{
    MockPrompt, MockReply, MockResource, MockTool,
    log::Log,
    offer::{Entry, Kind, Offer},
    reply::Change,
    script::Script,
};

/// What all connections of a mock server share.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) info: ServerIdentity,
    /// The only era that is spoken; both when it is nothing.
    pub(crate) era: Option<Era>,
    /// How many entries a page of a list has; all when it is nothing.
    pub(crate) page_size: Option<usize>,
    /// What is declared in place of what is offered.
    pub(crate) capabilities: Option<RawJson>,
    /// Replies to every request of a method, and to openings of streams; how notifications of a method are sent.
    pub(crate) rules: Vec<(String, Script)>,
    pub(crate) offer: Offer,
    pub(crate) log: Log,
    pub(crate) notices: Notifier,
}

impl State {
    pub(crate) fn capabilities(&self) -> RawJson {
        if let Some(declared) = &self.capabilities {
            return declared.clone();
        }
        let mut declared = json!({"tools": {"listChanged": true}, "logging": {}});
        let has = |kind| self.offer.has(kind);
        if has(Kind::Prompt) {
            declared["prompts"] = json!({"listChanged": true});
        }
        if has(Kind::Resource) || has(Kind::Template) {
            declared["resources"] = json!({"listChanged": true, "subscribe": true});
        }
        if has(Kind::Prompt) || has(Kind::Template) {
            declared["completions"] = json!({});
        }
        declared.into()
    }

    /// Adds an entry and tells those who listen.
    pub(crate) fn put(&self, entry: Entry) {
        let changed = entry.kind.list_changed();
        self.offer.put(entry);
        self.notices.send(changed, None);
    }

    /// Takes an entry away and tells those who listen, if there was one.
    pub(crate) fn remove(&self, kinds: &[Kind], key: &str) {
        if self.offer.remove(kinds, key) {
            self.notices.send(kinds[0].list_changed(), None);
        }
    }

    /// Tells those who watch a resource that it has changed.
    pub(crate) fn update_resource(&self, uri: &str) {
        let params = json!({ "uri": uri }).into();
        self.notices.send(method::RESOURCES_UPDATED, Some(&params));
    }

    pub(crate) fn change(&self, change: &Change) {
        match change {
            Change::AddTool(tool) => self.put(MockTool::clone(tool).into()),
            Change::AddPrompt(prompt) => self.put(MockPrompt::clone(prompt).into()),
            Change::AddResource(resource) => self.put(MockResource::clone(resource).into()),
            Change::RemoveTool(name) => self.remove(&[Kind::Tool], name),
            Change::RemovePrompt(name) => self.remove(&[Kind::Prompt], name),
            Change::RemoveResource(uri) => self.remove(&[Kind::Resource, Kind::Template], uri),
            Change::UpdateResource(uri) => self.update_resource(uri),
        }
    }

    /// What requests of a method are answered with, whatever they are about.
    pub(crate) fn rule(&self, method: &str) -> Option<&Script> {
        let rule = self.rules.iter().find(|(name, _)| name == method);
        rule.map(|(_, script)| script)
    }

    /// How a notification is sent that is scripted; nothing for any other message.
    pub(crate) fn notification(&self, message: &Bytes) -> Option<MockReply> {
        if !self.scripts_notifications() {
            return None;
        }
        let Ok(Message::Notification(notification)) = Message::from_server(message.clone()) else {
            return None;
        };
        let rule = self.rule(&notification.method)?;
        Some(rule.reply(rule.take()))
    }

    pub(crate) fn scripts_notifications(&self) -> bool {
        self.rules
            .iter()
            .any(|(method, _)| method.starts_with("notifications/"))
    }

    /// What a request is about.
    pub(crate) fn entry(&self, method: &str, params: Option<&RawJson>) -> Option<Arc<Entry>> {
        let text = |key| params.and_then(|params| params.get(key)?.string());
        match method {
            method::TOOLS_CALL => self.offer.find(Kind::Tool, &text("name")?),
            method::PROMPTS_GET => self.offer.find(Kind::Prompt, &text("name")?),
            method::RESOURCES_READ => self.offer.resource(&text("uri")?),
            _ => None,
        }
    }

    /// Why a message of the era that is not spoken is refused; nothing for others.
    pub(crate) fn refusal(&self, method: &str, is_modern: bool, version: Option<&str>) -> Option<RpcError> {
        match (self.era?, is_modern) {
            (Era::Legacy, _) if method == method::DISCOVER => Some(mcp_server::unknown_method(method)),
            (Era::Legacy, true) => {
                let message = "the request is written in a revision that this server does not speak";
                Some(RpcError::new(code::INVALID_REQUEST, message))
            }
            (Era::Modern, false) => {
                let supported = json!({
                    "supported": [mcp_wire::Revision::LATEST.as_str()],
                    "requested": version.unwrap_or_default(),
                });
                let error = RpcError::new(
                    code::UNSUPPORTED_PROTOCOL_VERSION,
                    "this server speaks no revision that has `initialize`",
                );
                Some(error.with_data(supported.into()))
            }
            _ => None,
        }
    }
}
