use std::sync::Arc;

/// What is done with an answer of which the tool says that it is not all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartialSettings {
    /// Whether it is taken.
    pub rule: PartialRule,
    /// Where in the answer the tool says so, as a JSON Pointer (RFC 6901) into the plain value, the structured part, or
    /// without one the object that is a result's only text: whatever stands there and is not `null`, `false`, 0 or empty.
    pub field: Option<Arc<str>>,
}

/// Whether an answer in part is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PartialRule {
    /// It is taken, and marked.
    #[default]
    Accept,
    /// The call fails.
    Fail,
}

impl PartialSettings {
    /// Where in `_meta` a server says that its answer is not all of it, and where a reply says so.
    pub const META_KEY: &'static str = "dev.toolplane/partial";
}
