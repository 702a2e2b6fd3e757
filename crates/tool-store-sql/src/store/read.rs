//! Queries for tools, aliases and servers.

use std::collections::BTreeMap;

use semver::Version;
use tool_registry::{
    AuthoredVersion, OfferedTool, SecretGrant, ServerRecord, StoreChanges, StoredVersion, ToolAlias,
    ToolFile, ToolRecord,
};

use crate::{
    SqlError, SqlRow, SqlTransaction, SqlValue,
    rows::{self, head_columns},
};

pub(super) async fn revision_of(transaction: &mut dyn SqlTransaction, name: &str) -> Result<u64, SqlError> {
    let query = "SELECT number FROM store_meta WHERE name = $1";
    let mut rows = transaction.fetch(query, vec![name.into()]).await?;
    let number = rows.first_mut().map_or(Ok(0), |row| row.int(0))?;
    u64::try_from(number).map_err(|_| SqlError::Corrupt(format!("`{name}` is negative")))
}

/// Reads the records of all tools, or of one.
pub(super) async fn records(
    transaction: &mut dyn SqlTransaction,
    tool: Option<&str>,
) -> Result<Vec<ToolRecord>, SqlError> {
    let parameters = || tool.map(SqlValue::from).into_iter().collect::<Vec<_>>();
    let query = match tool {
        Some(_) => "SELECT name, owner, latest, revision FROM tools WHERE name = $1",
        None => "SELECT name, owner, latest, revision FROM tools ORDER BY name",
    };
    let mut found = BTreeMap::new();
    for mut row in transaction.fetch(query, parameters()).await? {
        let name = row.text(0)?;
        let revision = u64::try_from(row.int(3)?).unwrap_or_default();
        let mut record = ToolRecord::new(name.as_str().into(), row.text(1)?.into(), revision);
        record.latest = row.optional_text(2)?.as_deref().map(rows::version).transpose()?;
        found.insert(name, record);
    }
    let query = match tool {
        Some(_) => {
            concat!(
                "SELECT v.tool, ",
                head_columns!(),
                " FROM tool_versions v WHERE v.tool = $1"
            )
        }
        None => {
            concat!("SELECT v.tool, ", head_columns!(), " FROM tool_versions v")
        }
    };
    for mut row in transaction.fetch(query, parameters()).await? {
        if let Some(record) = found.get_mut(&row.text(0)?) {
            record.versions.push(rows::version_head(&mut row, 1)?);
        }
    }
    add_record_grants(transaction, tool, &mut found).await?;
    let query = match tool {
        Some(_) => {
            "SELECT tool, version, at, by_principal FROM latest_history WHERE tool = $1 ORDER BY tool, position"
        }
        None => "SELECT tool, version, at, by_principal FROM latest_history ORDER BY tool, position",
    };
    for mut row in transaction.fetch(query, parameters()).await? {
        if let Some(record) = found.get_mut(&row.text(0)?) {
            record.history.push(rows::latest_change(&mut row, 1)?);
        }
    }
    let mut records: Vec<_> = found.into_values().collect();
    for record in &mut records {
        record.versions.sort_by(|a, b| a.version.cmp(&b.version));
    }
    Ok(records)
}

/// Adds the grants of secrets to the records of all tools, or of one.
async fn add_record_grants(
    transaction: &mut dyn SqlTransaction,
    tool: Option<&str>,
    records: &mut BTreeMap<String, ToolRecord>,
) -> Result<(), SqlError> {
    let has_agents = |record: &ToolRecord| record.versions.iter().any(|head| head.agent.is_some());
    if !records.values().any(has_agents) {
        return Ok(());
    }
    let query = match tool {
        Some(_) => {
            "SELECT tool, version, secret, field, destination, digest, granted_by, granted_at FROM grants \
             WHERE tool = $1 ORDER BY tool, version, secret, field, destination"
        }
        None => {
            "SELECT tool, version, secret, field, destination, digest, granted_by, granted_at FROM grants \
             ORDER BY tool, version, secret, field, destination"
        }
    };
    let parameters = tool.map(SqlValue::from).into_iter().collect();
    for mut row in transaction.fetch(query, parameters).await? {
        let version = rows::version(&row.text(1)?)?;
        let record = records.get_mut(&row.text(0)?);
        let heads = record.map(|record| &mut record.versions).into_iter().flatten();
        let grant = rows::grant(&mut row, 2)?;
        for agent in heads
            .filter(|head| head.version == version)
            .filter_map(|head| head.agent.as_mut())
        {
            agent.grants.push(grant.clone());
        }
    }
    Ok(())
}

