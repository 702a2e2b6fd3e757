//! Entries of a server's list, and their conversion into descriptors.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use mcp_client::ServerInfo;
use mcp_wire::Era;
use raw_json::{JsonKind, RawJson, TextPart};
use serde_json::{Map, Value, json};
use tool_core::{
    Catalogue, Descriptor, ExecutorSpec, Feature, MAX_NAME, Origin, RejectedEntry, outward_name,
};

use super::argument_list::argument_list_schema;
use crate::{ServerSettings, settings::EXECUTOR_KIND, tasks};

/// Members of definitions that descriptors are made from.
const MEMBERS: [&str; 9] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "execution",
    "arguments",
    "uri",
    "uriTemplate",
];

/// One entry of a list.
pub(crate) struct ListEntry<'a> {
    settings: &'a ServerSettings,
    server: &'a ServerInfo,
    pub(crate) feature: Feature,
    pub(crate) definition: &'a RawJson,
    /// Values of [`MEMBERS`]: a definition may be long, so its members are searched once.
    members: [Option<TextPart<'a>>; MEMBERS.len()],
}

impl<'a> ListEntry<'a> {
    pub(super) fn new(
        settings: &'a ServerSettings,
        server: &'a ServerInfo,
        feature: Feature,
        definition: &'a RawJson,
    ) -> Self {
        let mut members = [None; MEMBERS.len()];
        for (key, value) in definition.parts() {
            if let Some(index) = MEMBERS.iter().position(|member| *member == key) {
                members[index].get_or_insert(value);
            }
        }
        Self {
            settings,
            server,
            feature,
            definition,
            members,
        }
    }

