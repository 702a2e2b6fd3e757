//! Documents that were read, and read again when they change.

use std::{collections::BTreeMap, sync::Arc};

use sha2::{Digest as _, Sha256};
use tool_registry::{ServerRecord, StoreError, ToolAlias};

use crate::{
    content::{tool_document, tool_folder},
    disk::{Disk, Stamp},
    documents::{Document, Tool, file_name, name_of},
};

/// Document of the aliases.
pub(crate) const ALIASES: &str = "aliases.json";

/// All documents of a directory.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) tools: BTreeMap<String, Part<Tool>>,
    pub(crate) aliases: Option<Part<BTreeMap<String, ToolAlias>>>,
    pub(crate) servers: BTreeMap<String, Part<ServerRecord>>,
}

/// Document as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Part<T> {
    stamp: Stamp,
    pub(crate) digest: [u8; 32],
    content: Result<Arc<T>, String>,
}

/// Returns the document of a server.
pub(crate) fn server_document(server: &str) -> String {
    format!("servers/{}.json", file_name(server))
}

impl Tree {
    /// Reads the documents that changed.
    pub(crate) fn scan(&mut self, disk: &Disk) -> Result<(), StoreError> {
        let mut tools = BTreeMap::new();
        for name in disk
            .entries("tools", true)?
            .iter()
            .filter_map(|folder| name_of(folder))
        {
            // Its permissions are checked on the way.
            disk.entries(&tool_folder(&name), true)?;
            let known = self.tools.remove(&name);
            if let Some(part) = Part::load(disk, &tool_document(&name), &name, known)? {
                tools.insert(name, part);
            }
        }
        self.tools = tools;
        self.aliases = Part::load(disk, ALIASES, "", self.aliases.take())?;
        let mut servers = BTreeMap::new();
        for file in disk.entries("servers", false)? {
            let Some(name) = file.strip_suffix(".json").and_then(name_of) else {
                continue;
            };
            let known = self.servers.remove(&name);
            if let Some(part) = Part::load(disk, &server_document(&name), &name, known)? {
                servers.insert(name, part);
            }
        }
        self.servers = servers;
        Ok(())
    }

    /// Returns `true` if the document of a tool is the one that was read.
    pub(crate) fn is_current(&self, disk: &Disk, tool: &str) -> Result<bool, StoreError> {
        let known = self.tools.get(tool).map(|part| part.stamp);
        Ok(disk.stamp(&tool_document(tool))? == known)
    }

    /// Returns a tool.
    ///
    /// # Errors
    /// If its document cannot be used.
    pub(crate) fn tool(&self, name: &str) -> Result<Option<&Arc<Tool>>, StoreError> {
        let part = self.tools.get(name);
        part.map(|part| part.content(|| tool_document(name))).transpose()
    }

    /// Returns the aliases.
    ///
    /// # Errors
    /// If their document cannot be used.
    pub(crate) fn aliases(&self) -> Result<BTreeMap<String, ToolAlias>, StoreError> {
        match &self.aliases {
            Some(part) => part
                .content(|| ALIASES.to_owned())
                .map(|aliases| (**aliases).clone()),
            None => Ok(BTreeMap::new()),
        }
    }

    /// Returns the servers.
    ///
    /// # Errors
    /// If the document of one cannot be used.
    pub(crate) fn servers(&self) -> Result<Vec<ServerRecord>, StoreError> {
        let servers = self.servers.iter().map(|(name, part)| {
            let server = part.content(|| server_document(name))?;
            Ok((**server).clone())
        });
        servers.collect()
    }

    /// Returns a server.
    ///
    /// # Errors
    /// If its document cannot be used.
    pub(crate) fn server(&self, name: &str) -> Result<Option<&Arc<ServerRecord>>, StoreError> {
        let part = self.servers.get(name);
        part.map(|part| part.content(|| server_document(name)))
            .transpose()
    }

    /// Returns the digest of all servers together; `None` if there is none.
    pub(crate) fn servers_digest(&self) -> Option<[u8; 32]> {
        if self.servers.is_empty() {
            return None;
        }
        let mut digest = Sha256::new();
        for (name, part) in &self.servers {
            digest.update(Sha256::digest(name));
            digest.update(part.digest);
        }
        Some(digest.finalize().into())
    }
}

impl<T: Document> Part<T> {
    /// Reads a document unless it is the known one. `None` if there is none.
    fn load(disk: &Disk, path: &str, name: &str, known: Option<Self>) -> Result<Option<Self>, StoreError> {
        let Some(stamp) = disk.stamp(path)? else {
            return Ok(None);
        };
        if known.as_ref().is_some_and(|known| known.stamp == stamp) {
            return Ok(known);
        }
        let Some(text) = disk.read(path)? else {
            return Ok(None);
        };
        let content = T::parse(name, &text).map(Arc::new);
        // Another program may be writing it: the known one is good until it has finished.
        if let (Err(_), Some(known)) = (&content, known)
            && stamp.is_fresh()
        {
            return Ok(Some(known));
        }
        Ok(Some(Self {
            stamp,
            digest: Sha256::digest(&text).into(),
            content,
        }))
    }
}

impl<T> Part<T> {
    fn content(&self, path: impl FnOnce() -> String) -> Result<&Arc<T>, StoreError> {
        let unusable = |reason: &String| StoreError::corrupt(format!("`{}`", path()), reason);
        self.content.as_ref().map_err(unusable)
    }
}
