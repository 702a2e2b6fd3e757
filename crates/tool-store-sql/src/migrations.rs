//! Tables, and the steps from each version of them to the next. Forward only: a released step never changes.

use crate::{SqlError, SqlTransaction, codec::millis};

/// Steps, each a list of statements. `BLOB` is the type of bytes: a database with another name for it translates that.
const STEPS: &[&[&str]] = &[
    // 1: tools, servers, tokens.
    &[
        "CREATE TABLE store_meta (name TEXT PRIMARY KEY, number BIGINT, content BLOB)",
        "INSERT INTO store_meta (name, number) VALUES ('revision', 0)",
        "INSERT INTO store_meta (name, number) VALUES ('aliases_revision', 0)",
        "INSERT INTO store_meta (name, number) VALUES ('servers_revision', 0)",
        "CREATE TABLE tools (
            name TEXT PRIMARY KEY,
            owner TEXT NOT NULL,
            latest TEXT,
            revision BIGINT NOT NULL,
            created_at BIGINT NOT NULL
        )",
        "CREATE INDEX tools_by_revision ON tools (revision)",
        "CREATE TABLE tool_versions (
            tool TEXT NOT NULL REFERENCES tools (name),
            version TEXT NOT NULL,
            digest TEXT NOT NULL,
            state TEXT NOT NULL,
            state_detail TEXT,
            manifest TEXT NOT NULL,
            change_note TEXT,
            created_at BIGINT NOT NULL,
            created_by TEXT NOT NULL,
            PRIMARY KEY (tool, version)
        )",
        "CREATE INDEX tool_versions_by_digest ON tool_versions (digest)",
        "CREATE TABLE tool_files (
            tool TEXT NOT NULL,
            version TEXT NOT NULL,
            path TEXT NOT NULL,
            content BLOB NOT NULL,
            PRIMARY KEY (tool, version, path),
            FOREIGN KEY (tool, version) REFERENCES tool_versions (tool, version)
        )",
        "CREATE TABLE latest_history (
            tool TEXT NOT NULL REFERENCES tools (name),
            position BIGINT NOT NULL,
            version TEXT,
            at BIGINT NOT NULL,
            by_principal TEXT NOT NULL,
            PRIMARY KEY (tool, position)
        )",
        "CREATE TABLE tool_aliases (name TEXT PRIMARY KEY, tool TEXT NOT NULL, version TEXT NOT NULL)",
        "CREATE TABLE mcp_servers (
            name TEXT PRIMARY KEY,
            transport TEXT NOT NULL,
            command TEXT,
            args TEXT,
            env TEXT,
            url TEXT,
            settings TEXT NOT NULL,
            is_official BIGINT NOT NULL,
            schema_cache TEXT,
            schema_cached_at BIGINT,
            created_at BIGINT NOT NULL,
            updated_at BIGINT NOT NULL
        )",
        "CREATE TABLE tokens (
            id TEXT PRIMARY KEY,
            secret_digest TEXT NOT NULL,
            principal TEXT NOT NULL,
            tenant TEXT,
            roles TEXT NOT NULL,
            label TEXT,
            created_at BIGINT NOT NULL,
            expires_at BIGINT,
            revoked_at BIGINT
        )",
    ],
    // 2: approvals, the ledger, pins, kept texts, uses of tools. `owner` is the gateway that runs a call, and `gateways` has its lease.
    &[
        "INSERT INTO store_meta (name, number) VALUES ('approvals_position', 0)",
        "CREATE TABLE gateways (id TEXT PRIMARY KEY, lease_until BIGINT NOT NULL)",
        "CREATE TABLE approvals (
            handle TEXT PRIMARY KEY,
            position BIGINT NOT NULL,
            tenant TEXT NOT NULL,
            principal TEXT NOT NULL,
            tool TEXT NOT NULL,
            version TEXT,
            arguments TEXT NOT NULL,
            risks TEXT NOT NULL,
            reason TEXT NOT NULL,
            by_another BIGINT NOT NULL,
            asked_at BIGINT NOT NULL,
            shown_expiry BIGINT NOT NULL,
            tool_digest TEXT NOT NULL,
            arguments_digest TEXT NOT NULL,
            policy_digest TEXT NOT NULL,
            state TEXT NOT NULL,
            state_detail TEXT NOT NULL,
            expires_at BIGINT NOT NULL,
            changed_at BIGINT NOT NULL,
            owner TEXT
        )",
        "CREATE INDEX approvals_by_principal ON approvals (tenant, principal)",
        "CREATE TABLE ledger (
            id TEXT NOT NULL,
            is_intent BIGINT NOT NULL,
            tenant TEXT NOT NULL,
            principal TEXT NOT NULL,
            idempotency_key TEXT,
            tool TEXT NOT NULL,
            arguments_digest TEXT NOT NULL,
            begun_at BIGINT NOT NULL,
            time_to_live BIGINT NOT NULL,
            expires_at BIGINT NOT NULL,
            owner TEXT NOT NULL,
            state TEXT NOT NULL,
            detail TEXT,
            reply TEXT
        )",
        "CREATE UNIQUE INDEX ledger_keys ON ledger (tenant, principal, idempotency_key) \
         WHERE idempotency_key IS NOT NULL",
        "CREATE UNIQUE INDEX ledger_intents ON ledger (id) WHERE is_intent = 1",
        "CREATE INDEX ledger_claims ON ledger (id) WHERE is_intent = 0",
        "CREATE INDEX ledger_running ON ledger (owner) WHERE state = 'running'",
        "CREATE INDEX ledger_unknown ON ledger (begun_at) WHERE state = 'unknown'",
        "CREATE INDEX ledger_by_expiry ON ledger (expires_at)",
        "CREATE TABLE pins (
            source TEXT NOT NULL,
            feature TEXT NOT NULL,
            name TEXT NOT NULL,
            digest TEXT NOT NULL,
            definition TEXT,
            is_exact BIGINT NOT NULL,
            version TEXT,
            accepted_at BIGINT,
            accepted_by TEXT,
            PRIMARY KEY (source, feature, name)
        )",
        "CREATE TABLE kept_lists (
            name TEXT NOT NULL,
            digest TEXT NOT NULL,
            content TEXT NOT NULL,
            saved_at BIGINT NOT NULL,
            PRIMARY KEY (name, digest)
        )",
        "CREATE TABLE search_usage (
            tenant TEXT NOT NULL,
            tool TEXT NOT NULL,
            query TEXT NOT NULL,
            n_calls BIGINT NOT NULL,
            used_at BIGINT NOT NULL,
            PRIMARY KEY (tenant, tool, query)
        )",
        "CREATE INDEX search_usage_by_time ON search_usage (tenant, used_at)",
    ],
    // 3: versions that agents made, the secrets that they may use, servers that agents propose, details of approvals.
    &[
        "ALTER TABLE tool_versions ADD COLUMN is_by_agent BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE tool_versions ADD COLUMN accepted_at BIGINT",
        "ALTER TABLE tool_versions ADD COLUMN accepted_by TEXT",
        "ALTER TABLE tool_versions ADD COLUMN tested_at BIGINT",
        "CREATE INDEX tool_versions_of_agents ON tool_versions (created_by) WHERE is_by_agent = 1",
        "CREATE TABLE grants (
            tool TEXT NOT NULL,
            version TEXT NOT NULL,
            secret TEXT NOT NULL,
            field TEXT NOT NULL,
            destination TEXT NOT NULL,
            digest TEXT NOT NULL,
            granted_by TEXT NOT NULL,
            granted_at BIGINT NOT NULL,
            PRIMARY KEY (tool, version, secret, field, destination),
            FOREIGN KEY (tool, version) REFERENCES tool_versions (tool, version)
        )",
        "ALTER TABLE mcp_servers ADD COLUMN proposed_by TEXT",
        "ALTER TABLE approvals ADD COLUMN details TEXT NOT NULL DEFAULT ''",
    ],
    // 4: workflows that have begun. `owner` is the gateway that runs one; one that waits has none.
    &[
        "CREATE TABLE flows (id TEXT PRIMARY KEY, call_key TEXT NOT NULL, owner TEXT, expires_at BIGINT NOT NULL)",
        "CREATE INDEX flows_by_key ON flows (call_key)",
        "CREATE INDEX flows_running ON flows (owner) WHERE owner IS NOT NULL",
        "CREATE INDEX flows_by_expiry ON flows (expires_at)",
        "CREATE TABLE flow_steps (
            flow TEXT NOT NULL REFERENCES flows (id),
            step TEXT NOT NULL,
            entry TEXT NOT NULL,
            PRIMARY KEY (flow, step)
        )",
    ],
    // 5: figures of calls. `version` and `server` are empty for a tool without; `micros` is their duration, costs in billionths of a dollar.
    &["CREATE TABLE daily_usage (
            day BIGINT NOT NULL,
            tenant TEXT NOT NULL,
            principal TEXT NOT NULL,
            tool TEXT NOT NULL,
            version TEXT NOT NULL,
            server TEXT NOT NULL,
            n_calls BIGINT NOT NULL,
            n_errors BIGINT NOT NULL,
            n_cached BIGINT NOT NULL,
            n_attempts BIGINT NOT NULL,
            argument_bytes BIGINT NOT NULL,
            result_bytes BIGINT NOT NULL,
            cost BIGINT NOT NULL,
            saved_cost BIGINT NOT NULL,
            micros BIGINT NOT NULL,
            latencies TEXT NOT NULL,
            PRIMARY KEY (day, tenant, principal, tool, version, server)
        )"],
    // 6: digests of the accepted texts. Pins that were stored before have none, and are compared by their canonical form.
    &["ALTER TABLE pins ADD COLUMN text_digest TEXT"],
    // 7: counters by which a gateway finds out that lists of tools are as they were.
    &[
        "INSERT INTO store_meta (name, number) VALUES ('pins_revision', 0)",
        "INSERT INTO store_meta (name, number) VALUES ('kept_lists_revision', 0)",
    ],
];

