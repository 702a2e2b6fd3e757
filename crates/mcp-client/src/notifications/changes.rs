/// Change counters of a server's lists. A counter that went up means that the list should be read again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeCounts {
    /// Number of changes of the list of tools.
    pub tools: u64,
    /// Number of changes of the lists of resources and resource templates.
    pub resources: u64,
    /// Number of changes of the list of prompts.
    pub prompts: u64,
    /// Number of times the connection was reopened by a new session or a restart: the server has lost its state, such
    /// as log levels and subscriptions.
    pub openings: u64,
    /// Number of periods in which notifications could not be received: everything that the server notifies of may have
    /// changed.
    pub gaps: u64,
}

impl ChangeCounts {
    pub(super) fn count_gap(&mut self) {
        self.gaps += 1;
        self.count_all();
    }

    pub(super) fn count_all(&mut self) {
        self.tools += 1;
        self.resources += 1;
        self.prompts += 1;
    }
}
