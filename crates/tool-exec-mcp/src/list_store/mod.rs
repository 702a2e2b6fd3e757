//! The port for the last lists that servers gave, and its implementations in memory and on disk.

mod file;
mod format;
mod memory;

use std::{collections::HashMap, fmt, io};

use mcp_client::ServerInfo;
use raw_json::RawJson;
use serde_json::json;
use tool_core::{BoxFuture, Feature};

pub use self::{file::FileListCache, memory::MemoryListCache};
use crate::ServerSettings;

/// Stores the last lists that servers gave, so that they can be served before the servers run.
///
/// A list is raw: as the server wrote it. Filters, names and limits of the configuration are applied whenever a list is
/// loaded, as they are to a list that was just read. No implementation fails loudly: lists that cannot be stored or loaded
/// are read from their servers again.
pub trait ListCache: fmt::Debug + Send + Sync {
    /// Loads the lists of many servers at once, in the order of the keys; `None` for those of which there are none.
    fn load<'a>(&'a self, keys: &'a [ListCacheKey]) -> BoxFuture<'a, Vec<Option<CachedLists>>>;

    /// Stores the lists of a server instead of those stored under the same key.
    fn save(&self, key: ListCacheKey, lists: CachedLists) -> BoxFuture<'_, ()>;

    /// Deletes the lists of the server of this name, in whatever configuration, or those of all servers. Returns how many
    /// were deleted.
    ///
    /// # Errors
    /// When something is there that cannot be deleted.
    fn forget<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, io::Result<usize>>;
}

/// Identifies the lists of one server in one configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListCacheKey {
    server: String,
    digest: String,
}

/// The lists of a server, as the server wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachedLists {
    /// The server's description of itself when it gave the lists.
    pub server: ServerInfo,
    /// The entries of each list that was read.
    pub lists: HashMap<Feature, Vec<RawJson>>,
}

impl ListCacheKey {
    /// The key of a server with these settings.
    ///
    /// The digest covers everything that decides which list the server gives: how it is reached, with `${…}` references as
    /// they are written and not with their values, the protocol era, and the isolation, by which the connection that lists
    /// declares other capabilities. Filters and names are applied later and do not count.
    #[must_use]
    pub fn new(settings: &ServerSettings) -> Self {
        Self::with_target(settings, &settings.target_digest())
    }

    pub(crate) fn with_target(settings: &ServerSettings, target_digest: &[u8; 32]) -> Self {
        let written = json!([
            settings.name,
            raw_json::hex(target_digest),
            format!("{:?}", settings.era),
            format!("{:?}", settings.isolation),
        ]);
        Self {
            server: settings.name.clone(),
            digest: raw_json::hex(&raw_json::digest(&RawJson::from(written))),
        }
    }

    /// The server's name.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The SHA-256 of the settings, in hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

impl CachedLists {
    /// Lists of a server that describes itself like this.
    #[must_use]
    pub fn new(server: ServerInfo, lists: HashMap<Feature, Vec<RawJson>>) -> Self {
        Self { server, lists }
    }

    /// The same lists with `change` applied to every value that the server wrote; `change` returns `None` for a value that
    /// stays.
    #[must_use]
    pub fn map(mut self, change: impl Fn(&RawJson) -> Option<RawJson>) -> Self {
        let apply = |value: &mut RawJson| {
            if let Some(changed) = change(value) {
                *value = changed;
            }
        };
        let info = &mut self.server;
        apply(&mut info.capabilities);
        info.implementation.iter_mut().for_each(apply);
        info.instructions.iter_mut().for_each(apply);
        self.lists.values_mut().flatten().for_each(apply);
        self
    }
}
