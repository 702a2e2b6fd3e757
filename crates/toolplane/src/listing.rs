//! Lists that do not wait for the slowest server.

use std::{collections::HashSet, time::Duration};

use futures_util::future::{join, join_all};
use tool_core::{Caller, ClientIdentity, SourceState};

use crate::{Toolplane, View};

/// The things that a caller may see, and the servers whose lists are missing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Listing {
    /// Everything that is known, as far as the caller may see it.
    pub view: View,
    /// The servers of which no list is known, neither of this run nor of an earlier one.
    pub missing: Vec<MissingServer>,
}

/// A server of which no list is known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingServer {
    /// The server's name.
    pub server: String,
    /// The state of the server. The reason of a failure is without secrets.
    pub state: SourceState,
}

impl Toolplane {
    /// Lists what this caller may see, see [`Toolplane::list`], and waits for each server no longer than `wait` from the time
    /// when it was first started. A server whose lists were kept from an earlier run is not waited for, and not started.
    /// Others go on starting in the background; [`Toolplane::changes`] tells when their lists are there.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn list_within(&self, caller: &Caller, wait: Duration) -> Listing {
        let snapshot = self.0.registry.load_within(wait).await;
        Listing {
            view: self.view(&snapshot, caller),
            missing: self.missing(),
        }
    }

    /// Lists what this caller may see from this client, see [`Toolplane::list_for`] and [`Toolplane::list_within`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn list_within_for(&self, caller: &Caller, client: &ClientIdentity, wait: Duration) -> Listing {
        let snapshot = self.0.registry.load_within_for(client, wait).await;
        Listing {
            view: self.view(&snapshot, caller),
            missing: self.missing(),
        }
    }

    /// Offers the lists that were kept from an earlier run, where none were read in this one. Starts nothing.
    pub async fn recall(&self) {
        self.0.registry.recall().await;
    }

    /// The servers of which no list is known now.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingServer> {
        let unlisted = self.0.registry.unlisted_sources();
        if unlisted.is_empty() {
            return Vec::new();
        }
        let names: HashSet<_> = unlisted.iter().map(|source| source.name()).collect();
        let sources = self.sources().into_iter();
        sources
            // A source of the program's own may be ready and have nothing.
            .filter(|(name, status)| names.contains(name.as_str()) && status.state != SourceState::Ready)
            .map(|(server, status)| MissingServer {
                server,
                state: status.state,
            })
            .collect()
    }

    /// Starts servers before anybody needs them, and returns when all of them run or have failed: those that are eager, and
    /// those of which no list is known. For programs that serve for long, in a task of its own.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn start_servers(&self) {
        let registry = &self.0.registry;
        registry.recall().await;
        let sources = registry.sources();
        let kept = sources
            .iter()
            .filter(|source| source.snapshot().is_kept && !source.is_lazy());
        let kept = join_all(kept.map(|source| source.load_in_background()));
        // Begun like those that lists wait for, which count the time from here.
        join(registry.load_within(Duration::MAX), kept).await;
    }
}
