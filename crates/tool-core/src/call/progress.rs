use raw_json::RawJson;

/// Where a tool's progress goes.
pub trait Progress: Send + Sync {
    /// Passes on a report: an object with `progress` and, if known, `total` and `message`, as the tool wrote it.
    /// Reports arrive in order and before the reply. It never blocks; a report that finds no room is dropped.
    fn report(&self, report: RawJson);
}
