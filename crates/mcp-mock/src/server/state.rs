use std::sync::Arc;

use bytes::Bytes;
use mcp_server::{Notifier, ServerIdentity};
use mcp_wire::{Era, Message, RpcError, code, method};
use raw_json::RawJson;

use crate::{
    MockPrompt, MockReply, MockResource, MockTool,
    json::array,
    reply::{mock_reply::Change, script::Script},
    server::{
        catalog::{Catalog, CatalogEntry, FeatureKind},
        message_log::MessageLog,
    },
};

/// State that all connections of a mock server share.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) info: ServerIdentity,
    /// The only supported era; `None` for both.
    pub(crate) era: Option<Era>,
    /// Number of entries on a page of a list; `None` for all.
    pub(crate) page_size: Option<usize>,
    /// Declared capabilities, instead of those of the offered features.
    pub(crate) capabilities: Option<RawJson>,
    /// Replies to all requests of a method, to openings of streams, and scripts of notifications.
    pub(crate) rules: Vec<(String, Script)>,
    pub(crate) catalog: Catalog,
    pub(crate) log: MessageLog,
    pub(crate) notices: Notifier,
}

impl State {
    pub(crate) fn capabilities(&self) -> RawJson {
        if let Some(declared) = &self.capabilities {
            return declared.clone();
        }
        let list_changed = RawJson::from_members(&[("listChanged", RawJson::from(true))]);
        let mut declared = vec![("tools", list_changed.clone()), ("logging", RawJson::object())];
        let has = |kind| self.catalog.has(kind);
        if has(FeatureKind::Prompt) {
            declared.push(("prompts", list_changed.clone()));
        }
        if has(FeatureKind::Resource) || has(FeatureKind::Template) {
            let subscribe = [("subscribe", RawJson::from(true))];
            let resources = list_changed.with_members(&subscribe);
            declared.push(("resources", resources.expect("it is an object")));
        }
        if has(FeatureKind::Prompt) || has(FeatureKind::Template) {
            declared.push(("completions", RawJson::object()));
        }
        RawJson::from_members(&declared)
    }

    /// Adds an entry and notifies subscribers.
    pub(crate) fn put(&self, entry: CatalogEntry) {
        let changed = entry.kind.list_changed();
        self.catalog.put(entry);
        self.notices.send(changed, None);
    }

    /// Removes an entry, and notifies subscribers if there was one.
    pub(crate) fn remove(&self, kinds: &[FeatureKind], key: &str) {
        if self.catalog.remove(kinds, key) {
            self.notices.send(kinds[0].list_changed(), None);
        }
    }

    /// Notifies the subscribers of a resource that it has changed.
    pub(crate) fn update_resource(&self, uri: &str) {
        let params = RawJson::from_members(&[("uri", RawJson::from(uri))]);
        self.notices.send(method::RESOURCES_UPDATED, Some(&params));
    }

    pub(crate) fn change(&self, change: &Change) {
        match change {
            Change::AddTool(tool) => self.put(MockTool::clone(tool).into()),
            Change::AddPrompt(prompt) => self.put(MockPrompt::clone(prompt).into()),
            Change::AddResource(resource) => self.put(MockResource::clone(resource).into()),
            Change::RemoveTool(name) => self.remove(&[FeatureKind::Tool], name),
            Change::RemovePrompt(name) => self.remove(&[FeatureKind::Prompt], name),
            Change::RemoveResource(uri) => self.remove(&[FeatureKind::Resource, FeatureKind::Template], uri),
            Change::UpdateResource(uri) => self.update_resource(uri),
        }
    }

    /// Returns the script for all requests of a method.
    pub(crate) fn rule(&self, method: &str) -> Option<&Script> {
        let rule = self.rules.iter().find(|(name, _)| name == method);
        rule.map(|(_, script)| script)
    }

    /// Returns the script of a notification; `None` for any other message.
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

    /// Returns the feature of a request.
    pub(crate) fn entry(&self, method: &str, params: Option<&RawJson>) -> Option<Arc<CatalogEntry>> {
        let text = |key| params.and_then(|params| params.get(key)?.string());
        match method {
            method::TOOLS_CALL => self.catalog.find(FeatureKind::Tool, &text("name")?),
            method::PROMPTS_GET => self.catalog.find(FeatureKind::Prompt, &text("name")?),
            method::RESOURCES_READ => self.catalog.resource(&text("uri")?),
            _ => None,
        }
    }

    /// Returns the error for a message of an unsupported era; `None` for others.
    pub(crate) fn refusal(&self, method: &str, is_modern: bool, version: Option<&str>) -> Option<RpcError> {
        match (self.era?, is_modern) {
            (Era::Legacy, _) if method == method::DISCOVER => Some(mcp_server::unknown_method(method)),
            (Era::Legacy, true) => {
                let message = "the request is written in a revision that this server does not speak";
                Some(RpcError::new(code::INVALID_REQUEST, message))
            }
            (Era::Modern, false) => {
                let latest = array(&[RawJson::from(mcp_wire::Revision::LATEST.as_str())]);
                let requested = RawJson::from(version.unwrap_or_default());
                let supported = RawJson::from_members(&[("supported", latest), ("requested", requested)]);
                let error = RpcError::new(
                    code::UNSUPPORTED_PROTOCOL_VERSION,
                    "this server speaks no revision that has `initialize`",
                );
                Some(error.with_data(supported))
            }
            _ => None,
        }
    }
}
