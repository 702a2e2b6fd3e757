//! Changes of tools, aliases and servers.

use std::time::SystemTime;

use semver::Version;
use serde_json::Value;
use tool_registry::{
    AgentVersion, LatestChange, SecretGrant, ServerRecord, StoreError, StoreOperation, StoredVersion,
    ToolAlias, ToolChange, VersionState,
};

use super::ChangeError;
use crate::{SqlError, SqlTransaction, SqlValue, codec};

const DELETE_FILES: &str = "DELETE FROM tool_files WHERE tool = $1 AND version = $2";
const DELETE_GRANTS: &str = "DELETE FROM grants WHERE tool = $1 AND version = $2";

pub(super) async fn apply(
    transaction: &mut dyn SqlTransaction,
    change: ToolChange,
    revision: i64,
) -> Result<(), ChangeError> {
    let tool = &*change.tool;
    let query = "SELECT revision FROM tools WHERE name = $1";
    let mut known = transaction.fetch(query, vec![tool.into()]).await?;
    let known = known.first_mut().map_or(Ok(0), |row| row.int(0))?;
    if u64::try_from(known).ok() != Some(change.expected) {
        return Err(StoreError::Conflict {
            tool: tool.to_owned(),
        }
        .into());
    }
    for operation in change.operations {
        apply_one(transaction, tool, operation).await?;
    }
    let statement = "UPDATE tools SET revision = $2 WHERE name = $1";
    transaction
        .execute(statement, vec![tool.into(), revision.into()])
        .await?;
    Ok(())
}

pub(super) async fn apply_all(
    transaction: &mut dyn SqlTransaction,
    changes: Vec<ToolChange>,
    revision: i64,
) -> Result<u64, ChangeError> {
    for change in changes {
        apply(transaction, change, revision).await?;
    }
    Ok(u64::try_from(revision).unwrap_or_default())
}

pub(super) async fn apply_one(
    transaction: &mut dyn SqlTransaction,
    tool: &str,
    operation: StoreOperation,
) -> Result<(), SqlError> {
    match operation {
        StoreOperation::Create { owner } => {
            let statement = "INSERT INTO tools (name, owner, revision, created_at) VALUES ($1, $2, 0, $3)";
            let now = codec::millis(SystemTime::now());
            let parameters = vec![tool.into(), (&*owner).into(), now.into()];
            transaction.execute(statement, parameters).await?;
        }
        StoreOperation::Put(stored) => put(transaction, tool, &stored).await?,
        StoreOperation::SetState { version, state } => {
            let statement =
                "UPDATE tool_versions SET state = $3, state_detail = $4 WHERE tool = $1 AND version = $2";
            let detail = codec::state_detail(&state);
            let parameters = vec![
                tool.into(),
                version.to_string().into(),
                state.as_str().into(),
                detail.into(),
            ];
            must_exist(transaction.execute(statement, parameters).await?, tool, &version)?;
        }
        StoreOperation::SetAgent { version, agent } => {
            let statement = "UPDATE tool_versions SET is_by_agent = 1, accepted_at = $3, accepted_by = $4, tested_at = $5 \
                             WHERE tool = $1 AND version = $2";
            let mut parameters = vec![tool.into(), version.to_string().into()];
            parameters.extend(agent_columns(&agent));
            must_exist(transaction.execute(statement, parameters).await?, tool, &version)?;
            put_grants(transaction, tool, &version, &agent.grants).await?;
        }
        StoreOperation::SetLatest(change) => push_latest(transaction, tool, &change).await?,
        StoreOperation::PopLatest => pop_latest(transaction, tool).await?,
        StoreOperation::RemoveDraft { version } => {
            let key = || vec![tool.into(), version.to_string().into()];
            for statement in [DELETE_FILES, DELETE_GRANTS] {
                transaction.execute(statement, key()).await?;
            }
            let statement = "DELETE FROM tool_versions WHERE tool = $1 AND version = $2 AND state = 'draft'";
            must_exist(transaction.execute(statement, key()).await?, tool, &version)?;
        }
        _ => return Err(SqlError::failed("an operation is unknown to this store")),
    }
    Ok(())
}

fn must_exist(n_rows: u64, tool: &str, version: &Version) -> Result<(), SqlError> {
    match n_rows {
        0 => Err(SqlError::Corrupt(format!(
            "there is no `{tool}@{version}` to change"
        ))),
        _ => Ok(()),
    }
}

