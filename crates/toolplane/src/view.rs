use std::sync::Arc;

use tool_core::Tool;

/// The tools that a caller may see, at one time.
#[derive(Debug, Clone)]
pub struct View {
    pub(crate) revision: u64,
    pub(crate) tools: Arc<[Arc<Tool>]>,
}

impl View {
    /// Grows with every change of the tools: two views of one caller with the same revision are the same.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The tools in the order of their names.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }
}
