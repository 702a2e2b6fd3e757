/// Limits of a [`MemoryLedger`](crate::MemoryLedger).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerLimits {
    /// Maximum number of calls. Default: 10,000.
    pub max_entries: usize,
    /// Maximum size of all entries with their replies, in bytes. Default: 64 MiB.
    pub max_bytes: usize,
}

impl Default for LedgerLimits {
    fn default() -> Self {
        Self {
            max_entries: 10_000,
            max_bytes: 64 << 20,
        }
    }
}

impl LedgerLimits {
    /// Sets the maximum number of calls.
    #[must_use]
    pub fn with_max_entries(mut self, max_entries: usize) -> Self {
        self.max_entries = max_entries;
        self
    }

    /// Sets the maximum size of all entries with their replies, in bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }
}
