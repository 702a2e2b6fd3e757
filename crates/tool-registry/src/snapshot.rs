use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use foldhash::fast::RandomState;
use tool_core::{Feature, ListWarning, PrepareError, Target, Tool, ToolState, Trust, UriTemplate};

use crate::{PinSet, WithheldDefinition};

/// All tools, prompts and resources at one moment, resolved. Immutable: a call ends with the snapshot that it began with.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) revision: u64,
    /// Number that tells snapshots of single clients apart; 0 for the shared one.
    pub(crate) scope: u64,
    pub(crate) lists: [FeatureList; Feature::ALL.len()],
    /// Compiled URI templates, in the order of the resource templates.
    pub(crate) uri_templates: Vec<UriTemplate>,
    pub(crate) refused: Vec<RefusedFeature>,
    /// Entries whose definition was not accepted.
    pub(crate) withheld: Vec<WithheldDefinition>,
    /// Pins that the entries were compared with.
    pub(crate) pins: Arc<PinSet>,
    /// Warnings about names, each with the source that has the name.
    pub(crate) warnings: Vec<(String, ListWarning)>,
    /// States of missing tools whose source has not read its lists yet, because it was replaced after a change of settings.
    /// Kept for the return of the tools.
    pub(crate) retained: HashMap<(Feature, Arc<str>), Arc<ToolState>>,
    /// Revision of each source that was resolved, in the order of the sources.
    pub(crate) source_revisions: Vec<u64>,
    /// Sources whose lists were kept from an earlier run and are not confirmed yet.
    pub(crate) unconfirmed: HashSet<String, RandomState>,
}

/// Items of one feature.
#[derive(Debug, Default)]
pub(crate) struct FeatureList {
    /// Revision in which the list last changed.
    pub(crate) revision: u64,
    pub(crate) items: Vec<Arc<Tool>>,
    /// Items by name; resources and templates by URI.
    ///
    /// A server would have to know the seed of this table to choose names that collide. The hash of the standard library
    /// would also resist attackers that observe the table, but takes six times as long.
    pub(crate) by_key: HashMap<Arc<str>, Arc<Tool>, RandomState>,
}

/// A tool, prompt or resource that is not offered, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedFeature {
    /// Feature of the entry.
    pub feature: Feature,
    /// Name of its source.
    pub source: String,
    /// Name of the entry.
    pub name: String,
    /// Reason for which it is not offered.
    pub reason: String,
    /// Problems in its executor settings, if they are the reason. A loader can locate their lines.
    pub problems: Vec<PrepareError>,
    /// Executor kind that it needs, if no such executor exists.
    pub missing_kind: Option<Box<str>>,
}

impl Snapshot {
    /// Returns the revision, which grows with every change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns a unique number for a snapshot of a single client, see
    /// [`Registry::snapshot_for`](crate::Registry::snapshot_for), and 0 for the shared snapshot.
    #[must_use]
    pub fn scope(&self) -> u64 {
        self.scope
    }

    /// Returns the revision in which the list of a feature last changed. In the snapshot of a single client, it is that of the
    /// shared list.
    #[must_use]
    pub fn revision_of(&self, feature: Feature) -> u64 {
        self.feature_list(feature).revision
    }