/// Reads the versions that an agent made.
pub(super) async fn versions_by(
    transaction: &mut dyn SqlTransaction,
    author: &str,
) -> Result<Vec<AuthoredVersion>, SqlError> {
    let query = concat!(
        "SELECT v.tool, ",
        head_columns!(),
        ", CAST(OCTET_LENGTH(v.manifest) AS BIGINT), \
         (SELECT CAST(COALESCE(SUM(OCTET_LENGTH(f.content)), 0) AS BIGINT) FROM tool_files f \
         WHERE f.tool = v.tool AND f.version = v.version) \
         FROM tool_versions v WHERE v.created_by = $1 AND v.is_by_agent = 1 ORDER BY v.tool"
    );
    let found = transaction.fetch(query, vec![author.into()]).await?;
    let versions = found.into_iter().map(|mut row| {
        let (tool, head) = (row.text(0)?, rows::version_head(&mut row, 1)?);
        let n_bytes = row.int(1 + rows::HEAD_COLUMNS)? + row.int(2 + rows::HEAD_COLUMNS)?;
        Ok(AuthoredVersion::new(
            tool,
            head,
            u64::try_from(n_bytes).unwrap_or_default(),
        ))
    });
    versions.collect()
}

pub(super) async fn stored_version(
    transaction: &mut dyn SqlTransaction,
    tool: &str,
    version: &Version,
) -> Result<Option<StoredVersion>, SqlError> {
    let key = || vec![tool.into(), version.to_string().into()];
    let query = concat!(
        "SELECT ",
        head_columns!(),
        ", v.manifest FROM tool_versions v WHERE v.tool = $1 AND v.version = $2"
    );
    let mut found = transaction.fetch(query, key()).await?;
    let Some(row) = found.first_mut() else {
        return Ok(None);
    };
    let mut stored = rows::stored_version(row, 0)?;
    if let Some(agent) = &mut stored.head.agent {
        let query = "SELECT secret, field, destination, digest, granted_by, granted_at FROM grants \
                     WHERE tool = $1 AND version = $2 ORDER BY secret, field, destination";
        for mut row in transaction.fetch(query, key()).await? {
            agent.grants.push(rows::grant(&mut row, 0)?);
        }
    }
    let query = "SELECT path, content FROM tool_files WHERE tool = $1 AND version = $2";
    for mut row in transaction.fetch(query, key()).await? {
        stored.files.insert(row.text(0)?, ToolFile::new(row.blob(1)?));
    }
    Ok(Some(stored))
}

/// Number of tools of a part when all tools are read.
const PART: i64 = 2000;

/// Reads what changed since a revision. `take` receives the tools in parts.
pub(super) async fn changes(
    transaction: &mut dyn SqlTransaction,
    since: u64,
    take: &mut (dyn FnMut(Vec<OfferedTool>) + Send),
) -> Result<StoreChanges, SqlError> {
    let mut changes = StoreChanges::new(revision_of(transaction, "revision").await?);
    match since {
        0 => all_tools(transaction, take).await?,
        since => changed_tools(transaction, since, take).await?,
    }
    if since == 0 || revision_of(transaction, "aliases_revision").await? > since {
        changes.aliases = Some(aliases(transaction).await?);
    }
    changes.servers_changed = revision_of(transaction, "servers_revision").await? > since;
    Ok(changes)
}

async fn all_tools(
    transaction: &mut dyn SqlTransaction,
    take: &mut (dyn FnMut(Vec<OfferedTool>) + Send),
) -> Result<(), SqlError> {
    let query = concat!(
        "SELECT t.name, ",
        head_columns!(),
        ", v.manifest FROM tools t LEFT JOIN tool_versions v ON v.tool = t.name AND v.version = t.latest \
         WHERE t.name > $1 ORDER BY t.name LIMIT $2"
    );
    let mut after = String::new();
    loop {
        let parameters = vec![after.as_str().into(), PART.into()];
        let mut part = offered(transaction.fetch(query, parameters).await?)?;
        add_files(transaction, 0, &mut part).await?;
        let is_last = i64::try_from(part.len()).is_ok_and(|n_tools| n_tools < PART);
        let Some(last) = part.last() else { return Ok(()) };
        after = (*last.name).to_owned();
        take(part);
        if is_last {
            return Ok(());
        }
    }
}

