/// Limits that a text must respect to be accepted.
///
/// # Examples
///
/// ```
/// use raw_json::{JsonLimits, RawJson};
///
/// let limits = JsonLimits::STRICT.with_depth(1);
/// assert!(RawJson::parse_within("[1]", limits).is_ok());
/// assert!(RawJson::parse_within("[[1]]", limits).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonLimits {
    /// Maximum depth of nested arrays and objects.
    pub depth: usize,
    /// Policy for duplicate keys within one object.
    pub duplicate_keys: DuplicateKeys,
}

/// Policy for objects that contain a key twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateKeys {
    /// Accepts duplicates. For text that is only relayed.
    Allow,
    /// Refuses duplicates. For text that a policy reads and an upstream reads again: the two could see different
    /// values.
    Refuse,
}

impl JsonLimits {
    /// Limits for text that is only relayed: 128 levels, duplicate keys allowed.
    pub const RELAY: Self = Self {
        depth: 128,
        duplicate_keys: DuplicateKeys::Allow,
    };
    /// Limits for text that policies read: 128 levels, duplicate keys refused at every depth.
    pub const STRICT: Self = Self {
        depth: 128,
        duplicate_keys: DuplicateKeys::Refuse,
    };

    /// Sets the maximum depth of nested arrays and objects.
    #[must_use]
    pub const fn with_depth(self, depth: usize) -> Self {
        Self { depth, ..self }
    }

    /// Sets the policy for duplicate keys within one object.
    #[must_use]
    pub const fn with_duplicate_keys(self, duplicate_keys: DuplicateKeys) -> Self {
        Self {
            duplicate_keys,
            ..self
        }
    }
}
