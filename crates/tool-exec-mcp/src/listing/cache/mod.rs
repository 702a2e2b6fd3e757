//! Cache of the last lists of each server: the port, and its implementations in memory and on disk.

mod file;
mod format;
mod memory;
mod private_folder;
mod server_cache;

use std::{collections::HashMap, fmt, io};

use mcp_client::ServerInfo;
use raw_json::RawJson;
use serde_json::json;
use tool_core::{BoxFuture, Feature};

pub(crate) use self::server_cache::ServerListCache;
pub use self::{file::FileListCache, memory::MemoryListCache, private_folder::PrivateFolder};
use crate::ServerSettings;

/// Stores the last lists of servers, so that they can be offered before the servers run.
///
/// Lists are raw: as the server wrote them. Filters, names and limits of the configuration are applied whenever a list
/// is loaded, as they are to a list that was just read. Implementations log failures and do not return them: lists that
/// cannot be stored or loaded are read from their servers again.
///
/// # Cancellation
/// The futures may be dropped at any time. Each entry must then be as it was, or as it was to become.
pub trait ListCache: fmt::Debug + Send + Sync {
    /// Loads the lists of many servers at once, in the order of the keys; `None` for each key without lists.
    fn load<'a>(&'a self, keys: &'a [ListCacheKey]) -> BoxFuture<'a, Vec<Option<CachedLists>>>;

    /// Stores the lists of a server, and replaces those stored under the same key.
    fn save(&self, key: ListCacheKey, lists: CachedLists) -> BoxFuture<'_, ()>;

    /// Deletes the lists of the server of this name in every configuration, or those of all servers. Returns the number
    /// of deleted entries.
    ///
    /// # Errors
    /// When an existing entry cannot be deleted.
    fn forget<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, io::Result<usize>>;
}

/// Identifies the lists of one server in one configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListCacheKey {
    server: String,
    digest: String,
}

/// Lists of a server, as the server wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachedLists {
    /// The server's description of itself when it gave the lists.
    pub server: ServerInfo,
    /// Entries of each list that was read.
    pub lists: HashMap<Feature, Vec<RawJson>>,
}

impl ListCacheKey {
    /// The key of a server with these settings.
    ///
    /// The digest covers every setting that decides which lists the server gives. These are the way to reach it, with
    /// `${…}` references as they are written and not with their values; the protocol era; and the isolation, by which
    /// the connection that lists declares other capabilities. Filters and names are applied later and do not count.
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

    /// SHA-256 of the settings, in hexadecimal digits.
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

    /// Writes the lists as the text of a file or database.
    #[must_use]
    pub fn to_text(&self, key: &ListCacheKey) -> String {
        format::write(key, self)
    }

    /// Reads the text that [`CachedLists::to_text`] wrote for this key.
    ///
    /// # Errors
    /// The first problem, as a fragment, if the text is another one.
    pub fn from_text(key: &ListCacheKey, text: impl Into<Vec<u8>>) -> Result<Self, String> {
        format::read(key, text.into())
    }

    /// Applies `change` to every value that the server wrote. `change` returns `None` for a value that stays.
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
