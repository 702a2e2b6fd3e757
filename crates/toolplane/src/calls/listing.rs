//! Lists that do not wait for the slowest server.

use std::{collections::HashSet, time::Duration};

use futures_util::{StreamExt as _, future::join3, stream};
use tool_core::{Caller, ClientIdentity, SourceState};

use crate::{Toolplane, View};

/// Items that a caller may see, and the servers whose lists are missing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Listing {
    /// Known items that the caller may see.
    pub view: View,
    /// Servers without a list, neither of this run nor of an earlier one, unless a rule keeps all that they may offer from the
    /// caller.
    pub missing: Vec<MissingServer>,
}

/// Server without a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingServer {
    /// Name of the server.
    pub server: String,
    /// State of the server. The reason of a failure contains no secrets.
    pub state: SourceState,
}

/// Maximum number of servers with kept lists that read them anew at the same time.
const MAX_CONFIRMED: usize = 8;

impl Toolplane {
    /// Returns the view of this caller (see [`Toolplane::view`]), and waits for each server no longer than `wait`,
    /// counted from its first start. Does not wait for, nor start, a server whose lists are cached. Other servers
    /// continue to start in the background; [`Toolplane::changes`] reports when their lists are available.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. Servers that are starting continue to start.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn list_within(&self, caller: &Caller, wait: Duration) -> Listing {
        let snapshot = self.registry().load_within(wait).await;
        Listing {
            view: self.view_of(&snapshot, caller),
            missing: self.missing_for(caller),
        }
    }

    /// Returns the view of this caller from this client: see [`Toolplane::view_for`] and [`Toolplane::list_within`].
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. Servers that are starting continue to start.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn list_within_for(&self, caller: &Caller, client: &ClientIdentity, wait: Duration) -> Listing {
        let snapshot = self.registry().load_within_for(client, wait).await;
        Listing {
            view: self.view_of(&snapshot, caller),
            missing: self.missing_for(caller),
        }
    }

    /// Offers the cached lists of an earlier run where none were read in this one. Starts nothing.
    ///
    /// # Cancellation
    /// Dropping the future ends the recall. Lists that were read until then are offered.
    pub async fn recall(&self) {
        self.registry().recall().await;
    }

    /// Returns `true` once the cached lists of an earlier run are offered: see [`Toolplane::recall`].
    #[must_use]
    pub fn has_recalled(&self) -> bool {
        self.0.registry.has_recalled()
    }

    /// Waits until the cached lists of an earlier run are offered. Begins nothing: see [`Toolplane::recall`].
    ///
    /// # Cancellation
    /// Dropping the future ends the wait.
    pub async fn recalled(&self) {
        self.0.registry.recalled().await;
    }

    /// Returns the servers without a list that may have something for this caller. The others it does not learn of.
    pub(crate) fn missing_for(&self, caller: &Caller) -> Vec<MissingServer> {
        let mut missing = self.missing();
        if !missing.is_empty() {
            let running = self.0.live.load();
            let own_rules = running.servers.own_rules();
            let rules = self.0.rules.load();
            missing.retain(|missing| {
                // The prefix of a host program's source is unknown.
                let own = own_rules.iter().find(|own| own.server == missing.server);
                own.is_none_or(|own| rules.may_admit_prefix(&own.prefix, caller))
            });
        }
        missing
    }

    /// Returns the servers without a list, for operators: a caller may not learn of each of them.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingServer> {
        let unlisted = self.0.registry.unlisted_sources();
        if unlisted.is_empty() {
            return Vec::new();
        }
        let names: HashSet<_> = unlisted.iter().map(|source| source.name()).collect();
        let sources = self.sources().into_iter();
        sources
            // A source of the host program may be ready and empty.
            .filter(|(name, status)| names.contains(name.as_str()) && status.state != SourceState::Ready)
            .map(|(server, status)| MissingServer {
                server,
                state: status.state,
            })
            .collect()
    }

    /// Starts servers before first use, and returns when all of them run or have failed: eager ones, and those
    /// without a list. Containers that a killed gateway left behind are removed. For long-running programs, in a task of its own.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. Servers that are starting continue to start.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn start_servers(&self) {
        let registry = self.registry();
        registry.recall().await;
        let sources = registry.sources();
        let kept = sources
            .iter()
            .filter(|source| source.snapshot().is_kept && !source.is_lazy());
        let kept: Vec<_> = kept.map(|source| source.load_in_background()).collect();
        // Nobody waits for these, so they leave the cores to those who ask for lists.
        let kept = stream::iter(kept).buffer_unordered(MAX_CONFIRMED).collect::<()>();
        // Started like servers that a list waits for, so that the wait counts from here.
        let live = self.0.live.load_full();
        join3(registry.load_within(Duration::MAX), kept, live.remove_leftovers()).await;
    }
}
