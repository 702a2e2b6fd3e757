//! Records from rows.

use std::collections::BTreeMap;

use raw_json::{JsonLimits, RawJson};
use semver::Version;
use tool_registry::{LatestChange, ServerRecord, StoredVersion, VersionHead};

use crate::{SqlError, SqlRow, codec};

/// Columns of [`version_head`], for a query whose table of versions is `v`.
pub(crate) const HEAD_COLUMNS: usize = 7;

/// Reads `version, digest, state, state_detail, created_at, created_by, change_note`, beginning at a column.
pub(crate) fn version_head(row: &mut SqlRow, at: usize) -> Result<VersionHead, SqlError> {
    let version = version(&row.text(at)?)?;
    let digest = codec::digest(&row.text(at + 1)?)?;
    let (state, detail) = (row.text(at + 2)?, row.optional_text(at + 3)?);
    let state = codec::state(&state, detail.as_deref())?;
    let created_at = codec::time(row.int(at + 4)?);
    let created_by = row.text(at + 5)?;
    let change = row.optional_text(at + 6)?;
    Ok(VersionHead::new(version, digest, state, created_at, created_by.into()).with_change(change))
}

/// Reads the columns of [`version_head`] and the manifest after them. Files are not part of the row.
pub(crate) fn stored_version(row: &mut SqlRow, at: usize) -> Result<StoredVersion, SqlError> {
    let head = version_head(row, at)?;
    let manifest = json(row.text(at + HEAD_COLUMNS)?)?;
    Ok(StoredVersion::new(head, manifest, BTreeMap::new()))
}

/// Reads `version, at, by_principal`, beginning at a column.
pub(crate) fn latest_change(row: &mut SqlRow, at: usize) -> Result<LatestChange, SqlError> {
    let number = row.optional_text(at)?.as_deref().map(version).transpose()?;
    let time = codec::time(row.int(at + 1)?);
    Ok(LatestChange::new(number, time, row.text(at + 2)?.into()))
}

/// Reads `name, settings, is_official, created_at, updated_at`.
pub(crate) fn server(row: &mut SqlRow) -> Result<ServerRecord, SqlError> {
    let (name, settings) = (row.text(0)?, json(row.text(1)?)?);
    let is_official = row.int(2)? != 0;
    let mut server = ServerRecord::new(name, settings, codec::time(row.int(3)?)).with_official(is_official);
    server.updated_at = codec::time(row.int(4)?);
    Ok(server)
}

pub(crate) fn version(text: &str) -> Result<Version, SqlError> {
    Version::parse(text).map_err(|_| SqlError::Corrupt(format!("`{}` is no version", text.escape_debug())))
}

/// Reads a stored document. It was checked when it was stored: limits for untrusted text do not apply.
fn json(text: String) -> Result<RawJson, SqlError> {
    RawJson::parse_within(text, JsonLimits::RELAY)
        .map_err(|error| SqlError::Corrupt(format!("a stored document is no JSON: {error}")))
}