    /// Returns the member of the definition with this key, which is one of [`MEMBERS`].
    pub(super) fn member(&self, key: &str) -> Option<TextPart<'a>> {
        let index = MEMBERS.iter().position(|member| *member == key);
        self.members[index.expect("it is one of `MEMBERS`")]
    }

    /// Returns the descriptor, or `None` if the configuration excludes the entry.
    pub(super) fn descriptor(&self) -> Result<Option<Descriptor>, RejectedEntry> {
        match self.feature {
            Feature::Tool => self.tool(),
            Feature::Prompt => self.prompt(),
            _ => self.resource(self.key()),
        }
    }

    fn tool(&self) -> Result<Option<Descriptor>, RejectedEntry> {
        let upstream_name = self.identity("name")?;
        if !self.settings.offers_name(&upstream_name) {
            return Ok(None);
        }
        let name = self.settings.outward_tool_name(&upstream_name);
        if !is_mcp_name(&upstream_name) && !self.settings.rename.contains_key(&upstream_name) {
            let reason = "its name is not one of MCP: 1 to 128 characters out of A-Z, a-z, 0-9, `_`, `-`, `.` and `/`; \
                          `rename` gives it another one";
            return Err(self.reject(name, reason));
        }
        let (input_schema, mut definition) = self.input_schema(&name)?;
        let mut config = self.config("tool", &upstream_name);
        match (self.task_support().as_deref(), self.runs_tasks()) {
            (Some("required"), true) => {
                config["task"] = Value::Bool(true);
                definition = supporting_tasks(&definition, "optional");
            }
            (Some("required"), false) if self.server.era() == Era::Legacy => {
                let reason = "it can be called as a task only, and the server does not offer to run tasks";
                return Err(self.reject(name, reason));
            }
            // We offer to run tasks, so the tool's own statement must hold here.
            (Some("required" | "optional"), false) => {
                definition = supporting_tasks(&definition, "forbidden");
            }
            _ => {}
        }
        let mut descriptor = self.with(name, config);
        descriptor.input_schema = input_schema;
        descriptor.output_schema = self.schema("outputSchema");
        descriptor.definition = Some(definition);
        Ok(Some(descriptor))
    }

    /// Returns the schema of the arguments, and the definition with it. A definition without a schema gets the one that its
    /// list of arguments describes, or one that accepts any object.
    fn input_schema(&self, name: &str) -> Result<(RawJson, RawJson), RejectedEntry> {
        let given = self.member("inputSchema");
        let Some(given) = given.filter(|schema| schema.kind() != JsonKind::Null) else {
            let schema = argument_list_schema(self.definition);
            let schema = schema.unwrap_or_else(|| RawJson::from(json!({"type": "object"})));
            let definition = self.definition.with_members(&[("inputSchema", schema.clone())]);
            let definition = definition.map_err(|_| self.reject(name.to_owned(), "it is not an object"))?;
            return Ok((schema, definition));
        };
        if given.kind() != JsonKind::Object {
            return Err(self.reject(name.to_owned(), "its `inputSchema` is not an object"));
        }
        let stated = given.get("type");
        if stated.is_some_and(|stated| stated.text().as_deref() != Some("object")) {
            let reason = "its `inputSchema` does not describe an object, and arguments always are one";
            return Err(self.reject(name.to_owned(), reason));
        }
        Ok((given.to_raw(), self.definition.clone()))
    }

    fn prompt(&self) -> Result<Option<Descriptor>, RejectedEntry> {
        let upstream_name = self.identity("name")?;
        if !self.settings.offers_name(&upstream_name) {
            return Ok(None);
        }
        let name = outward_name(&format!("{}{upstream_name}", self.settings.prefix));
        let config = self.config("prompt", &upstream_name);
        Ok(Some(self.with(name, config)))
    }

    fn resource(&self, key: &str) -> Result<Option<Descriptor>, RejectedEntry> {
        let uri = self.identity(key)?;
        if !self.settings.offers_listed_uri(&uri) {
            return Ok(None);
        }
        let config = self.config("uri", &uri);
        let mut descriptor = self.with(format!("{}{uri}", self.settings.prefix), config);
        descriptor.title = descriptor.title.or_else(|| self.text("name"));
        descriptor.uri = Some(uri.into());
        Ok(Some(descriptor))
    }

    /// Returns the executor's settings of an entry. Most have these two members, and no room for more.
    fn config(&self, member: &str, upstream_name: &str) -> Value {
        let mut config = Map::with_capacity(2);
        config.insert("server".to_owned(), self.settings.name.as_str().into());
        config.insert(member.to_owned(), upstream_name.into());
        Value::Object(config)
    }

    /// Returns a descriptor with the members that all entries of the server have in common.
    fn with(&self, name: String, config: Value) -> Descriptor {
        let mut descriptor = Descriptor::new(name, ExecutorSpec::new(EXECUTOR_KIND).with_config(config));
        descriptor.feature = self.feature;
        descriptor.title = self.text("title");
        descriptor.description = self.text("description").unwrap_or_default();
        descriptor.timeout = self.settings.timeout;
        descriptor.definition = Some(self.definition.clone());
        descriptor.origin = Origin::upstream(format!("the server `{}`", self.settings.name));
        descriptor
    }

    /// Returns `true` if the configuration excludes the entry.
    pub(crate) fn is_left_out(&self) -> bool {
        let upstream_name = self.member(self.key()).and_then(|name| name.text());
        upstream_name.is_some_and(|upstream_name| !self.settings.offers_name(&upstream_name))
    }

    /// Returns the name under which agents see the entry, with `?` for a missing name.
    pub(crate) fn outward(&self) -> String {
        let upstream_name = self.text(self.key()).unwrap_or_else(|| "?".to_owned());
        match self.feature {
            Feature::Tool => self.settings.outward_tool_name(&upstream_name),
            Feature::Prompt => outward_name(&format!("{}{upstream_name}", self.settings.prefix)),
            _ => format!("{}{upstream_name}", self.settings.prefix),
        }
    }

    /// Returns the whole name of a tool whose name is cut because of its length.
    pub(super) fn shortened_name(&self) -> Option<String> {
        let upstream_name = self.member("name")?.text()?;
        let renamed = self.settings.rename.get(&*upstream_name);
        let own = renamed.map_or(&*upstream_name, String::as_str);
        if self.settings.prefix.len() + own.len() <= MAX_NAME {
            return None;
        }
        let whole = format!("{}{own}", self.settings.prefix);
        (whole.chars().count() > MAX_NAME).then_some(whole)
    }

    /// Key of the member that identifies the entry at the server.
    fn key(&self) -> &'static str {
        match self.feature {
            Feature::Tool | Feature::Prompt => "name",
            Feature::Resource => "uri",
            _ => "uriTemplate",
        }
    }

    /// Returns the server's name or URI for the entry.
    fn identity(&self, key: &str) -> Result<String, RejectedEntry> {
        let given = |key| self.text(key).filter(|text| !text.is_empty());
        given(key).ok_or_else(|| {
            let name = given("name").unwrap_or_else(|| "?".to_owned());
            let name = format!("{}{name}", self.settings.prefix);
            self.reject(name, &format!("it has no `{key}`"))
        })
    }

    fn text(&self, key: &str) -> Option<String> {
        self.member(key)?.text().map(Cow::into_owned)
    }

    fn schema(&self, key: &str) -> Option<RawJson> {
        let schema = self.member(key)?;
        (schema.kind() == JsonKind::Object).then(|| schema.to_raw())
    }

    /// Returns the tool's `taskSupport` (revision 2025-11-25).
    fn task_support(&self) -> Option<String> {
        let support = self.member("execution")?.get("taskSupport")?;
        support.text().map(Cow::into_owned)
    }

    /// Returns `true` if the server runs calls as tasks when clients ask for it. Later revisions leave that decision to
    /// the server.
    fn runs_tasks(&self) -> bool {
        self.server.era() == Era::Legacy && tasks::runs_tasks(self.server)
    }

    pub(crate) fn reject(&self, name: String, reason: &str) -> RejectedEntry {
        RejectedEntry::new(self.feature, name, reason.to_owned())
    }
}

