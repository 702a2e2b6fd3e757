//! Status of sources, tools and past calls.

use std::{borrow::Cow, sync::Arc};

use tool_core::{CorrelationId, LedgerEntry, ListWarning, PrepareError, SourceState, SourceStatus};
use tool_registry::{RefusedFeature, StoreSource};

use crate::{Toolplane, host::extensions::OWN_SOURCE};

impl Toolplane {
    /// Returns the status of each source: the configuration's own tools first, then each server.
    #[must_use]
    pub fn sources(&self) -> Vec<(String, SourceStatus)> {
        let mut sources = self.0.registry.status();
        for (_, status) in &mut sources {
            self.hide_secrets_in(status);
        }
        sources
    }

    /// Hides the secrets in a status: the error output of a program may contain its own.
    fn hide_secrets_in(&self, status: &mut SourceStatus) {
        let hide = |text: &mut String| {
            if let Cow::Owned(hidden) = self.0.redactor.hide_in_text(text) {
                *text = hidden;
            }
        };
        status.detail.as_mut().map(hide);
        status.last_error.as_mut().map(hide);
        if let SourceState::Failed(reason) = &mut status.state {
            hide(reason);
        }
    }

    /// Returns the status of one of [`Toolplane::server_sources`].
    pub(crate) fn server_source(&self, name: &str) -> Option<SourceStatus> {
        let is_server = name != OWN_SOURCE && name != StoreSource::NAME;
        let mut status = self.0.registry.source(name).filter(|_| is_server)?.status();
        self.hide_secrets_in(&mut status);
        Some(status)
    }

    /// Returns the status of each server, and of each source of the host program: neither that of the configuration's own tools
    /// nor that of the store.
    pub(crate) fn server_sources(&self) -> Vec<(String, SourceStatus)> {
        let mut sources = self.sources();
        sources.remove(0);
        sources.retain(|(name, _)| name != StoreSource::NAME);
        sources
    }

    /// Returns the ledger entry of the call with this id: a call with an idempotency key, or one that ended as
    /// [`OutcomeUnknown`](tool_core::ErrorKind::OutcomeUnknown), whose error has the id
    /// ([`ToolError::ledger_id`](tool_core::ToolError::ledger_id)). For operators: the call may be anybody's.
    ///
    /// # Cancellation
    /// Dropping the future has no effect on the ledger.
    pub async fn ledger_entry(&self, id: CorrelationId) -> Option<LedgerEntry> {
        self.0.ledger.find(id).await
    }

    /// Returns up to `limit` calls with an unknown outcome, most recent first. For operators, like
    /// [`Toolplane::ledger_entry`].
    ///
    /// # Cancellation
    /// Dropping the future has no effect on the ledger.
    pub async fn unknown_outcomes(&self, limit: usize) -> Vec<LedgerEntry> {
        self.0.ledger.unknown(limit).await
    }

    /// Returns the tools that are not offered, and the reasons.
    #[must_use]
    pub fn refused(&self) -> Vec<RefusedFeature> {
        self.0.registry.snapshot().refused().to_vec()
    }

    /// Returns warnings about the current lists of servers: suspicious text in definitions, oversized lists, and
    /// look-alike names. Each has the name of its source. They contain no secrets.
    #[must_use]
    pub fn list_warnings(&self) -> Vec<(String, ListWarning)> {
        let mut warnings = self.0.registry.list_warnings();
        for (_, warning) in &mut warnings {
            if let Cow::Owned(hidden) = self.0.redactor.hide_in_text(&warning.message) {
                warning.message = hidden;
            }
        }
        warnings
    }

    /// Returns executor settings that have no effect, by the tool's name:
    /// [`Loaded::warning`](tool_manifest::Loaded::warning) adds their places.
    #[must_use]
    pub fn warnings(&self) -> Vec<(Arc<str>, PrepareError)> {
        self.0.registry.warnings()
    }
}
