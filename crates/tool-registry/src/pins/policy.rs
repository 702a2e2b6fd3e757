use std::{collections::HashMap, fmt, sync::Arc};

use tool_core::{Descriptor, Feature, PinMode, Trust};

use super::{MemoryPins, Pins};

/// Pins of a registry: their storage, and the mode of each source.
#[derive(Clone)]
pub struct PinPolicy {
    store: Arc<dyn Pins>,
    mode: PinMode,
    modes: HashMap<String, PinMode>,
}

impl PinPolicy {
    /// Creates a policy with this storage, by which no source is pinned.
    #[must_use]
    pub fn new(store: Arc<dyn Pins>) -> Self {
        Self {
            store,
            mode: PinMode::Off,
            modes: HashMap::new(),
        }
    }

    /// Sets the mode of definitions that servers send, for sources without their own mode.
    #[must_use]
    pub fn with_mode(mut self, mode: PinMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the mode of a source, also for tools that an operator wrote.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<String>, mode: PinMode) -> Self {
        self.modes.insert(source.into(), mode);
        self
    }

    /// Returns the storage.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Pins> {
        &self.store
    }

    /// Returns the mode of definitions with this trust from this source. Without a mode of their source, tools of the
    /// configuration and of a store are not pinned.
    #[must_use]
    pub fn mode_of(&self, source: &str, trust: Trust) -> PinMode {
        match (self.modes.get(source), trust) {
            (Some(mode), _) => *mode,
            (None, Trust::Operator | Trust::Agent) => PinMode::Off,
            (None, _) => self.mode,
        }
    }
}

impl Default for PinPolicy {
    fn default() -> Self {
        Self::new(Arc::new(MemoryPins::default()))
    }
}

impl fmt::Debug for PinPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinPolicy")
            .field("mode", &self.mode)
            .field("modes", &self.modes)
            .finish_non_exhaustive()
    }
}

/// Returns the name or URI of an entry at its source.
pub(crate) fn upstream_name(descriptor: &Descriptor) -> Arc<str> {
    match (descriptor.feature, &descriptor.uri, &descriptor.definition) {
        (Feature::Resource | Feature::ResourceTemplate, Some(uri), _) => uri.clone(),
        (_, _, Some(definition)) => {
            let name = definition.as_part().get("name").and_then(|name| name.text());
            name.map_or_else(|| descriptor.name.clone(), Into::into)
        }
        _ => descriptor.name.clone(),
    }
}
