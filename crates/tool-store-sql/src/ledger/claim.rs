//! Claims of keys.

use tool_core::{Claim, CorrelationId, LedgerEntry};

use super::read::{COLUMNS_BY_KEY, Row};
use crate::{SqlError, SqlTransaction};

/// Answer to a claim, within its transaction.
pub(super) enum Claimed {
    /// The call may be made, with the entry of this id.
    Granted(CorrelationId),
    /// A call with this key runs.
    Running,
    /// The entry was changed by somebody else at the same time.
    Changed,
    /// The call with this key has ended.
    Ended(Box<LedgerEntry>),
    /// The key was used for another call.
    Conflict,
}

/// Takes a key that nobody has, or whose entry has expired. One statement, so that of several claims one succeeds.
const TAKE: &str = "INSERT INTO ledger (id, is_intent, tenant, principal, idempotency_key, tool, arguments_digest, \
                    begun_at, time_to_live, expires_at, owner, state) \
                    VALUES ($1, 0, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'running') \
                    ON CONFLICT (tenant, principal, idempotency_key) WHERE idempotency_key IS NOT NULL \
                    DO UPDATE SET id = excluded.id, tool = excluded.tool, \
                    arguments_digest = excluded.arguments_digest, begun_at = excluded.begun_at, \
                    time_to_live = excluded.time_to_live, expires_at = excluded.expires_at, \
                    owner = excluded.owner, state = 'running', detail = NULL, reply = NULL \
                    WHERE ledger.expires_at <= $7 AND (ledger.state <> 'running' OR NOT EXISTS \
                    (SELECT 1 FROM gateways g WHERE g.id = ledger.owner AND g.lease_until > $7)) \
                    RETURNING id";
/// Lets the call of an entry run again, if the entry is still as it was read.
const RESUME: &str = "UPDATE ledger SET state = 'running', owner = $2, detail = NULL, reply = NULL \
                      WHERE id = $1 AND is_intent = 0 AND idempotency_key = $3 AND state = $4 AND owner = $5";

pub(super) async fn claim(
    transaction: &mut dyn SqlTransaction,
    claim: &Claim,
    gateway: &str,
    now: i64,
) -> Result<Claimed, SqlError> {
    let key = claim.key.as_deref();
    let ttl = i64::try_from(claim.ttl.as_millis()).unwrap_or(i64::MAX);
    let parameters = vec![
        claim.id.to_string().into(),
        (&*claim.tenant).into(),
        (&*claim.principal).into(),
        key.into(),
        (&*claim.tool).into(),
        raw_json::hex(&claim.arguments).into(),
        now.into(),
        ttl.into(),
        now.saturating_add(ttl).into(),
        gateway.into(),
    ];
    if !transaction.fetch(TAKE, parameters).await?.is_empty() {
        return Ok(Claimed::Granted(claim.id));
    }
    let parameters = vec![
        (&*claim.tenant).into(),
        (&*claim.principal).into(),
        key.into(),
        now.into(),
    ];
    let mut rows = transaction.fetch(COLUMNS_BY_KEY, parameters).await?;
    let Some(row) = rows.first_mut() else {
        return Ok(Claimed::Changed);
    };
    let row = Row::read(row)?;
    if row.tool != *claim.tool || row.arguments_digest != claim.arguments {
        return Ok(Claimed::Conflict);
    }
    let may_run = match row.effective_state() {
        "running" => return Ok(Claimed::Running),
        "open" => true,
        "unknown" => claim.may_repeat,
        _ => false,
    };
    if !may_run {
        return Ok(Claimed::Ended(Box::new(row.into_entry()?)));
    }
    let parameters = vec![
        row.id.to_string().into(),
        gateway.into(),
        key.into(),
        row.state.as_str().into(),
        row.owner.as_str().into(),
    ];
    Ok(match transaction.execute(RESUME, parameters).await? {
        0 => Claimed::Changed,
        _ => Claimed::Granted(row.id),
    })
}
