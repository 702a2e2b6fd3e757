use std::{collections::HashMap, sync::Arc};

use tool_core::{Executor, Settings, Source};

use crate::PinPolicy;

/// Parts that a [`Registry`](crate::Registry) is made from.
#[derive(Default)]
#[non_exhaustive]
pub struct RegistryParts {
    /// Sources of tools, in order of precedence: of two tools with the same name, the one of the earlier source is offered.
    pub sources: Vec<Arc<dyn Source>>,
    /// Executors that run the tools.
    pub executors: Vec<Arc<dyn Executor>>,
    /// Settings of tools without their own and without those of an upstream.
    pub defaults: Settings,
    /// Settings of the tools of an upstream, instead of the defaults, by the upstream's name.
    pub upstreams: HashMap<String, Settings>,
    /// Pins of definitions. By default no source is pinned.
    pub pins: PinPolicy,
}

impl RegistryParts {
    /// Sets the sources of tools.
    #[must_use]
    pub fn with_sources(mut self, sources: impl IntoIterator<Item = Arc<dyn Source>>) -> Self {
        self.sources = sources.into_iter().collect();
        self
    }

    /// Sets the executors that run the tools.
    #[must_use]
    pub fn with_executors(mut self, executors: impl IntoIterator<Item = Arc<dyn Executor>>) -> Self {
        self.executors = executors.into_iter().collect();
        self
    }

    /// Sets the settings of tools without their own.
    #[must_use]
    pub fn with_defaults(mut self, defaults: Settings) -> Self {
        self.defaults = defaults;
        self
    }

    /// Sets the settings of the tools of each upstream.
    #[must_use]
    pub fn with_upstreams(mut self, upstreams: HashMap<String, Settings>) -> Self {
        self.upstreams = upstreams;
        self
    }

    /// Sets the pins of definitions.
    #[must_use]
    pub fn with_pins(mut self, pins: PinPolicy) -> Self {
        self.pins = pins;
        self
    }
}
