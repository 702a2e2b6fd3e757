//! Tools that operators switch off and on by hand.

use std::sync::Arc;

use tool_core::{Event, Feature, ToolError};
use tool_policy::DisabledTool;

use crate::{Toolplane, plane::Inner};

/// Maximum length of an operator's reason, in characters.
const MAX_REASON: usize = 500;

impl Toolplane {
    /// Switches a tool off by hand: it is on no list any more, clients hear of that, and calls of it fail as
    /// [`ErrorKind::Unavailable`](tool_core::ErrorKind::Unavailable) with the reason, until [`Toolplane::enable`]. Calls that run go on. The switch is kept when the
    /// configuration is loaded again, and not beyond the end of the process. For a tool that is off already the reason is
    /// replaced.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](tool_core::ErrorKind::NotFound) if no tool of this name is known: nothing is started to find it.
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
        let off = DisabledTool {
            reason,
            since: known.unwrap_or_else(|| inner.clock.wall()),
        };
        inner.rules.disable(tool, &off);
        inner.switched(tool, false, off.reason.as_deref());
        Ok(())
    }

    /// The tools that operators switched off by hand, by name.
    #[must_use]
    pub fn switched_off_by_hand(&self) -> Vec<(Arc<str>, DisabledTool)> {
        let rules = self.0.rules.load();
        let off = rules.disabled.iter();
        off.map(|(tool, off)| (tool.as_str().into(), off.clone()))
            .collect()
    }
}

impl Inner {
    /// Switches a tool on again; `false` if no operator had switched it off.
    pub(crate) fn switch_on(&self, tool: &str) -> bool {
        let was_off = self.rules.enable(tool);
        if was_off {
            self.switched(tool, true, None);
        }
        was_off
    }

    /// Tells clients and observers of a switch.
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
