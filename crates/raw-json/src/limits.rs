/// What a text may be at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    /// How many arrays and objects may stand inside each other.
    pub depth: usize,
    /// Whether an object may have a key twice.
    pub duplicate_keys: DuplicateKeys,
}

/// What to do about an object that has a key twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateKeys {
    /// Let it pass: for text that is only relayed.
    Allow,
    /// Refuse it: for text that a policy reads and an upstream reads again.
    Refuse,
}

impl JsonLimits {
    /// For text that is relayed: 128 levels, duplicate keys pass.
    pub const RELAY: Self = Self {
        depth: 128,
        duplicate_keys: DuplicateKeys::Allow,
    };
    /// For text that is judged: 128 levels, no duplicate key at any depth.
    pub const STRICT: Self = Self {
        depth: 128,
        duplicate_keys: DuplicateKeys::Refuse,
    };
}
