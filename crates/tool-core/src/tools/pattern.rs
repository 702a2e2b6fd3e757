/// Pattern of names, with `*` for any sequence of characters, such as `files__*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern(String);

impl Pattern {
    /// Creates a pattern from a name with or without `*`.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Returns the pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if a name matches. Case-sensitive.
    ///
    /// # Examples
    /// ```
    /// use tool_core::Pattern;
    ///
    /// assert!(Pattern::new("files__*").matches("files__read"));
    /// assert!(!Pattern::new("files__read").matches("files__read_all"));
    /// ```
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let Some((head, tail)) = self.0.split_once('*') else {
            return self.0 == name;
        };
        let Some(rest) = name.strip_prefix(head) else {
            return false;
        };
        let mut pieces: Vec<&str> = tail.split('*').collect();
        // The last piece must match at the end; each other one is found as early as possible.
        let last = pieces.pop().unwrap_or_default();
        let Some(mut rest) = rest.strip_suffix(last) else {
            return false;
        };
        for piece in pieces {
            let Some(at) = rest.find(piece) else { return false };
            rest = &rest[at + piece.len()..];
        }
        true
    }

    /// Returns patterns for the rest of matching names after this prefix; empty if no name with this prefix matches.
    ///
    /// # Examples
    /// ```
    /// use tool_core::Pattern;
    ///
    /// let rest = Pattern::new("files__read_*").after("files__");
    /// assert_eq!(rest, [Pattern::new("read_*")]);
    /// ```
    #[must_use]
    pub fn after(&self, prefix: &str) -> Vec<Self> {
        let pattern = &*self.0;
        if !pattern.contains('*') {
            return pattern.strip_prefix(prefix).map(Self::new).into_iter().collect();
        }
        let mut rests = Vec::new();
        for at in (0..=pattern.len()).filter(|at| pattern.is_char_boundary(*at)) {
            let (head, rest) = pattern.split_at(at);
            if Self::new(head).matches(prefix) {
                rests.push(Self::new(rest));
                if head.ends_with('*') {
                    rests.push(Self(format!("*{rest}")));
                }
            }
        }
        rests
    }
}

impl<T: Into<String>> From<T> for Pattern {
    fn from(pattern: T) -> Self {
        Self::new(pattern)
    }
}
