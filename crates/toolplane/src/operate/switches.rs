//! Tools that operators disable and enable.

use std::sync::Arc;

use tool_core::{DisabledTool, Event, Feature, Tool, ToolError};
use tool_policy::{CredentialRefreshLayer, DisabledByOperator};

use crate::{Toolplane, plane::Inner};

/// Maximum length of an operator's reason, in characters.
const MAX_REASON: usize = 500;

impl Toolplane {
    /// Disables a tool: lists omit it, clients are notified, and calls of it fail as
    /// [`ErrorKind::Unavailable`](tool_core::ErrorKind::Unavailable) with the reason, until [`Toolplane::enable`].
    /// Running calls continue. A reload keeps the switch; the end of the process does not. For a tool that is
    /// disabled already, the reason is replaced.
    ///
    /// # Cancellation
    /// Dropping the future before it completes leaves the tool as it was.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](tool_core::ErrorKind::NotFound) if no tool with this name is known. Starts no server
    /// to find it.
    pub async fn disable(&self, tool: &str, reason: Option<&str>) -> Result<(), ToolError> {
        let inner = &*self.0;
        self.registry().recall().await;
        if !inner.knows(tool) {
            return Err(self.not_found(Feature::Tool, tool, &self.local_caller()));
        }
        let reason = reason.map(|reason| {
            let line = tool_scan::escape_line(reason.trim());
            line.chars().take(MAX_REASON).collect::<String>()
        });
        let reason = reason.filter(|reason| !reason.is_empty());
        let known = inner.rules.load().disabled.get(tool).map(|off| off.since);
        let mut off = DisabledByOperator::new(known.unwrap_or_else(|| inner.clock.wall()));
        off.reason = reason;
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

    /// Returns the tools, prompts and resources that are disabled because their credentials were rejected, and the
    /// reasons.
    #[must_use]
    pub fn disabled(&self) -> Vec<(Arc<str>, DisabledTool)> {
        let off = self.disabled_items().into_iter();
        off.map(|(tool, disabled)| (tool.name().clone(), disabled))
            .collect()
    }

    pub(crate) fn disabled_items(&self) -> Vec<(Arc<Tool>, DisabledTool)> {
        let snapshot = self.0.registry.snapshot();
        let all = Feature::ALL
            .iter()
            .copied()
            .flat_map(|feature| snapshot.list(feature).iter().cloned());
        let mut off: Vec<(Arc<Tool>, DisabledTool)> = Vec::new();
        for tool in all.chain(self.0.registry.client_tools()) {
            let is_new = |(known, _): &(Arc<Tool>, _)| !Arc::ptr_eq(known.state(), tool.state());
            if let Some(disabled) = tool.state().disabled()
                && off.iter().all(is_new)
            {
                off.push((tool, disabled));
            }
        }
        off
    }

    /// Enables what is disabled under this name, by [an operator](Self::disable) or because its [credentials were
    /// rejected](Self::disabled). Returns `false` if nothing was disabled.
    #[expect(
        clippy::must_use_candidate,
        reason = "it does something, whatever it was before"
    )]
    pub fn enable(&self, tool: &str) -> bool {
        let inner = &*self.0;
        let was_off_by_hand = inner.switch_on(tool);
        let why = "an operator says so";
        let off = self.disabled_items().into_iter();
        // A tool and a prompt may have the same name.
        off.filter(|(off, _)| **off.name() == *tool)
            .fold(was_off_by_hand, |was_off, (tool, _)| {
                CredentialRefreshLayer::enable(&tool, why, &inner.observers, inner.clock.wall()) || was_off
            })
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
        self.observers.emit(&Event::switched(tool, is_on, reason));
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
