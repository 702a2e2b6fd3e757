//! Tools that operators disable and enable.

use std::sync::Arc;

use tool_core::{Event, Feature, ToolError};
use tool_policy::DisabledByOperator;

use crate::{Toolplane, plane::Inner};

/// Maximum length of an operator's reason, in characters.
const MAX_REASON: usize = 500;

impl Toolplane {
    /// Disables a tool: lists omit it, clients are notified, and calls of it fail as
    /// [`ErrorKind::Unavailable`](tool_core::ErrorKind::Unavailable) with the reason, until [`Toolplane::enable`].
    /// Running calls continue. A reload keeps the switch; the end of the process does not. For a tool that is
    /// disabled already, the reason is replaced.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](tool_core::ErrorKind::NotFound) if no tool with this name is known. Starts no server
    /// to find it.
    pub async fn disable(&self, tool: &str, reason: Option<&str>) -> Result<(), ToolError> {
        let inner = &*self.0;
        inner.registry.recall().await;
        if !inner.knows(tool) {
            return Err(self.not_found(Feature::Tool, tool, &self.local_caller()));
        }
        let reason = reason.map(|reason| {
            let line = tool_scan::escape_line(reason.trim());
            line.chars().take(MAX_REASON).collect::<String>()
        });
        let reason = reason.filter(|reason| !reason.is_empty());
        let known = inner.rules.load().disabled.get(tool).map(|off| off.since);
        let off = DisabledByOperator {
            reason,
            since: known.unwrap_or_else(|| inner.clock.wall()),
        };
        inner.rules.disable(tool, &off);
        inner.switched(tool, false, off.reason.as_deref());
        Ok(())
    }

    /// Returns the tools that operators disabled, by name.
    #[must_use]
    pub fn disabled_by_operator(&self) -> Vec<(Arc<str>, DisabledByOperator)> {
        let rules = self.0.rules.load();
        let off = rules.disabled.iter();
        off.map(|(tool, off)| (tool.as_str().into(), off.clone()))
            .collect()
    }
}

impl Inner {
    /// Enables a tool. Returns `false` if no operator had disabled it.
    pub(crate) fn switch_on(&self, tool: &str) -> bool {
        let was_off = self.rules.enable(tool);
        if was_off {
            self.switched(tool, true, None);
        }
        was_off
    }

    /// Notifies clients and observers of a switch.
    fn switched(&self, tool: &str, is_on: bool, reason: Option<&str>) {
        self.registry.mark_lists_changed();
        self.views.clear();
        self.observers.emit(&Event::Switched { tool, is_on, reason });
    }

    fn knows(&self, tool: &str) -> bool {
        let snapshot = self.registry.snapshot();
        let shared = snapshot.list(Feature::Tool).iter().cloned();
        let of_clients = self.registry.client_tools().into_iter();
        shared
            .chain(of_clients.filter(|tool| tool.feature() == Feature::Tool))
            .any(|known| known.names().any(|name| name == tool))
    }
}