/// Version of the tables that this program makes and needs.
pub const SCHEMA_VERSION: i64 = STEPS.len() as i64;

/// Makes the tables, or brings older ones to the present version. Runs in a transaction that excludes other migrations.
///
/// # Cancellation
/// Dropping the future changes nothing: the transaction is not committed.
///
/// # Errors
/// [`SqlError::Newer`] if a newer program made the tables. Otherwise if a statement fails.
pub async fn migrate(transaction: &mut dyn SqlTransaction) -> Result<(), SqlError> {
    migrate_to(transaction, SCHEMA_VERSION).await
}

/// Returns `true` if the tables are those of the present version, so that [`migrate`] would do nothing. `false` also if this cannot
/// be read.
///
/// # Cancellation
/// Dropping the future changes nothing.
pub async fn is_migrated(transaction: &mut dyn SqlTransaction) -> bool {
    present_version(transaction)
        .await
        .is_ok_and(|found| found == SCHEMA_VERSION)
}

async fn present_version(transaction: &mut dyn SqlTransaction) -> Result<i64, SqlError> {
    let query = "SELECT COALESCE(MAX(version), 0) FROM schema_migrations";
    let mut rows = transaction.fetch(query, Vec::new()).await?;
    rows.first_mut().map_or(Ok(0), |row| row.int(0))
}

/// Makes the tables of an earlier version: for tests of migrations.
///
/// # Cancellation
/// As for [`migrate`].
///
/// # Errors
/// As for [`migrate`].
pub async fn migrate_to(transaction: &mut dyn SqlTransaction, version: i64) -> Result<(), SqlError> {
    let table = "CREATE TABLE IF NOT EXISTS schema_migrations (version BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)";
    transaction.execute(table, Vec::new()).await?;
    let found = present_version(transaction).await?;
    if found > SCHEMA_VERSION {
        let known = SCHEMA_VERSION;
        return Err(SqlError::Newer { found, known });
    }
    for (step, number) in STEPS.iter().zip(1..=version) {
        if number <= found {
            continue;
        }
        for statement in *step {
            transaction.execute(statement, Vec::new()).await?;
        }
        let record = "INSERT INTO schema_migrations (version, applied_at) VALUES ($1, $2)";
        let now = millis(std::time::SystemTime::now());
        transaction
            .execute(record, vec![number.into(), now.into()])
            .await?;
    }
    Ok(())
}
