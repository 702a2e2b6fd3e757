use std::collections::BTreeSet;

use mcp_wire::{RpcError, code};
use parking_lot::Mutex;

/// URIs of the resources, or ids of the tasks, that one client has subscribed to.
#[derive(Debug, Default)]
pub(crate) struct UriSet(Mutex<BTreeSet<String>>);

/// Maximum number of members of one set.
pub(super) const MAX_URIS: usize = 1024;
/// Maximum length of a URI or id, in bytes.
pub(super) const MAX_URI: usize = 8 * 1024;

impl UriSet {
    /// Adds a URI.
    pub(crate) fn insert(&self, uri: String) -> Result<(), RpcError> {
        let mut uris = self.0.lock();
        if uri.len() > MAX_URI || uris.len() >= MAX_URIS && !uris.contains(&uri) {
            let message =
                format!("at most {MAX_URIS} subscriptions with names of up to {MAX_URI} bytes are allowed");
            return Err(RpcError::new(code::INVALID_PARAMS, message));
        }
        uris.insert(uri);
        Ok(())
    }

    /// Removes all except these.
    pub(crate) fn retain(&self, kept: &[String]) {
        self.0.lock().retain(|uri| kept.contains(uri));
    }

    pub(crate) fn remove(&self, uri: &str) {
        self.0.lock().remove(uri);
    }

    pub(crate) fn to_vec(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.0.lock().contains(uri)
    }

    /// Returns `true` if the set has the resource, or one that it is part of.
    pub(super) fn covers(&self, uri: &str) -> bool {
        let uris = self.0.lock();
        uris.contains(uri)
            || uris.iter().any(|whole| {
                let rest = uri.strip_prefix(whole.as_str());
                rest.is_some_and(|rest| whole.ends_with('/') || rest.starts_with(['/', '?', '#']))
            })
    }
}
