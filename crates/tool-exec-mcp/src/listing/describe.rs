//! Conversion of a server's lists into descriptors.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use mcp_client::ServerInfo;
use mcp_wire::Era;
use raw_json::{JsonKind, RawJson};
use serde_json::{Value, json};
use tool_core::{
    Catalogue, Descriptor, ExecutorSpec, Feature, ListWarning, Metadata, Origin, Overrides, Rejected, Trust,
    outward_name,
};

use super::definition_policy::apply_policy;
use crate::{ServerSettings, settings::EXECUTOR_KIND, tasks};

/// Result of describing a list.
#[derive(Default)]
pub(crate) struct DescribedList {
    /// Entries that can be used.
    descriptors: Vec<Arc<Descriptor>>,
    /// Entries that cannot be used, with the reason.
    rejected: Vec<Rejected>,
    /// Warnings about entries, and about the list as it was read.
    pub(crate) warnings: Vec<ListWarning>,
}

/// Makes descriptors of the entries of a list. Entries that cannot be used are rejected with the reason.
pub(crate) fn describe(
    settings: &ServerSettings,
    server: &ServerInfo,
    feature: Feature,
    list: &[RawJson],
) -> DescribedList {
    let mut names = HashSet::new();
    let mut described = DescribedList::default();
    let (descriptors, rejected) = (&mut described.descriptors, &mut described.rejected);
    for definition in list {
        let entry = ListEntry {
            settings,
            server,
            feature,
            definition,
        };
        let verdict = match apply_policy(&entry, settings) {
            Ok(verdict) => verdict,
            Err(reject) => {
                rejected.push(reject);
                continue;
            }
        };
        let entry = ListEntry {
            definition: verdict.definition.as_ref().unwrap_or(definition),
            ..entry
        };
        described.warnings.extend(verdict.warning);
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

/// Returns the catalogue with these lists replaced and the others kept. Descriptors that did not change stay the same
/// objects, so that their tools are not resolved again.
pub(crate) fn replace_lists(before: &Catalogue, mut lists: HashMap<Feature, DescribedList>) -> Catalogue {
    let previous: HashMap<_, _> = before
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
            .unwrap_or_else(|| list_of_catalogue(before, feature));
        let list = match feature {
            Feature::Tool => &mut after.tools,
            _ => &mut after.others,
        };
        list.extend(described.descriptors.into_iter().map(|descriptor| {
            match previous.get(&(feature, &descriptor.name)) {
                Some(same) if ***same == *descriptor => Arc::clone(same),
                _ => descriptor,
            }
        }));
        after.rejected.extend(described.rejected);
        after.warnings.extend(described.warnings);
    }
    after
}

fn list_of_catalogue(catalogue: &Catalogue, feature: Feature) -> DescribedList {
    let descriptors = catalogue.tools.iter().chain(&catalogue.others);
    let rejected = catalogue.rejected.iter();
    let warnings = catalogue.warnings.iter();
    DescribedList {
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
pub(crate) struct ListEntry<'a> {
    settings: &'a ServerSettings,
    server: &'a ServerInfo,
    pub(crate) feature: Feature,
    pub(crate) definition: &'a RawJson,
}

impl ListEntry<'_> {
    /// Returns the descriptor, or `None` if the configuration excludes the entry.
    fn descriptor(&self) -> Result<Option<Descriptor>, Rejected> {
        match self.feature {
            Feature::Tool => self.tool(),
            Feature::Prompt => self.prompt(),
            _ => self.resource(self.key()),
        }
    }

    fn tool(&self) -> Result<Option<Descriptor>, Rejected> {
        let upstream_name = self.identity("name")?;
        if !self.settings.offers_name(&upstream_name) {
            return Ok(None);
        }
        let name = self.settings.outward_tool_name(&upstream_name);
        let Some(input_schema) = self.schema("inputSchema") else {
            return Err(self.reject(name, "its `inputSchema` is not an object"));
        };
        let mut config = json!({"server": self.settings.name, "tool": upstream_name});
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
            // We offer to run tasks, so the tool's own statement must hold here.
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

    fn prompt(&self) -> Result<Option<Descriptor>, Rejected> {
        let upstream_name = self.identity("name")?;
        if !self.settings.offers_name(&upstream_name) {
            return Ok(None);
        }
        let name = outward_name(&format!("{}{upstream_name}", self.settings.prefix));
        let config = json!({"server": self.settings.name, "prompt": upstream_name});
        Ok(Some(self.with(name, config)))
    }

    fn resource(&self, key: &str) -> Result<Option<Descriptor>, Rejected> {
        let uri = self.identity(key)?;
        if !self.settings.offers_listed_uri(&uri) {
            return Ok(None);
        }
        let config = json!({"server": self.settings.name, "uri": uri});
        let mut descriptor = self.with(format!("{}{uri}", self.settings.prefix), config);
        descriptor.title = descriptor.title.or_else(|| self.text("name"));
        descriptor.uri = Some(uri.into());
        Ok(Some(descriptor))
    }

    /// Returns a descriptor with the members that all entries of the server have in common.
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
                kind: EXECUTOR_KIND.to_owned(),
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

    /// Returns `true` if the configuration excludes the entry.
    pub(crate) fn is_left_out(&self) -> bool {
        let upstream_name = self.text(self.key());
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

    /// Key of the member that identifies the entry at the server.
    fn key(&self) -> &'static str {
        match self.feature {
            Feature::Tool | Feature::Prompt => "name",
            Feature::Resource => "uri",
            _ => "uriTemplate",
        }
    }

    /// Returns the server's name or URI for the entry.
    fn identity(&self, key: &str) -> Result<String, Rejected> {
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

    /// Returns the tool's `taskSupport` (revision 2025-11-25).
    fn task_support(&self) -> Option<String> {
        self.definition.get("execution")?.get("taskSupport")?.string()
    }

    /// Returns `true` if the server runs calls as tasks when clients ask for it. Later revisions leave that decision to
    /// the server.
    fn runs_tasks(&self) -> bool {
        self.server.era() == Era::Legacy && tasks::runs_tasks(self.server)
    }

    pub(crate) fn reject(&self, name: String, reason: &str) -> Rejected {
        Rejected {
            feature: self.feature,
            name,
            reason: reason.to_owned(),
        }
    }
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