/// Maximum length of a tool's name in MCP.
const MAX_MCP_NAME: usize = 128;

/// Returns `true` for a name that MCP allows for a tool (SEP-986).
fn is_mcp_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    (1..=MAX_MCP_NAME).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// Returns the definition with the `taskSupport` that holds for our callers. A tool whose tasks we follow can be called
/// like any other, and some clients refuse to call one that still says `required`.
fn supporting_tasks(definition: &RawJson, support: &str) -> RawJson {
    let execution = definition.get("execution").expect("it says so of tasks");
    let execution = execution
        .with_members(&[("taskSupport", RawJson::from(support))])
        .expect("what has members is an object");
    definition
        .with_members(&[("execution", execution)])
        .expect("what has members is an object")
}

/// Identifies an entry of a server's list, by its name or URI at the server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EntryKey {
    feature: Feature,
    upstream_name: String,
}

impl EntryKey {
    /// Returns the key of the entry that a descriptor was made from.
    pub(crate) fn from_descriptor(descriptor: &Descriptor) -> Self {
        let config = &descriptor.executor.config;
        let upstream_name = ["tool", "prompt", "uri"]
            .iter()
            .find_map(|key| config.get(key)?.as_str());
        Self {
            feature: descriptor.feature,
            upstream_name: upstream_name.unwrap_or_default().to_owned(),
        }
    }
}

/// Returns the keys of all entries of a catalogue.
pub(in crate::listing) fn entry_keys(catalogue: &Catalogue) -> HashSet<EntryKey> {
    descriptors(catalogue)
        .map(|descriptor| EntryKey::from_descriptor(descriptor))
        .collect()
}

pub(in crate::listing) fn descriptors(
    catalogue: &Catalogue,
) -> impl Iterator<Item = &Arc<Descriptor>> + Clone {
    catalogue.tools.iter().chain(&catalogue.others)
}
