//! Content of versions: manifests and files.

use std::collections::BTreeMap;

use raw_json::RawJson;
use semver::Version;
use sha2::{Digest as _, Sha256};
use tool_registry::{NewVersion, StoreError, StoredVersion, ToolFile, VersionHead, VersionState};

use crate::{
    disk::Disk,
    documents::{Content, Tool, check_path, file_name},
    journal::Staging,
};

/// Returns the folder of a tool.
pub(crate) fn tool_folder(tool: &str) -> String {
    format!("tools/{}", file_name(tool))
}

/// Returns the document of a tool.
pub(crate) fn tool_document(tool: &str) -> String {
    format!("tools/{}/tool.json", file_name(tool))
}

/// Returns the folder of a version.
pub(crate) fn version_folder(tool: &str, version: &Version) -> String {
    format!("{}/{}", tool_folder(tool), file_name(&version.to_string()))
}

/// Adds the content of a version to a change.
pub(crate) fn stage(
    staging: &mut Staging<'_>,
    tool: &str,
    stored: &StoredVersion,
) -> Result<Content, StoreError> {
    let manifest = &stored.manifest;
    let is_as_written = manifest.compact() != *manifest;
    let text = match is_as_written {
        true => manifest.as_str().to_owned(),
        false => manifest.indented() + "\n",
    };
    let mut content = Content {
        is_as_written,
        ..Content::default()
    };
    let mut files = vec![("manifest.json".to_owned(), text.as_bytes())];
    for (path, file) in &stored.files {
        check_path(path).map_err(|reason| StoreError::corrupt(format!("a change of `{tool}`"), reason))?;
        content
            .files
            .insert(path.clone(), Sha256::digest(&file.content).into());
        files.push((format!("files/{path}"), &file.content));
    }
    if is_fixed(&stored.head) && content.digest(&stored.manifest) != stored.head.digest {
        return Err(StoreError::corrupt(
            format!("a change of `{tool}`"),
            format!(
                "the digest of `{}` is not that of its content",
                stored.head.version
            ),
        ));
    }
    staging.folder(version_folder(tool, &stored.head.version), files)?;
    Ok(content)
}

impl Content {
    /// Returns the digest of a version with this manifest.
    fn digest(&self, manifest: &RawJson) -> [u8; 32] {
        let sums = self.files.iter().map(|(path, sum)| (path.as_str(), *sum));
        NewVersion::digest_of(manifest, sums)
    }
}

/// Reads a version without its files.
///
/// # Errors
/// If its manifest is gone or was changed.
fn read_manifest(disk: &Disk, tool: &Tool, head: &VersionHead) -> Result<StoredVersion, StoreError> {
    let name = &tool.record.name;
    let path = format!("{}/manifest.json", version_folder(name, &head.version));
    let what = || format!("`{}`", disk.path(&path).display());
    let text = disk.read(&path)?;
    let text = text.ok_or_else(|| StoreError::corrupt(what(), "there is no such file"))?;
    let content = tool.contents.get(&head.version).cloned().unwrap_or_default();
    let manifest = RawJson::parse(text).map_err(|error| StoreError::corrupt(what(), error))?;
    let manifest = match content.is_as_written {
        true => manifest,
        false => manifest.compact(),
    };
    if is_fixed(head) && content.digest(&manifest) != head.digest {
        return Err(changed(&what(), name, &head.version));
    }
    Ok(StoredVersion::new(head.clone(), manifest, BTreeMap::new()))
}

/// Reads a version.
///
/// # Errors
/// If its manifest or a file is gone or was changed.
pub(crate) fn read_version(
    disk: &Disk,
    tool: &Tool,
    head: &VersionHead,
) -> Result<StoredVersion, StoreError> {
    let mut stored = read_manifest(disk, tool, head)?;
    let sums = tool
        .contents
        .get(&head.version)
        .into_iter()
        .flat_map(|content| &content.files);
    for (path, sum) in sums {
        let file = format!(
            "{}/files/{path}",
            version_folder(&tool.record.name, &head.version)
        );
        let what = || format!("`{}`", disk.path(&file).display());
        let content = disk.read(&file)?;
        let content = content.ok_or_else(|| StoreError::corrupt(what(), "there is no such file"))?;
        if is_fixed(head) && <[u8; 32]>::from(Sha256::digest(&content)) != *sum {
            return Err(changed(&what(), &tool.record.name, &head.version));
        }
        stored.files.insert(path.clone(), ToolFile::new(content));
    }
    Ok(stored)
}

/// Returns `true` if the content never changes. A draft may be edited where it is: its publication takes the content as it is then.
fn is_fixed(head: &VersionHead) -> bool {
    head.state != VersionState::Draft
}

fn changed(what: &str, tool: &str, version: &Version) -> StoreError {
    let reason = format!(
        "it was changed, and `{tool}@{version}` never changes: restore it, and publish another version"
    );
    StoreError::corrupt(what, reason)
}
