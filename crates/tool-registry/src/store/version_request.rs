use std::{fmt, str::FromStr};

use semver::{Version, VersionReq};

use super::{ToolRecord, VersionHead, VersionState};

/// Request for a version of a tool, as it follows `@` in `tool@version`.
///
/// | text | meaning |
/// |---|---|
/// | `latest` | the latest version |
/// | `1.4.2` | exactly this version |
/// | `1`, `1.4`, `^1.2`, `>=1.2, <2` | the newest version in this range, by the rules of Cargo |
/// | `sha256:` and hexadecimal digits | the version with this digest |
///
/// A range never selects a draft, a yanked version, or, unless it names one, a pre-release. A yanked version is selected
/// only by its exact version or its digest, as in PEP 592.
///
/// # Examples
/// ```
/// use tool_registry::VersionRequest;
///
/// let exact: VersionRequest = "1.4.2".parse()?;
/// let range: VersionRequest = "^1.2".parse()?;
/// assert!(exact.matches_text("1.4.2") && !exact.matches_text("1.4.3"));
/// assert!(range.matches_text("1.4.3") && !range.matches_text("2.0.0"));
/// # Ok::<(), tool_registry::InvalidVersionRequest>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum VersionRequest {
    /// The latest version.
    #[default]
    Latest,
    /// This version.
    Exact(Version),
    /// The newest version in this range.
    Range(VersionReq),
    /// The version whose SHA-256 is or begins with these hexadecimal digits.
    Digest(String),
}

/// Error of a text that is no request for a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no version: write `1.4.2`, a range such as `^1.2`, `latest`, or `sha256:` and 8 to 64 hexadecimal digits"
)]
pub struct InvalidVersionRequest {
    text: String,
}

impl VersionRequest {
    /// Selects the version of a record; `None` if no version fits.
    #[must_use]
    pub fn select<'a>(&self, record: &'a ToolRecord) -> Option<&'a VersionHead> {
        let versions = record.versions.iter();
        match self {
            Self::Latest => record.version(record.latest.as_ref()?),
            Self::Exact(version) => record.version(version),
            Self::Range(range) => versions
                .filter(|head| head.state.is_current() && range.matches(&head.version))
                .max_by(|a, b| a.version.cmp(&b.version)),
            Self::Digest(digits) => {
                let mut found =
                    versions.filter(|head| raw_json::hex(&head.digest).starts_with(digits.as_str()));
                let first = found.next()?;
                // Two versions with the same beginning: the request is ambiguous.
                found.next().is_none().then_some(first)
            }
        }
    }

    /// Returns `true` if a tool that is not in a store and has this version text satisfies the request.
    #[must_use]
    pub fn matches_text(&self, version: &str) -> bool {
        let parsed = Version::parse(version).ok();
        match (self, parsed) {
            (Self::Latest, _) => true,
            (Self::Exact(wanted), Some(version)) => *wanted == version,
            (Self::Range(range), Some(version)) => range.matches(&version),
            _ => false,
        }
    }

    /// Returns `true` if only a draft's author may use the selected version.
    pub(crate) fn is_draft(head: &VersionHead) -> bool {
        head.state == VersionState::Draft
    }
}

impl FromStr for VersionRequest {
    type Err = InvalidVersionRequest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidVersionRequest {
            text: text.chars().take(80).collect(),
        };
        let trimmed = text.trim();
        if trimmed == "latest" {
            return Ok(Self::Latest);
        }
        if let Some(digits) = trimmed.strip_prefix("sha256:") {
            let is_digest = (8..=64).contains(&digits.len())
                && digits
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            return is_digest
                .then(|| Self::Digest(digits.to_owned()))
                .ok_or_else(invalid);
        }
        if let Ok(version) = Version::parse(trimmed) {
            return Ok(Self::Exact(version));
        }
        let range = VersionReq::parse(trimmed).map_err(|_| invalid())?;
        Ok(Self::Range(range))
    }
}

impl fmt::Display for VersionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Exact(version) => version.fmt(f),
            Self::Range(range) => range.fmt(f),
            Self::Digest(digits) => write!(f, "sha256:{digits}"),
        }
    }
}

/// Splits `tool@version` into the name and the request. A text without `@` has no request.
///
/// # Errors
/// If the text after `@` is no request for a version.
pub fn split_version(text: &str) -> Result<(&str, Option<VersionRequest>), InvalidVersionRequest> {
    match text.split_once('@') {
        Some((name, request)) => Ok((name, Some(request.parse()?))),
        None => Ok((text, None)),
    }
}