    /// Returns the tools in the order of their names.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        self.list(Feature::Tool)
    }

    /// Returns the items of a feature in the order of their names.
    #[must_use]
    pub fn list(&self, feature: Feature) -> &[Arc<Tool>] {
        &self.feature_list(feature).items
    }

    /// Returns the tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.find(Feature::Tool, name)
    }

    /// Returns the tool or prompt of this name, or the resource or template of this URI.
    #[must_use]
    pub fn find(&self, feature: Feature, key: &str) -> Option<&Arc<Tool>> {
        self.feature_list(feature).by_key.get(key)
    }

    /// Returns the target for the resource of this URI, by the first rule that applies:
    ///
    /// 1. the listed resource
    /// 2. the first resource template that matches
    /// 3. any resource of the same scheme, if a single server has all of them: results may link to unlisted resources
    #[must_use]
    pub fn resource(&self, uri: &str) -> Option<Target> {
        let listed = self.find(Feature::Resource, uri);
        // A withheld resource is not read by way of another one.
        if listed.is_none() && self.find_withheld(Feature::Resource, uri).is_some() {
            return None;
        }
        let resource = listed.or_else(|| self.find_template(uri));
        Some(Target::Resource {
            resource: resource.or_else(|| self.find_by_scheme(uri))?.clone(),
            uri: uri.into(),
        })
    }

    fn find_template(&self, uri: &str) -> Option<&Arc<Tool>> {
        let mut templates = self
            .list(Feature::ResourceTemplate)
            .iter()
            .zip(&self.uri_templates);
        templates.find_map(|(resource, template)| template.matches(uri).then_some(resource))
    }

    fn find_by_scheme(&self, uri: &str) -> Option<&Arc<Tool>> {
        let (scheme, _) = uri.split_once(':')?;
        let is_of_scheme = |tool: &&Arc<Tool>| {
            let uri = tool.descriptor().uri.as_deref().unwrap_or_default();
            uri.strip_prefix(scheme).is_some_and(|rest| rest.starts_with(':'))
        };
        let lists = [Feature::Resource, Feature::ResourceTemplate].map(|feature| self.list(feature));
        let mut of_scheme = lists.into_iter().flatten().filter(is_of_scheme);
        let first = of_scheme.next()?;
        let owner = |tool: &Tool| tool.descriptor().origin.place.clone();
        of_scheme.all(|tool| owner(tool) == owner(first)).then_some(first)
    }

    /// Returns `true` if this is known only from a list that was kept from an earlier run: see
    /// [`Registry::confirm`](crate::Registry::confirm).
    #[must_use]
    pub fn is_unconfirmed(&self, tool: &Tool) -> bool {
        self.unconfirmed_source(tool).is_some()
    }

    /// Returns the source of a tool that is known only from a kept list. The upstream has the name of its source. A tool of
    /// the configuration or a store is on no list.
    pub(crate) fn unconfirmed_source(&self, tool: &Tool) -> Option<&str> {
        if self.unconfirmed.is_empty() || tool.descriptor().origin.trust != Trust::Upstream {
            return None;
        }
        let upstream = tool.state().upstream()?;
        self.unconfirmed.get(&**upstream.name()).map(String::as_str)
    }

    /// Returns the tool of this name if it is on a list that was read in this run.
    pub(crate) fn get_confirmed(&self, name: &str) -> Option<Arc<Tool>> {
        let tool = self.get(name)?;
        (!self.is_unconfirmed(tool)).then(|| tool.clone())
    }

    /// Returns the entries that are not offered.
    #[must_use]
    pub fn refused(&self) -> &[RefusedFeature] {
        &self.refused
    }

    /// Returns the entries that are withheld because their definition was not accepted.
    #[must_use]
    pub fn withheld(&self) -> &[WithheldDefinition] {
        &self.withheld
    }

    /// Returns the withheld entry that a name or URI stands for. The URI of a resource also stands for a withheld template that
    /// matches it, unless something else is offered under it.
    #[must_use]
    pub fn find_withheld(&self, feature: Feature, key: &str) -> Option<&WithheldDefinition> {
        if self.withheld.is_empty() {
            return None;
        }
        let of_key = |wanted: Feature| {
            let mut withheld = self.withheld.iter();
            withheld.find(|known| known.key.feature == wanted && *known.name() == *key)
        };
        let by_template = || {
            let mut withheld = self.withheld.iter();
            withheld.find(|known| {
                known.key.feature == Feature::ResourceTemplate && UriTemplate::new(&known.name()).matches(key)
            })
        };
        let found = of_key(feature);
        match feature {
            Feature::Resource if found.is_none() && self.find_template(key).is_none() => by_template(),
            _ => found,
        }
    }

    /// Returns the tool, prompt or resource of this key, whether it is offered or withheld.
    pub(crate) fn find_any(&self, feature: Feature, key: &str) -> Option<&Arc<Tool>> {
        let withheld = || {
            let mut withheld = self.withheld.iter();
            withheld.find(|known| known.key.feature == feature && *known.name() == *key)
        };
        self.find(feature, key)
            .or_else(|| withheld().map(|withheld| &withheld.tool))
    }

    /// Returns warnings about look-alike names, each with the name of its source.
    #[must_use]
    pub fn warnings(&self) -> &[(String, ListWarning)] {
        &self.warnings
    }

    pub(crate) fn feature_list(&self, feature: Feature) -> &FeatureList {
        &self.lists[index(feature)]
    }

    pub(crate) fn feature_list_mut(&mut self, feature: Feature) -> &mut FeatureList {
        &mut self.lists[index(feature)]
    }
}

fn index(feature: Feature) -> usize {
    Feature::ALL
        .iter()
        .position(|known| *known == feature)
        .expect("`ALL` has every feature")
}

/// Returns the key by which a descriptor is found: the URI of a resource or template, the name of anything else.
pub(crate) fn key(descriptor: &tool_core::Descriptor) -> Arc<str> {
    let uri = descriptor
        .uri
        .as_ref()
        .filter(|_| matches!(descriptor.feature, Feature::Resource | Feature::ResourceTemplate));
    uri.unwrap_or(&descriptor.name).clone()
}
