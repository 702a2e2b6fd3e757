/// How often a server's lists have changed; a number that went up says that the list should be read again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeCounts {
    /// Changes of the list of tools.
    pub tools: u64,
    /// Changes of the list of resources, or of templates.
    pub resources: u64,
    /// Changes of the list of prompts.
    pub prompts: u64,
    /// How often the connection was opened anew, by a new session or a new start: the server has forgotten what it was
    /// told before, such as log levels and subscriptions.
    pub openings: u64,
    /// How often there was a time in which nobody heard what the server tells: everything that it tells of may have changed.
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
