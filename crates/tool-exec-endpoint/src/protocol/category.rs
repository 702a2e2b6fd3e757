use tool_core::ErrorKind;

/// Category of an error, by which the protocol classifies failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCategory {
    /// The request cannot be used: other arguments, another tool or other rights are needed.
    Usage,
    /// A step on the way to the result failed.
    Pipeline,
    /// The endpoint itself is broken.
    Fatal,
}

impl ErrorCategory {
    /// All categories.
    pub const ALL: &'static [Self] = &[Self::Usage, Self::Pipeline, Self::Fatal];

    /// Returns the word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Pipeline => "pipeline",
            Self::Fatal => "fatal",
        }
    }

    /// Returns the category with this word. The protocol allows others.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|category| category.as_str() == word)
    }

    /// Returns the category of errors of this kind.
    #[must_use]
    pub const fn for_kind(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidArguments
            | ErrorKind::NotFound
            | ErrorKind::Denied
            | ErrorKind::MissingCapability
            | ErrorKind::ResultTooLarge
            | ErrorKind::ToolChanged => Self::Usage,
            ErrorKind::Internal => Self::Fatal,
            _ => Self::Pipeline,
        }
    }

    /// Returns the kind of errors of this category that name no kind of their own.
    #[must_use]
    pub const fn kind(self) -> ErrorKind {
        match self {
            Self::Usage => ErrorKind::InvalidArguments,
            Self::Pipeline | Self::Fatal => ErrorKind::UpstreamError,
        }
    }
}
