//! Entries as they are read.

use tool_core::{Claim, CorrelationId, ErrorKind, LedgerEntry, LedgerState, ToolError};

use super::payload;
use crate::{SqlError, SqlRow, SqlTransaction, codec};

/// Entry of a key. The last column is 1 if the gateway that runs the call lives.
pub(super) const COLUMNS_BY_KEY: &str = "SELECT id, tenant, principal, idempotency_key, tool, arguments_digest, \
    begun_at, owner, state, detail, reply, \
    CASE WHEN EXISTS (SELECT 1 FROM gateways g WHERE g.id = ledger.owner AND g.lease_until > $4) THEN 1 ELSE 0 END \
    FROM ledger WHERE tenant = $1 AND principal = $2 AND idempotency_key = $3";
const CLAIM_BY_ID: &str = "SELECT id, tenant, principal, idempotency_key, tool, arguments_digest, begun_at, owner, \
    state, detail, reply, \
    CASE WHEN EXISTS (SELECT 1 FROM gateways g WHERE g.id = ledger.owner AND g.lease_until > $2) THEN 1 ELSE 0 END \
    FROM ledger WHERE id = $1 AND is_intent = 0 ORDER BY begun_at DESC LIMIT 1";
const INTENT_BY_ID: &str = "SELECT id, tenant, principal, idempotency_key, tool, arguments_digest, begun_at, owner, \
    state, detail, reply, \
    CASE WHEN EXISTS (SELECT 1 FROM gateways g WHERE g.id = ledger.owner AND g.lease_until > $2) THEN 1 ELSE 0 END \
    FROM ledger WHERE id = $1 AND is_intent = 1";
const UNKNOWN: &str = "SELECT id, tenant, principal, idempotency_key, tool, arguments_digest, begun_at, owner, \
    state, detail, reply, 0 FROM ledger WHERE state = 'unknown' AND expires_at > $1 \
    ORDER BY begun_at DESC, id LIMIT $2";
const ABANDONED: &str = "SELECT id, tenant, principal, idempotency_key, tool, arguments_digest, begun_at, owner, \
    state, detail, reply, 0 FROM ledger WHERE state = 'running' AND expires_at > $1 AND NOT EXISTS \
    (SELECT 1 FROM gateways g WHERE g.id = ledger.owner AND g.lease_until > $1) \
    ORDER BY begun_at DESC, id LIMIT $2";
const ABANDONED_APPROVALS: &str = "SELECT handle, tenant, principal, tool, arguments_digest, changed_at, owner \
    FROM approvals WHERE state = 'running' AND NOT EXISTS \
    (SELECT 1 FROM gateways g WHERE g.id = approvals.owner AND g.lease_until > $1)";

/// Time for which the unknown outcome of an approved call is remembered: the default of an idempotency key.
const APPROVED_TTL: i64 = 24 * 60 * 60 * 1000;

/// Row of the ledger.
pub(super) struct Row {
    pub(super) id: CorrelationId,
    tenant: String,
    principal: String,
    key: Option<String>,
    pub(super) tool: String,
    pub(super) arguments_digest: [u8; 32],
    begun_at: i64,
    pub(super) owner: String,
    pub(super) state: String,
    detail: Option<String>,
    reply: Option<String>,
    owner_lives: bool,
}

impl Row {
    pub(super) fn read(row: &mut SqlRow) -> Result<Self, SqlError> {
        Ok(Self {
            id: id(&row.text(0)?)?,
            tenant: row.text(1)?,
            principal: row.text(2)?,
            key: row.optional_text(3)?,
            tool: row.text(4)?,
            arguments_digest: codec::digest(&row.text(5)?)?,
            begun_at: row.int(6)?,
            owner: row.text(7)?,
            state: row.text(8)?,
            detail: row.optional_text(9)?,
            reply: row.optional_text(10)?,
            owner_lives: row.int(11)? != 0,
        })
    }

    /// Returns the state: a call whose gateway has died is not running, and its outcome is unknown.
    pub(super) fn effective_state(&self) -> &str {
        match &*self.state {
            "running" if !self.owner_lives => "unknown",
            state => state,
        }
    }

    pub(super) fn into_entry(self) -> Result<LedgerEntry, SqlError> {
        let state = match self.state == "running" && !self.owner_lives {
            true => LedgerState::Unknown(abandoned(self.id)),
            false => payload::state(&self.state, self.detail.as_deref(), self.reply)?,
        };
        let mut claim = Claim::new(self.id, self.tenant, self.principal, self.tool);
        claim.key = self.key.map(Into::into);
        Ok(LedgerEntry::new(&claim, codec::time(self.begun_at), state))
    }
}

/// Returns the outcome of a call whose gateway has died.
fn abandoned(id: CorrelationId) -> ToolError {
    let message = "the gateway ended before the call was answered; whether the tool ran is not known";
    ToolError::new(ErrorKind::OutcomeUnknown, message).with_ledger_id(id)
}

