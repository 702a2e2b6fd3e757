//! The store of the configuration, for verbs that ask running gateways otherwise.

use toolplane::{Toolplane, manifest::Loaded};

use crate::{
    command::Options,
    config,
    error::CliError,
    output::Console,
    store::{OpenStore, open_store},
};

/// Configuration and its store.
pub(super) struct OfflineStore {
    pub(super) loaded: Loaded,
    pub(super) store: OpenStore,
}

impl OfflineStore {
    /// Opens the store of the configuration if no gateway was reached, or if the command line names the configuration. `None` if
    /// there is no store to open; the configuration that is found by itself may be missing.
    ///
    /// # Errors
    /// If the configuration or its store cannot be used.
    pub(super) async fn open(
        options: &Options,
        is_reached: bool,
        console: Console,
    ) -> Result<Option<Self>, CliError> {
        if is_reached && options.config.is_empty() {
            return Ok(None);
        }
        let Ok(files) = config::files(options) else {
            return Ok(None);
        };
        let loaded = config::read(files, console)?;
        let store = open_store(&loaded).await?;
        Ok(store.map(|store| Self { loaded, store }))
    }

    /// Builds a toolplane of the configuration without its store and its servers, for what it knows about secrets.
    ///
    /// # Errors
    /// If the configuration cannot be used.
    pub(super) fn plane(&self) -> Result<Toolplane, CliError> {
        Ok(config::local_builder(&self.loaded).build()?)
    }
}
