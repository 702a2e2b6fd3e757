//! Lookup of tools, prompts and resources, and of the sources that they come from.

use std::sync::Arc;

use tool_core::{
    Catalogue, ClientIdentity, Descriptor, Feature, Source, SourceState, SourceStatus, Target, Tool,
};

use super::Registry;
use crate::Snapshot;

impl Registry {
    /// Returns the tool of this name from the present snapshot: the fast path of [`Registry::find`].
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Tool>> {
        self.0.snapshot.load().get(name).cloned()
    }

    /// Returns the tool of this name from the present snapshot, or `None` if it still needs [`Registry::confirm`].
    #[must_use]
    pub fn get_confirmed(&self, name: &str) -> Option<Arc<Tool>> {
        self.0.snapshot.load().get_confirmed(name)
    }

    /// Returns the tool of this name. Sources that may hold it and are not loaded yet are loaded first. The tool may come from
    /// a list that was kept from an earlier run: see [`Registry::confirm`].
    ///
    /// # Cancellation
    /// Dropping the future stops waiting for the sources. A source that others load as well is loaded for them.
    pub async fn find(&self, name: &str) -> Option<Arc<Tool>> {
        match self.get(name) {
            Some(tool) => Some(tool),
            None => {
                self.find_in(None, Feature::Tool, name, |snapshot| snapshot.get(name).cloned())
                    .await
            }
        }
    }

    /// Returns the prompt of this name, see [`Registry::find`].
    ///
    /// # Cancellation
    /// As for [`Registry::find`].
    pub async fn find_prompt(&self, name: &str) -> Option<Arc<Tool>> {
        let look = |snapshot: &Snapshot| snapshot.find(Feature::Prompt, name).cloned();
        self.find_in(None, Feature::Prompt, name, look).await
    }

    /// Returns the resource of this URI, see [`Snapshot::resource`] and [`Registry::find`].
    ///
    /// # Cancellation
    /// As for [`Registry::find`].
    pub async fn find_resource(&self, uri: &str) -> Option<Target> {
        self.find_in(None, Feature::Resource, uri, |snapshot| snapshot.resource(uri))
            .await
    }

    /// Returns the resource template with exactly this text, see [`Registry::find`].
    ///
    /// # Cancellation
    /// As for [`Registry::find`].
    pub async fn find_template(&self, uri_template: &str) -> Option<Arc<Tool>> {
        let look = |snapshot: &Snapshot| snapshot.find(Feature::ResourceTemplate, uri_template).cloned();
        self.find_in(None, Feature::ResourceTemplate, uri_template, look)
            .await
    }

    /// Returns the result of `look` on the snapshot of a client, or on the shared snapshot without a client. Sources that may
    /// hold this name or URI and are not loaded yet are loaded first.
    ///
    /// # Cancellation
    /// As for [`Registry::find`].
    pub async fn find_in<T>(
        &self,
        client: Option<&ClientIdentity>,
        feature: Feature,
        key: &str,
        look: impl Fn(&Snapshot) -> Option<T>,
    ) -> Option<T> {
        // No snapshot is held while sources are loaded.
        let snapshot = || client.map_or_else(|| self.snapshot(), |client| self.snapshot_for(client));
        if let Some(found) = look(&snapshot()) {
            return Some(found);
        }
        self.recall().await;
        if let Some(found) = look(&snapshot()) {
            return Some(found);
        }
        self.load_matching(|source| source.may_hold(feature, key)).await;
        if let Some(client) = client {
            self.refresh_for(client).await;
        }
        look(&snapshot())
    }

    /// Returns the names that a tool's name may stand for if it is on no list: `{server}_{tool}` stands for `{server}__{tool}`.
    /// With several names, or with none that exists, it stands for nothing.
    #[must_use]
    pub fn expand_name(&self, name: &str) -> Vec<String> {
        self.0.parts.load().namespaces.expand(name)
    }

    /// Returns the spelling `{server}_{tool}` of a tool's name if calls find the tool under it: it stands for this tool only, and
    /// no tool has it as its name.
    #[must_use]
    pub fn short_spelling(&self, name: &str) -> Option<String> {
        let parts = self.0.parts.load();
        let spelling = parts.namespaces.contract(name)?;
        let snapshot = self.0.snapshot.load();
        let expanded = parts.namespaces.expand(&spelling);
        let mut others = expanded.iter().filter(|other| **other != *name);
        let is_free = snapshot.find_any(Feature::Tool, &spelling).is_none()
            && others.all(|other| snapshot.find_any(Feature::Tool, other).is_none());
        (is_free && expanded.iter().any(|one| one == name)).then_some(spelling)
    }

    /// Loads the source of a tool, prompt or resource that is known only from a list of an earlier run. Returns `true` if it
    /// was such a one, and must be looked up again. If the source cannot be loaded, its kept lists stay.
    ///
    /// # Cancellation
    /// As for [`Registry::find`]. The kept lists stay.
    pub async fn confirm(&self, tool: &Tool) -> bool {
        let snapshot = self.snapshot();
        let source = snapshot.unconfirmed_source(tool).map(str::to_owned);
        drop(snapshot);
        match source {
            Some(name) => {
                self.load_matching(|source| source.name() == name).await;
                true
            }
            None => false,
        }
    }

    /// Returns the source that may have a tool or prompt of this name, or a resource of this URI, and has failed or was
    /// stopped, with its status. Explains to a caller why the feature is missing.
    #[must_use]
    pub fn find_failed_source(&self, feature: Feature, name: &str) -> Option<(String, SourceStatus)> {
        let parts = self.0.parts.load();
        let mut owners = parts
            .sources
            .iter()
            .filter(|source| source.may_hold(feature, name));
        owners.find_map(|source| {
            let status = source.status();
            let is_missing = matches!(status.state, SourceState::Failed(_) | SourceState::Stopped);
            is_missing.then(|| (source.name().to_owned(), status))
        })
    }

    /// Returns the source that lists this tool, prompt or resource now.
    #[must_use]
    pub fn find_source(&self, tool: &Tool) -> Option<Arc<dyn Source>> {
        self.find_source_in(tool, |source| source.snapshot())
    }

    /// Returns the source that lists this tool, prompt or resource for a client.
    #[must_use]
    pub fn find_source_for(&self, tool: &Tool, client: &ClientIdentity) -> Option<Arc<dyn Source>> {
        let lists = |source: &dyn Source| source.snapshot_for(client).unwrap_or_else(|| source.snapshot());
        self.find_source_in(tool, lists)
    }

    fn find_source_in(
        &self,
        tool: &Tool,
        lists: impl Fn(&dyn Source) -> Arc<Catalogue>,
    ) -> Option<Arc<dyn Source>> {
        let is_same =
            |known: &Arc<Descriptor>| Arc::ptr_eq(known, tool.descriptor()) || known == tool.descriptor();
        let parts = self.0.parts.load();
        let source = parts.sources.iter().find(|source| {
            let catalogue = lists(&***source);
            catalogue.tools.iter().chain(&catalogue.others).any(is_same)
        });
        source.cloned()
    }
}
