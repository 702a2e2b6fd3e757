//! From a server's lists to descriptors.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use mcp_client::ServerInfo;
use mcp_wire::Era;
use raw_json::{JsonKind, RawJson};
use serde_json::{Value, json};
use tool_core::{
    Catalogue, Descriptor, ExecutorSpec, Feature, ListWarning, Metadata, Origin, Overrides, RejectedEntry, Trust,
    outward_name,
};

use crate::{McpExecutor, ServerSettings, definitions, task};

/// Result of describing a list.
#[derive(Default)]
pub(crate) struct Described {
    /// The entries that can be used.
    descriptors: Vec<Arc<Descriptor>>,
    /// The entries that cannot be used, with the reason.
    rejected: Vec<RejectedEntry>,
    /// Warnings about entries, and about the list as it was read.
    pub(crate) warnings: Vec<ListWarning>,
}

/// Makes descriptors of what is on one of a server's lists. What cannot be used is left out with the reason, and the
/// rest is taken.
pub(crate) fn describe(
    settings: &ServerSettings,
    server: &ServerInfo,
    feature: Feature,
    list: &[RawJson],
) -> Described {
    let mut names = HashSet::new();
    let mut described = Described::default();
    let (descriptors, rejected) = (&mut described.descriptors, &mut described.rejected);
    for definition in list {
        let entry = Entry {
            settings,
            server,
            feature,
            definition,
        };
        let judged = match definitions::judge(&entry, settings) {
            Ok(judged) => judged,
            Err(reject) => {
                rejected.push(reject);
                continue;
            }
        };
        let entry = Entry {
            definition: judged.definition.as_ref().unwrap_or(definition),
            ..entry
        };
        described.warnings.extend(judged.warning);
        let descriptor = match entry.descriptor() {
            Ok(None) => continue,
            Ok(Some(descriptor)) => descriptor,
            Err(reject) => {
                rejected.push(reject);
                continue;
            }
        };
        if names.insert(descriptor.name.clone()) {
            descriptors.push(Arc::new(descriptor));
        } else {
            let what = if descriptor.uri.is_some() { "URI" } else { "name" };
            let reason = format!("another {} of the server has this {what}", feature.as_str());
            rejected.push(entry.reject(descriptor.name.to_string(), &reason));
        }
    }
    described
}

/// The catalogue with these lists in the place of those before; the others stay, and so do descriptors that did not
/// change, so that their tools are not resolved again.
pub(crate) fn replaced(before: &Catalogue, mut lists: HashMap<Feature, Described>) -> Catalogue {
    let known: HashMap<_, _> = before
        .tools
        .iter()
        .chain(&before.others)
        .map(|descriptor| ((descriptor.feature, &descriptor.name), descriptor))
        .collect();
    let mut after = Catalogue {
        revision: before.revision + 1,
        ..Catalogue::default()
    };
    for feature in Feature::ALL {
        let described = lists
            .remove(&feature)
            .unwrap_or_else(|| entries_of(before, feature));
        let place = match feature {
            Feature::Tool => &mut after.tools,
            _ => &mut after.others,
        };
        place.extend(described.descriptors.into_iter().map(|descriptor| {
            match known.get(&(feature, &descriptor.name)) {
                Some(same) if ***same == *descriptor => Arc::clone(same),
                _ => descriptor,
            }
        }));
        after.rejected.extend(described.rejected);
        after.warnings.extend(described.warnings);
    }
    after
}

fn entries_of(catalogue: &Catalogue, feature: Feature) -> Described {
    let descriptors = catalogue.tools.iter().chain(&catalogue.others);
    let rejected = catalogue.rejected.iter();
    let warnings = catalogue.warnings.iter();
    Described {
        descriptors: descriptors
            .filter(|descriptor| descriptor.feature == feature)
            .cloned()
            .collect(),
        rejected: rejected
            .filter(|rejected| rejected.feature == feature)
            .cloned()
            .collect(),
        warnings: warnings
            .filter(|warning| warning.feature == Some(feature))
            .cloned()
            .collect(),
    }
}

/// One entry of a list.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    settings: &'a ServerSettings,
    server: &'a ServerInfo,
    pub(crate) feature: Feature,
    pub(crate) definition: &'a RawJson,
}