/// Adds a version, or replaces a draft. A version in another state stays: the key exists.
pub(super) async fn put(
    transaction: &mut dyn SqlTransaction,
    tool: &str,
    stored: &StoredVersion,
) -> Result<(), SqlError> {
    let head = &stored.head;
    let version = head.version.to_string();
    let key = || vec![tool.into(), SqlValue::from(version.as_str())];
    let drafts = "SELECT state FROM tool_versions WHERE tool = $1 AND version = $2";
    let mut known = transaction.fetch(drafts, key()).await?;
    if let Some(row) = known.first_mut() {
        if row.text(0)? != VersionState::Draft.as_str() {
            return Err(SqlError::Exists);
        }
        for statement in [
            DELETE_FILES,
            DELETE_GRANTS,
            "DELETE FROM tool_versions WHERE tool = $1 AND version = $2",
        ] {
            transaction.execute(statement, key()).await?;
        }
    }
    let statement = "INSERT INTO tool_versions (tool, version, digest, state, state_detail, manifest, change_note, \
                     created_at, created_by, is_by_agent, accepted_at, accepted_by, tested_at) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    let agent = head.agent.clone().unwrap_or_default();
    let mut parameters = vec![
        tool.into(),
        version.as_str().into(),
        raw_json::hex(&head.digest).into(),
        head.state.as_str().into(),
        codec::state_detail(&head.state).into(),
        stored.manifest.as_str().into(),
        head.change.clone().into(),
        codec::millis(head.created_at).into(),
        (&*head.created_by).into(),
        i64::from(head.agent.is_some()).into(),
    ];
    parameters.extend(agent_columns(&agent));
    transaction.execute(statement, parameters).await?;
    put_grants(transaction, tool, &head.version, &agent.grants).await?;
    for (path, file) in &stored.files {
        let statement = "INSERT INTO tool_files (tool, version, path, content) VALUES ($1, $2, $3, $4)";
        let mut parameters = key();
        parameters.extend([path.as_str().into(), file.content.to_vec().into()]);
        transaction.execute(statement, parameters).await?;
    }
    Ok(())
}

/// Returns `accepted_at, accepted_by, tested_at`.
fn agent_columns(agent: &AgentVersion) -> [SqlValue; 3] {
    let accepted = agent.accepted.as_ref();
    [
        accepted.map(|accepted| codec::millis(accepted.at)).into(),
        accepted.map(|accepted| accepted.by.to_string()).into(),
        agent.tested_at.map(codec::millis).into(),
    ]
}

/// Replaces the grants of a version.
async fn put_grants(
    transaction: &mut dyn SqlTransaction,
    tool: &str,
    version: &Version,
    grants: &[SecretGrant],
) -> Result<(), SqlError> {
    let key = || vec![tool.into(), SqlValue::from(version.to_string())];
    transaction.execute(DELETE_GRANTS, key()).await?;
    for grant in grants {
        let statement = "INSERT INTO grants (tool, version, secret, field, destination, digest, granted_by, granted_at) \
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let mut parameters = key();
        parameters.extend([
            grant.secret.as_str().into(),
            grant.field.as_str().into(),
            grant.destination.as_str().into(),
            raw_json::hex(&grant.digest).into(),
            (&*grant.by).into(),
            codec::millis(grant.at).into(),
        ]);
        transaction.execute(statement, parameters).await?;
    }
    Ok(())
}

pub(super) async fn push_latest(
    transaction: &mut dyn SqlTransaction,
    tool: &str,
    change: &LatestChange,
) -> Result<(), SqlError> {
    let version = change.version.as_ref().map(Version::to_string);
    let statement = "INSERT INTO latest_history (tool, position, version, at, by_principal) \
                     SELECT $1, COALESCE(MAX(position), 0) + 1, $2, $3, $4 FROM latest_history WHERE tool = $5";
    let parameters = vec![
        tool.into(),
        version.clone().into(),
        codec::millis(change.at).into(),
        (&*change.by).into(),
        tool.into(),
    ];
    transaction.execute(statement, parameters).await?;
    set_latest(transaction, tool, version).await
}

pub(super) async fn pop_latest(transaction: &mut dyn SqlTransaction, tool: &str) -> Result<(), SqlError> {
    let statement = "DELETE FROM latest_history WHERE tool = $1 AND position = \
                     (SELECT MAX(position) FROM latest_history WHERE tool = $2)";
    transaction
        .execute(statement, vec![tool.into(), tool.into()])
        .await?;
    let query = "SELECT version FROM latest_history WHERE tool = $1 ORDER BY position DESC LIMIT 1";
    let mut rows = transaction.fetch(query, vec![tool.into()]).await?;
    let version = rows.first_mut().map_or(Ok(None), |row| row.optional_text(0))?;
    set_latest(transaction, tool, version).await
}