fn id(text: &str) -> Result<CorrelationId, SqlError> {
    text.parse()
        .map_err(|_| SqlError::Corrupt(format!("`{}` is no id of a call", text.escape_debug())))
}

/// Finds the entry of this id: that of a key, or else that of an intent.
pub(super) async fn find(
    transaction: &mut dyn SqlTransaction,
    id: CorrelationId,
    now: i64,
) -> Result<Option<LedgerEntry>, SqlError> {
    for query in [CLAIM_BY_ID, INTENT_BY_ID] {
        let mut rows = transaction
            .fetch(query, vec![id.to_string().into(), now.into()])
            .await?;
        if let Some(row) = rows.first_mut() {
            return Row::read(row)?.into_entry().map(Some);
        }
    }
    Ok(None)
}

/// Returns the calls whose outcome is unknown, most recent first.
pub(super) async fn unknown(
    transaction: &mut dyn SqlTransaction,
    limit: usize,
    now: i64,
) -> Result<Vec<LedgerEntry>, SqlError> {
    let mut entries = Vec::new();
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    for query in [UNKNOWN, ABANDONED] {
        for mut row in transaction.fetch(query, vec![now.into(), most.into()]).await? {
            entries.push(Row::read(&mut row)?.into_entry()?);
        }
    }
    entries.sort_by_key(|entry| (std::cmp::Reverse(entry.begun), entry.id.0));
    entries.truncate(limit);
    Ok(entries)
}

/// Returns `true` if an approval is in use by a gateway that has died.
pub(super) async fn has_abandoned_approvals(
    transaction: &mut dyn SqlTransaction,
    now: i64,
) -> Result<bool, SqlError> {
    Ok(!transaction
        .fetch(ABANDONED_APPROVALS, vec![now.into()])
        .await?
        .is_empty())
}

/// Makes an unknown outcome of each approval that was in use when its gateway died, unless the ledger knows the call, and ends the
/// approval.
pub(crate) async fn report_abandoned_approvals(
    transaction: &mut dyn SqlTransaction,
    now: i64,
) -> Result<(), SqlError> {
    for mut row in transaction.fetch(ABANDONED_APPROVALS, vec![now.into()]).await? {
        let handle = row.text(0)?;
        let (tenant, principal, tool) = (row.text(1)?, row.text(2)?, row.text(3)?);
        let (arguments, changed_at) = (row.text(4)?, row.int(5)?);
        let owner = row.optional_text(6)?.unwrap_or_default();
        // Removed first: its gateway may have ended the call since the row was read, and reports it then.
        let statement = "DELETE FROM approvals WHERE handle = $1 AND state = 'running' AND changed_at = $2 AND COALESCE(owner, '') = $3";
        let key = vec![handle.as_str().into(), changed_at.into(), owner.as_str().into()];
        if transaction.execute(statement, key).await? == 0 {
            continue;
        }
        let known = "SELECT 1 FROM ledger WHERE owner = $1 AND tenant = $2 AND principal = $3 AND tool = $4 \
                     AND arguments_digest = $5 AND state IN ('running', 'unknown') LIMIT 1";
        let call = vec![
            owner.as_str().into(),
            tenant.as_str().into(),
            principal.as_str().into(),
            tool.as_str().into(),
            arguments.as_str().into(),
        ];
        if transaction.fetch(known, call).await?.is_empty() {
            // Handles are 128 random bits in hexadecimal digits, like ids.
            let id = handle
                .parse()
                .unwrap_or_else(|_| CorrelationId(digest_of(&handle)));
            let detail =
                payload::payload(&tool_core::CallEnd::Unknown(abandoned(id)), 0).and_then(|end| end.detail);
            let statement = "INSERT INTO ledger (id, is_intent, tenant, principal, tool, arguments_digest, begun_at, \
                             time_to_live, expires_at, owner, state, detail) \
                             VALUES ($1, 1, $2, $3, $4, $5, $6, $7, $8, $9, 'unknown', $10) \
                             ON CONFLICT (id) WHERE is_intent = 1 DO NOTHING";
            let parameters = vec![
                id.to_string().into(),
                tenant.into(),
                principal.into(),
                tool.into(),
                arguments.into(),
                changed_at.into(),
                APPROVED_TTL.into(),
                now.saturating_add(APPROVED_TTL).into(),
                owner.into(),
                detail.into(),
            ];
            transaction.execute(statement, parameters).await?;
        }
    }
    Ok(())
}

fn digest_of(handle: &str) -> u128 {
    let digest = raw_json::digest(&raw_json::RawJson::from(handle));
    digest[..16]
        .iter()
        .fold(0, |id, byte| id << 8 | u128::from(*byte))
}