impl Entry<'_> {
    /// The descriptor; nothing if the configuration leaves the entry out.
    fn descriptor(&self) -> Result<Option<Descriptor>, RejectedEntry> {
        match self.feature {
            Feature::Tool => self.tool(),
            Feature::Prompt => self.prompt(),
            _ => self.resource(self.key()),
        }
    }

    fn tool(&self) -> Result<Option<Descriptor>, RejectedEntry> {
        let own = self.identity("name")?;
        if !self.settings.takes(&own) {
            return Ok(None);
        }
        let name = self.settings.outward(&own);
        let Some(input_schema) = self.schema("inputSchema") else {
            return Err(self.reject(name, "its `inputSchema` is no object"));
        };
        let mut config = json!({"server": self.settings.name, "tool": own});
        let mut definition = self.definition.clone();
        match (self.task_support().as_deref(), self.runs_tasks()) {
            (Some("required"), true) => {
                config["task"] = Value::Bool(true);
                definition = supporting_tasks(&definition, "optional");
            }
            (Some("required"), false) if self.server.era() == Era::Legacy => {
                let reason = "it can be called as a task only, and the server does not offer to run tasks";
                return Err(self.reject(name, reason));
            }
            // We offer to run tasks, so what a tool says of itself must hold here.
            (Some("required" | "optional"), false) => {
                definition = supporting_tasks(&definition, "forbidden");
            }
            _ => {}
        }
        Ok(Some(Descriptor {
            input_schema,
            output_schema: self.schema("outputSchema"),
            definition: Some(definition),
            ..self.with(name, config)
        }))
    }

    fn prompt(&self) -> Result<Option<Descriptor>, RejectedEntry> {
        let own = self.identity("name")?;
        if !self.settings.takes(&own) {
            return Ok(None);
        }
        let name = outward_name(&format!("{}{own}", self.settings.prefix));
        let config = json!({"server": self.settings.name, "prompt": own});
        Ok(Some(self.with(name, config)))
    }

    fn resource(&self, key: &str) -> Result<Option<Descriptor>, RejectedEntry> {
        let uri = self.identity(key)?;
        if !self.settings.takes_listed(&uri) {
            return Ok(None);
        }
        let config = json!({"server": self.settings.name, "uri": uri});
        let mut descriptor = self.with(format!("{}{uri}", self.settings.prefix), config);
        descriptor.title = descriptor.title.or_else(|| self.text("name"));
        descriptor.uri = Some(uri.into());
        Ok(Some(descriptor))
    }

    /// What all descriptors of the server's entries have in common.
    fn with(&self, name: String, config: Value) -> Descriptor {
        Descriptor {
            feature: self.feature,
            name: name.into(),
            uri: None,
            title: self.text("title"),
            description: self.text("description").unwrap_or_default(),
            version: None,
            input_schema: RawJson::from(json!({"type": "object"})),
            output_schema: None,
            executor: ExecutorSpec {
                kind: McpExecutor::KIND.to_owned(),
                config,
            },
            timeout: self.settings.timeout,
            metadata: Metadata::default(),
            overrides: Overrides::default(),
            definition: Some(self.definition.clone()),
            origin: Origin {
                place: format!("the server `{}`", self.settings.name),
                trust: Trust::Upstream,
            },
        }
    }

    /// Returns `true` if the configuration leaves the entry out.
    pub(crate) fn is_left_out(&self) -> bool {
        let own = self.text(self.key());
        own.is_some_and(|own| !self.settings.takes(&own))
    }

    /// The name under which agents see the entry, as far as it has one.
    pub(crate) fn outward(&self) -> String {
        let own = self.text(self.key()).unwrap_or_else(|| "?".to_owned());
        match self.feature {
            Feature::Tool => self.settings.outward(&own),
            Feature::Prompt => outward_name(&format!("{}{own}", self.settings.prefix)),
            _ => format!("{}{own}", self.settings.prefix),
        }
    }

    /// The member that the server knows the entry by.
    fn key(&self) -> &'static str {
        match self.feature {
            Feature::Tool | Feature::Prompt => "name",
            Feature::Resource => "uri",
            _ => "uriTemplate",
        }
    }

    /// What the server knows the entry by.
    fn identity(&self, key: &str) -> Result<String, RejectedEntry> {
        let given = |key| self.text(key).filter(|text| !text.is_empty());
        given(key).ok_or_else(|| {
            let name = given("name").unwrap_or_else(|| "?".to_owned());
            let name = format!("{}{name}", self.settings.prefix);
            self.reject(name, &format!("it has no `{key}`"))
        })
    }

    fn text(&self, key: &str) -> Option<String> {
        self.definition.get(key)?.string()
    }

    fn schema(&self, key: &str) -> Option<RawJson> {
        self.definition
            .get(key)
            .filter(|schema| schema.kind() == JsonKind::Object)
    }

    /// Whether the tool says that it can be called as a task, or must be (2025-11-25).
    fn task_support(&self) -> Option<String> {
        self.definition.get("execution")?.get("taskSupport")?.string()
    }

    /// Whether the server runs calls of tools as tasks when clients want that; later revisions leave that to the server.
    fn runs_tasks(&self) -> bool {
        self.server.era() == Era::Legacy && task::are_run(self.server)
    }

    pub(crate) fn reject(&self, name: String, reason: &str) -> RejectedEntry {
        RejectedEntry {
            feature: self.feature,
            name,
            reason: reason.to_owned(),
        }
    }
}

/// The definition of a tool with what holds for our callers: one whose tasks we drive can be called like any other, and
/// there are clients that refuse to call one that still says `required`.
fn supporting_tasks(definition: &RawJson, support: &str) -> RawJson {
    let execution = definition.get("execution").expect("it says so of tasks");
    let execution = execution
        .with_members(&[("taskSupport", RawJson::from(support))])
        .expect("what has members is an object");
    definition
        .with_members(&[("execution", execution)])
        .expect("what has members is an object")
}
