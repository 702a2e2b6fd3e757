use raw_json::{RawJson, canonical};

use super::{compatibility, output_compatibility};

/// Schemas of one version of a tool.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ToolSchemas<'a> {
    /// Schema of the arguments.
    pub input: &'a RawJson,
    /// Schema of the results, if the tool declares one.
    pub output: Option<&'a RawJson>,
}

impl<'a> ToolSchemas<'a> {
    /// Takes the schemas of a tool.
    #[must_use]
    pub fn new(input: &'a RawJson, output: Option<&'a RawJson>) -> Self {
        Self { input, output }
    }
}

/// Part of a semantic version that a new version must increase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VersionBump {
    /// Patch version: the schemas are the same.
    Patch,
    /// Minor version: what was accepted still is.
    Minor,
    /// Major version: compatibility is disproven, or not proven.
    Major,
}

impl VersionBump {
    /// Returns the name of the part.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }
}

/// Returns the least part of a semantic version (SemVer 2.0.0) that a new version of a tool must increase. What is not proven to
/// be compatible needs a major version.
///
/// # Time
/// As for [`compatibility`].
///
/// # Examples
/// ```
/// use tool_schema::{RawJson, ToolSchemas, VersionBump, required_bump};
///
/// let old = RawJson::parse(r#"{"properties":{"a":{"type":"string"}}}"#)?;
/// let new = RawJson::parse(r#"{"properties":{"a":{"type":["string","number"]}}}"#)?;
/// let (old, new) = (ToolSchemas::new(&old, None), ToolSchemas::new(&new, None));
/// assert_eq!(required_bump(old, old), VersionBump::Patch);
/// assert_eq!(required_bump(old, new), VersionBump::Minor);
/// assert_eq!(required_bump(new, old), VersionBump::Major);
/// # Ok::<(), tool_schema::JsonError>(())
/// ```
#[must_use]
pub fn required_bump(old: ToolSchemas<'_>, new: ToolSchemas<'_>) -> VersionBump {
    let is_same = |old: Option<&RawJson>, new: Option<&RawJson>| old.map(canonical) == new.map(canonical);
    if is_same(Some(old.input), Some(new.input)) && is_same(old.output, new.output) {
        return VersionBump::Patch;
    }
    let is_compatible = compatibility(old.input, new.input).is_compatible()
        && output_compatibility(old.output, new.output).is_compatible();
    match is_compatible {
        true => VersionBump::Minor,
        false => VersionBump::Major,
    }
}