async fn changed_tools(
    transaction: &mut dyn SqlTransaction,
    since: u64,
    take: &mut (dyn FnMut(Vec<OfferedTool>) + Send),
) -> Result<(), SqlError> {
    let query = concat!(
        "SELECT t.name, ",
        head_columns!(),
        ", v.manifest FROM tools t LEFT JOIN tool_versions v ON v.tool = t.name AND v.version = t.latest \
         WHERE t.revision > $1 ORDER BY t.name"
    );
    let number = i64::try_from(since).unwrap_or(i64::MAX);
    let mut changed = offered(transaction.fetch(query, vec![number.into()]).await?)?;
    add_files(transaction, number, &mut changed).await?;
    if !changed.is_empty() {
        take(changed);
    }
    Ok(())
}

/// Adds their files to the latest versions of tools. The tools are all that changed after a revision, from the first name to the
/// last one.
async fn add_files(
    transaction: &mut dyn SqlTransaction,
    since: i64,
    tools: &mut [OfferedTool],
) -> Result<(), SqlError> {
    let (Some(first), Some(last)) = (tools.first(), tools.last()) else {
        return Ok(());
    };
    let query = "SELECT f.tool, f.path, f.content FROM tools t \
                 JOIN tool_files f ON f.tool = t.name AND f.version = t.latest \
                 WHERE t.revision > $1 AND t.name >= $2 AND t.name <= $3";
    let parameters = vec![since.into(), (&*first.name).into(), (&*last.name).into()];
    let mut files: BTreeMap<String, BTreeMap<String, ToolFile>> = BTreeMap::new();
    for mut row in transaction.fetch(query, parameters).await? {
        let of_tool = files.entry(row.text(0)?).or_default();
        of_tool.insert(row.text(1)?, ToolFile::new(row.blob(2)?));
    }
    for tool in &mut *tools {
        if let (Some(latest), Some(files)) = (&mut tool.latest, files.remove(&*tool.name)) {
            latest.files = files;
        }
    }
    add_grants(transaction, since, tools).await
}

/// Adds their grants to the latest versions of tools that agents made: as [`add_files`].
async fn add_grants(
    transaction: &mut dyn SqlTransaction,
    since: i64,
    tools: &mut [OfferedTool],
) -> Result<(), SqlError> {
    let is_agents = |tool: &OfferedTool| {
        tool.latest
            .as_ref()
            .is_some_and(|latest| latest.head.agent.is_some())
    };
    if !tools.iter().any(is_agents) {
        return Ok(());
    }
    let (Some(first), Some(last)) = (tools.first(), tools.last()) else {
        return Ok(());
    };
    let query = "SELECT g.tool, g.secret, g.field, g.destination, g.digest, g.granted_by, g.granted_at FROM tools t \
                 JOIN grants g ON g.tool = t.name AND g.version = t.latest \
                 WHERE t.revision > $1 AND t.name >= $2 AND t.name <= $3 \
                 ORDER BY g.tool, g.secret, g.field, g.destination";
    let parameters = vec![since.into(), (&*first.name).into(), (&*last.name).into()];
    let mut grants: BTreeMap<String, Vec<SecretGrant>> = BTreeMap::new();
    for mut row in transaction.fetch(query, parameters).await? {
        grants
            .entry(row.text(0)?)
            .or_default()
            .push(rows::grant(&mut row, 1)?);
    }
    for tool in tools {
        let agent = tool.latest.as_mut().and_then(|latest| latest.head.agent.as_mut());
        if let (Some(agent), Some(grants)) = (agent, grants.remove(&*tool.name)) {
            agent.grants = grants;
        }
    }
    Ok(())
}

fn offered(rows: Vec<SqlRow>) -> Result<Vec<OfferedTool>, SqlError> {
    let tools = rows.into_iter().map(|mut row| {
        let name = row.text(0)?;
        let latest = match row.is_null(1) {
            true => None,
            false => Some(rows::stored_version(&mut row, 1)?),
        };
        Ok(OfferedTool::new(name.into(), latest))
    });
    tools.collect()
}

pub(super) async fn aliases(transaction: &mut dyn SqlTransaction) -> Result<Vec<ToolAlias>, SqlError> {
    let query = "SELECT name, tool, version FROM tool_aliases ORDER BY name";
    let rows = transaction.fetch(query, Vec::new()).await?;
    rows.into_iter()
        .map(|mut row| Ok(ToolAlias::new(row.text(0)?, row.text(1)?, row.text(2)?)))
        .collect()
}

pub(super) async fn servers(transaction: &mut dyn SqlTransaction) -> Result<Vec<ServerRecord>, SqlError> {
    let query = "SELECT name, settings, is_official, created_at, updated_at, proposed_by FROM mcp_servers ORDER BY name";
    let mut found = transaction.fetch(query, Vec::new()).await?;
    found.iter_mut().map(rows::server).collect()
}
