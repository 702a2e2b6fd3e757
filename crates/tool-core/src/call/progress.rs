use raw_json::RawJson;

/// Receiver of a tool's progress.
pub trait Progress: Send + Sync {
    /// Forwards a report: an object with `progress` and, if known, `total` and `message`, as the tool wrote it.
    /// Reports arrive in order and before the reply. Never blocks; a report is dropped if the receiver's queue is
    /// full.
    fn report(&self, report: RawJson);
}