pub(super) async fn set_latest(
    transaction: &mut dyn SqlTransaction,
    tool: &str,
    version: Option<String>,
) -> Result<(), SqlError> {
    let statement = "UPDATE tools SET latest = $2 WHERE name = $1";
    transaction
        .execute(statement, vec![tool.into(), version.into()])
        .await?;
    Ok(())
}

pub(super) async fn mark(
    transaction: &mut dyn SqlTransaction,
    name: &str,
    revision: i64,
) -> Result<(), SqlError> {
    let statement = "UPDATE store_meta SET number = $2 WHERE name = $1";
    transaction
        .execute(statement, vec![name.into(), revision.into()])
        .await?;
    Ok(())
}

/// Adds or replaces a server. The columns of its way to be reached are copies of its settings, for people who query. Lists that it
/// gave with other settings are not its own any more.
pub(super) async fn put_server(
    transaction: &mut dyn SqlTransaction,
    server: &ServerRecord,
) -> Result<(), SqlError> {
    let settings: Value = serde_json::from_str(server.settings.as_str())
        .map_err(|error| SqlError::Corrupt(format!("the settings of a server are no JSON: {error}")))?;
    let text = |name: &str| settings[name].as_str().map(str::to_owned);
    let json = |name: &str| settings.get(name).map(Value::to_string);
    let transport = text("transport").unwrap_or_else(|| match settings.get("command") {
        Some(_) => "stdio".to_owned(),
        None => "http".to_owned(),
    });
    let statement = "INSERT INTO mcp_servers (name, transport, command, args, env, url, settings, is_official, \
                     created_at, updated_at, proposed_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
                     ON CONFLICT (name) DO UPDATE SET transport = excluded.transport, command = excluded.command, \
                     args = excluded.args, env = excluded.env, url = excluded.url, settings = excluded.settings, \
                     is_official = excluded.is_official, updated_at = excluded.updated_at, \
                     proposed_by = excluded.proposed_by, \
                     schema_cache = CASE WHEN mcp_servers.settings = excluded.settings \
                     THEN mcp_servers.schema_cache ELSE NULL END, \
                     schema_cached_at = CASE WHEN mcp_servers.settings = excluded.settings \
                     THEN mcp_servers.schema_cached_at ELSE NULL END";
    let parameters = vec![
        (&*server.name).into(),
        transport.into(),
        text("command").into(),
        json("args").into(),
        json("env").into(),
        text("url").into(),
        server.settings.as_str().into(),
        i64::from(server.is_official).into(),
        codec::millis(server.created_at).into(),
        codec::millis(server.updated_at).into(),
        server.proposed_by.as_deref().map(str::to_owned).into(),
    ];
    transaction.execute(statement, parameters).await?;
    Ok(())
}

/// Sets or removes an alias. Returns `false` if there was nothing to remove.
pub(super) async fn set_alias(
    transaction: &mut dyn SqlTransaction,
    name: &str,
    target: Option<ToolAlias>,
    revision: i64,
) -> Result<bool, SqlError> {
    mark(transaction, "aliases_revision", revision).await?;
    let removed = transaction
        .execute("DELETE FROM tool_aliases WHERE name = $1", vec![name.into()])
        .await?;
    let Some(target) = target else {
        return Ok(removed > 0);
    };
    let statement = "INSERT INTO tool_aliases (name, tool, version) VALUES ($1, $2, $3)";
    let parameters = vec![name.into(), (&*target.tool).into(), target.version.into()];
    transaction.execute(statement, parameters).await?;
    Ok(true)
}

/// Sets or removes a server. Returns `false` if there was nothing to remove.
pub(super) async fn set_server(
    transaction: &mut dyn SqlTransaction,
    name: &str,
    server: Option<ServerRecord>,
    revision: i64,
) -> Result<bool, SqlError> {
    mark(transaction, "servers_revision", revision).await?;
    match server {
        Some(server) => {
            put_server(transaction, &server).await?;
            Ok(true)
        }
        None => {
            let statement = "DELETE FROM mcp_servers WHERE name = $1";
            Ok(transaction.execute(statement, vec![name.into()]).await? > 0)
        }
    }
}
