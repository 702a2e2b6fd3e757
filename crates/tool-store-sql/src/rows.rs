//! Records from rows.

use std::{collections::BTreeMap, sync::Arc};

use raw_json::{JsonLimits, RawJson};
use semver::Version;
use tool_core::SecretUse;
use tool_registry::{
    Acceptance, AgentVersion, LatestChange, SecretGrant, ServerRecord, StoredVersion, VersionHead,
};

use crate::{SqlError, SqlRow, codec};

/// Columns of [`version_head`], for a query whose table of versions is `v`.
pub(crate) const HEAD_COLUMNS: usize = 11;

/// Columns of [`version_head`], in its order.
macro_rules! head_columns {
    () => {
        "v.version, v.digest, v.state, v.state_detail, v.created_at, v.created_by, v.change_note, v.is_by_agent, \
         v.accepted_at, v.accepted_by, v.tested_at"
    };
}
pub(crate) use head_columns;

/// Reads the columns of [`head_columns`], beginning at a column. Grants are not part of the row.
pub(crate) fn version_head(row: &mut SqlRow, at: usize) -> Result<VersionHead, SqlError> {
    let version = version(&row.text(at)?)?;
    let digest = codec::digest(&row.text(at + 1)?)?;
    let (state, detail) = (row.text(at + 2)?, row.optional_text(at + 3)?);
    let state = codec::state(&state, detail.as_deref())?;
    let created_at = codec::time(row.int(at + 4)?);
    let created_by = row.text(at + 5)?;
    let change = row.optional_text(at + 6)?;
    let agent = agent_version(row, at + 7)?;
    let head = VersionHead::new(version, digest, state, created_at, created_by.into());
    Ok(head.with_change(change).with_agent(agent))
}

/// Reads `is_by_agent, accepted_at, accepted_by, tested_at`.
fn agent_version(row: &mut SqlRow, at: usize) -> Result<Option<AgentVersion>, SqlError> {
    if row.int(at)? == 0 {
        return Ok(None);
    }
    let mut agent = AgentVersion::default();
    if let Some(by) = row.optional_text(at + 2)? {
        agent.accepted = Some(Acceptance::new(by, codec::time(row.int(at + 1)?)));
    }
    if !row.is_null(at + 3) {
        agent.tested_at = Some(codec::time(row.int(at + 3)?));
    }
    Ok(Some(agent))
}

/// Reads `secret, field, destination, digest, granted_by, granted_at`, beginning at a column.
pub(crate) fn grant(row: &mut SqlRow, at: usize) -> Result<SecretGrant, SqlError> {
    let needed = SecretUse::new(row.text(at)?, row.text(at + 1)?, row.text(at + 2)?);
    let digest = codec::digest(&row.text(at + 3)?)?;
    let by: Arc<str> = row.text(at + 4)?.into();
    Ok(SecretGrant::new(
        needed,
        digest,
        by,
        codec::time(row.int(at + 5)?),
    ))
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

/// Reads `name, settings, is_official, created_at, updated_at, proposed_by`.
pub(crate) fn server(row: &mut SqlRow) -> Result<ServerRecord, SqlError> {
    let (name, settings) = (row.text(0)?, json(row.text(1)?)?);
    let is_official = row.int(2)? != 0;
    let mut server = ServerRecord::new(name, settings, codec::time(row.int(3)?)).with_official(is_official);
    server.updated_at = codec::time(row.int(4)?);
    Ok(server.with_proposed_by(row.optional_text(5)?.map(Into::into)))
}

pub(crate) fn version(text: &str) -> Result<Version, SqlError> {
    Version::parse(text).map_err(|_| SqlError::Corrupt(format!("`{}` is no version", text.escape_debug())))
}

/// Reads a stored document. It was checked when it was stored: limits for untrusted text do not apply.
fn json(text: String) -> Result<RawJson, SqlError> {
    RawJson::parse_within(text, JsonLimits::RELAY)
        .map_err(|error| SqlError::Corrupt(format!("a stored document is no JSON: {error}")))
}
