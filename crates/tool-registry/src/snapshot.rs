use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use foldhash::fast::RandomState;
use tool_core::{Feature, ListWarning, PrepareError, Target, Tool, ToolState, Trust, UriTemplate};

/// All tools at one time, resolved, with the prompts and resources of servers. Immutable: a call that began with it
/// ends with it.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) revision: u64,
    /// Tells snapshots of single clients apart; 0 for the one that everyone else sees.
    pub(crate) scope: u64,
    pub(crate) shelves: [Shelf; Feature::ALL.len()],
    /// What a template's URIs look like, in the order of the templates.
    pub(crate) uri_templates: Vec<UriTemplate>,
    pub(crate) refused: Vec<RefusedFeature>,
    /// Warnings about names, with the source that has the name.
    pub(crate) warnings: Vec<(String, ListWarning)>,
    /// What is known of tools that are not there while the lists of their server are still to be read: another one is in its
    /// place since its settings changed. By what they are found by.
    pub(crate) awaited: HashMap<(Feature, Arc<str>), Arc<ToolState>>,
    /// Which revision of each source went in, in the order of the sources.
    pub(crate) seen: Vec<u64>,
    /// The sources whose lists were kept from an earlier run and are not confirmed yet.
    pub(crate) kept: HashSet<String>,
}

/// All of one kind.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    /// The revision in which this last became another list.
    pub(crate) revision: u64,
    pub(crate) items: Vec<Arc<Tool>>,
    /// By name; resources and templates by URI. A server whose names were made to collide would have to know the seed
    /// of this very table; the standard library's hash, of which no key can be guessed at all, takes six times as long.
    pub(crate) by_key: HashMap<Arc<str>, Arc<Tool>, RandomState>,
}

/// A tool, prompt or resource that is not offered, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedFeature {
    /// What it is.
    pub feature: Feature,
    /// The source that has it.
    pub source: String,
    /// The tool's name.
    pub name: String,
    /// Why it is not offered.
    pub reason: String,
    /// The problems in its executor's settings, if it is those: a loader knows their lines.
    pub problems: Vec<PrepareError>,
    /// The kind of executor that it needs, if there is none.
    pub missing_kind: Option<Box<str>>,
}

impl Snapshot {
    /// Grows with every change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// A number that no other client's snapshot has, of one that is made for a single client
    /// ([`Registry::snapshot_for`](crate::Registry::snapshot_for)); 0 for the snapshot that everyone else sees.
    #[must_use]
    pub fn scope(&self) -> u64 {
        self.scope
    }

    /// The revision in which the list of this kind last changed. In the snapshot of a single client, that of the list
    /// that everyone else sees.
    #[must_use]
    pub fn revision_of(&self, feature: Feature) -> u64 {
        self.shelf(feature).revision
    }

    /// The tools in the order of their names: the same list for everyone, every time.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        self.list(Feature::Tool)
    }

    /// All of a kind in the order of their names.
    #[must_use]
    pub fn list(&self, feature: Feature) -> &[Arc<Tool>] {
        &self.shelf(feature).items
    }

    /// The tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.find(Feature::Tool, name)
    }

    /// The tool or prompt of this name, or the resource or template of this URI.
    #[must_use]
    pub fn find(&self, feature: Feature, key: &str) -> Option<&Arc<Tool>> {
        self.shelf(feature).by_key.get(key)
    }

    /// What stands for the resource of this URI: itself if it is listed, or else the first template that it fits, or
    /// else, for one that is listed nowhere, one of the only server that has resources of its scheme: results link to
    /// such.
    #[must_use]
    pub fn resource(&self, uri: &str) -> Option<Target> {
        let listed = self.find(Feature::Resource, uri);
        let resource = listed.or_else(|| self.fitting_template(uri));
        Some(Target::Resource {
            resource: resource.or_else(|| self.only_of_scheme(uri))?.clone(),
            uri: uri.into(),
        })
    }

    fn fitting_template(&self, uri: &str) -> Option<&Arc<Tool>> {
        let mut templates = self
            .list(Feature::ResourceTemplate)
            .iter()
            .zip(&self.uri_templates);
        templates.find_map(|(resource, template)| template.matches(uri).then_some(resource))
    }

    fn only_of_scheme(&self, uri: &str) -> Option<&Arc<Tool>> {
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

    /// Whether this is known only from a list that was kept from an earlier run: see
    /// [`Registry::confirm`](crate::Registry::confirm).
    #[must_use]
    pub fn is_unconfirmed(&self, tool: &Tool) -> bool {
        self.kept_source(tool).is_some()
    }

    /// The source of this, if it is known only from a kept list. What runs it has the name of its source. A tool that the
    /// operator wrote is on no list.
    pub(crate) fn kept_source(&self, tool: &Tool) -> Option<&str> {
        if self.kept.is_empty() || tool.descriptor().origin.trust == Trust::Operator {
            return None;
        }
        let upstream = tool.state().upstream()?;
        self.kept.get(&**upstream.name()).map(String::as_str)
    }

    /// The tool of this name, if it is on a list that was read in this run.
    pub(crate) fn get_confirmed(&self, name: &str) -> Option<Arc<Tool>> {
        let tool = self.get(name)?;
        (!self.is_unconfirmed(tool)).then(|| tool.clone())
    }

    /// What is not offered.
    #[must_use]
    pub fn refused(&self) -> &[RefusedFeature] {
        &self.refused
    }

    /// Warnings about names of several sources, each with the source that it is about.
    #[must_use]
    pub fn warnings(&self) -> &[(String, ListWarning)] {
        &self.warnings
    }

    pub(crate) fn shelf(&self, feature: Feature) -> &Shelf {
        &self.shelves[index(feature)]
    }

    pub(crate) fn shelf_mut(&mut self, feature: Feature) -> &mut Shelf {
        &mut self.shelves[index(feature)]
    }
}

fn index(feature: Feature) -> usize {
    Feature::ALL
        .iter()
        .position(|known| *known == feature)
        .expect("every kind is among all kinds")
}

/// What a thing of this kind is found by.
pub(crate) fn key(descriptor: &tool_core::Descriptor) -> Arc<str> {
    let uri = descriptor
        .uri
        .as_ref()
        .filter(|_| matches!(descriptor.feature, Feature::Resource | Feature::ResourceTemplate));
    uri.unwrap_or(&descriptor.name).clone()
}
