//! Rules of versions: names, numbers, files, and changes of interfaces.

use std::collections::BTreeMap;

use raw_json::RawJson;
use semver::Version;
use tool_core::Descriptor;
use tool_schema::{Compatibility, compatibility, output_compatibility};

use super::{IncompatibleVersion, NewVersion, PublishError, ToolFile, ToolRecord, VersionState};

/// Maximum number of files of a version.
const MAX_FILES: usize = 256;
/// Maximum size of all files of a version, in bytes.
const MAX_FILE_BYTES: usize = 8 << 20;
/// Maximum size of a manifest, in bytes.
const MAX_MANIFEST_BYTES: usize = 1 << 20;

/// Change of a tool's interface from one version to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InterfaceChange {
    /// Both schemas are the same.
    Unchanged,
    /// The new version accepts all that the old one did, and returns nothing that the old one could not.
    Compatible,
    /// The new version breaks callers.
    Breaking(String),
    /// Nobody knows: neither was proven.
    Unproven(String),
}

impl InterfaceChange {
    /// Returns the change as a phrase for records; `None` if nothing changed.
    #[must_use]
    pub fn phrase(&self) -> Option<String> {
        match self {
            Self::Unchanged => None,
            Self::Compatible => Some("compatible".to_owned()),
            Self::Breaking(reason) => Some(format!("breaking: {reason}")),
            Self::Unproven(reason) => Some(format!("not proven compatible: {reason}")),
        }
    }

    /// Compares the interfaces of two versions: their input schemas, and their output schemas in the other direction. Takes up
    /// to a few seconds for large schemas.
    #[must_use]
    pub fn between(old: &Descriptor, new: &Descriptor) -> Self {
        let is_same = |old: Option<&RawJson>, new: Option<&RawJson>| match (old, new) {
            (Some(old), Some(new)) => {
                old.as_str() == new.as_str() || raw_json::digest(old) == raw_json::digest(new)
            }
            (None, None) => true,
            _ => false,
        };
        let outputs = (old.output_schema.as_ref(), new.output_schema.as_ref());
        if is_same(Some(&old.input_schema), Some(&new.input_schema)) && is_same(outputs.0, outputs.1) {
            return Self::Unchanged;
        }
        let input = compatibility(&old.input_schema, &new.input_schema);
        let output = output_compatibility(outputs.0, outputs.1);
        let sides = [("arguments", &input), ("results", &output)];
        let breaks: Vec<_> = sides
            .iter()
            .filter_map(|(side, compared)| breaks(side, compared))
            .collect();
        if !breaks.is_empty() {
            return Self::Breaking(breaks.join("; "));
        }
        let unproven = sides.into_iter().find_map(|(side, compared)| match compared {
            Compatibility::Unproven(reason) => Some(format!("{side}: {reason}")),
            _ => None,
        });
        unproven.map_or(Self::Compatible, Self::Unproven)
    }
}

/// Returns the breaking differences of one side.
fn breaks(side: &str, compared: &Compatibility) -> Option<String> {
    let Compatibility::Breaking(breaks) = compared else {
        return None;
    };
    let breaks: Vec<_> = breaks.iter().map(ToString::to_string).collect();
    Some(format!("{side}: {}", breaks.join(", ")))
}

/// Checks the name, the number, the manifest's size and the files of a version.
pub(super) fn check_content(new: &NewVersion) -> Result<(), PublishError> {
    tool_core::check_name(&new.tool).map_err(|error| PublishError::Invalid(error.to_string()))?;
    if !new.version.build.is_empty() {
        return Err(PublishError::Invalid(format!(
            "the version `{}` has build metadata, which do not order versions: leave out `+{}`",
            new.version, new.version.build
        )));
    }
    if new.manifest.as_str().len() > MAX_MANIFEST_BYTES {
        return Err(PublishError::Invalid(format!(
            "the manifest of `{}` has more than {MAX_MANIFEST_BYTES} bytes",
            new.tool
        )));
    }
    check_files(&new.files)
}

fn check_files(files: &BTreeMap<String, ToolFile>) -> Result<(), PublishError> {
    let invalid = |message: String| Err(PublishError::Invalid(message));
    if files.len() > MAX_FILES {
        return invalid(format!("{} files are more than {MAX_FILES}", files.len()));
    }
    let bytes: usize = files.values().map(|file| file.content.len()).sum();
    if bytes > MAX_FILE_BYTES {
        return invalid(format!(
            "the files have {bytes} bytes, more than {MAX_FILE_BYTES}"
        ));
    }
    for path in files.keys() {
        if !tool_core::is_relative_path(path) {
            return invalid(format!(
                "`{}` is no path of a file: write a relative path with `/`, without `.` and `..`",
                path.escape_debug()
            ));
        }
    }
    Ok(())
}

/// Returns the version that a new one is compared with: the greatest published one below it.
pub(super) fn version_before<'a>(record: &'a ToolRecord, version: &Version) -> Option<&'a Version> {
    let published = record
        .versions
        .iter()
        .filter(|head| head.state != VersionState::Draft);
    published
        .map(|head| &head.version)
        .filter(|known| *known < version)
        .max()
}

/// Checks that no published version of the same major line is greater.
pub(super) fn check_newer(record: &ToolRecord, version: &Version) -> Result<(), PublishError> {
    let of_line = record
        .versions
        .iter()
        .filter(|head| head.state != VersionState::Draft && head.version.major == version.major);
    match of_line.map(|head| &head.version).max() {
        Some(newest) if newest > version => Err(PublishError::NotNewer {
            tool: record.name.to_string(),
            version: version.clone(),
            newest: newest.clone(),
        }),
        _ => Ok(()),
    }
}

/// Returns the smallest version that may break what `before` promised, by the rules of Cargo: below 1.0.0 the minor number
/// counts as the major one.
pub(super) fn next_breaking(before: &Version) -> Version {
    match (before.major, before.minor) {
        (0, 0) => Version::new(0, 0, before.patch + 1),
        (0, minor) => Version::new(0, minor + 1, 0),
        (major, _) => Version::new(major + 1, 0, 0),
    }
}

/// Checks that a change of the interface fits the version number.
pub(super) fn check_change(
    tool: &str,
    before: &Version,
    version: &Version,
    change: &InterfaceChange,
    declared_compatible: bool,
) -> Result<(), PublishError> {
    let needed = next_breaking(before);
    // A pre-release of the needed version may break as well.
    let is_enough =
        (version.major, version.minor, version.patch) >= (needed.major, needed.minor, needed.patch);
    if is_enough {
        return Ok(());
    }
    let incompatible = |reason: &str| {
        Box::new(IncompatibleVersion {
            tool: tool.to_owned(),
            version: version.clone(),
            before: before.clone(),
            reason: reason.to_owned(),
            needed: needed.clone(),
        })
    };
    match change {
        InterfaceChange::Breaking(reason) => Err(PublishError::Breaking(incompatible(reason))),
        InterfaceChange::Unproven(reason) if !declared_compatible => {
            Err(PublishError::Unproven(incompatible(reason)))
        }
        _ => Ok(()),
    }
}

/// Returns the version that becomes the latest one when `withdrawn` is not available any more: the greatest release, or
/// else the greatest pre-release.
pub(super) fn latest_without(record: &ToolRecord, withdrawn: &Version) -> Option<Version> {
    let rest = record
        .versions
        .iter()
        .filter(|head| head.state.is_current() && head.version != *withdrawn)
        .map(|head| &head.version);
    rest.max_by_key(|version| (version.pre.is_empty(), (*version).clone()))
        .cloned()
}
