//! Writes that nobody waits for, and intents, which are written with them.

use tokio::sync::oneshot;
use tool_core::{CallEnd, Claim, CorrelationId, ToolError};

use super::payload::payload;
use crate::{SqlError, SqlTransaction, SqlValue};

/// Change of the ledger that the writer makes.
pub(super) enum Write {
    /// End of the call of an entry.
    End {
        id: CorrelationId,
        /// `true` for the entry of an intent, `false` for that of a key.
        is_intent: bool,
        end: CallEnd,
        at: i64,
    },
    /// Call without a key whose outcome is unknown.
    Unknown {
        claim: Box<Claim>,
        error: ToolError,
        at: i64,
    },
    /// Call that is sent as soon as this is written.
    Intent {
        claim: Box<Claim>,
        at: i64,
        done: oneshot::Sender<Result<(), SqlError>>,
    },
}

const END: &str = "UPDATE ledger SET state = $4, detail = $5, reply = $6, expires_at = time_to_live + $7 \
                   WHERE id = $1 AND is_intent = $2 AND owner = $3 AND state = 'running'";
const FREE: &str = "DELETE FROM ledger WHERE id = $1 AND is_intent = $2 AND owner = $3 AND state = 'running'";
const ADD: &str = "INSERT INTO ledger (id, is_intent, tenant, principal, tool, arguments_digest, begun_at, \
                   time_to_live, expires_at, owner, state, detail) \
                   VALUES ($1, 1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
                   ON CONFLICT (id) WHERE is_intent = 1 DO UPDATE SET tenant = excluded.tenant, \
                   principal = excluded.principal, tool = excluded.tool, \
                   arguments_digest = excluded.arguments_digest, time_to_live = excluded.time_to_live, \
                   expires_at = excluded.expires_at, owner = excluded.owner, state = excluded.state, \
                   detail = excluded.detail, reply = NULL";
const PURGE: &str = "DELETE FROM ledger WHERE expires_at <= $1 AND (state <> 'running' OR NOT EXISTS \
                     (SELECT 1 FROM gateways g WHERE g.id = ledger.owner AND g.lease_until > $1))";
const PURGE_LEASES: &str = "DELETE FROM gateways WHERE lease_until <= $1";

impl Write {
    /// Returns the bytes of a reply that waits to be written.
    pub(super) fn n_bytes(&self) -> usize {
        match self {
            Self::End {
                end: CallEnd::Answered(Some(reply)),
                ..
            } => reply.raw().len(),
            _ => 0,
        }
    }

    /// Drops the reply. The call is still not made twice.
    pub(super) fn drop_reply(&mut self) {
        if let Self::End { end, .. } = self
            && matches!(end, CallEnd::Answered(_))
        {
            *end = CallEnd::Answered(None);
        }
    }

    /// Returns `true` for an intent that nobody waits for any more: the call was cancelled, and is not sent.
    pub(super) fn is_withdrawn(&self) -> bool {
        matches!(self, Self::Intent { done, .. } if done.is_closed())
    }

    pub(super) async fn write(
        &self,
        transaction: &mut dyn SqlTransaction,
        gateway: &str,
        max_reply: usize,
    ) -> Result<(), SqlError> {
        match self {
            Self::End {
                id,
                is_intent,
                end,
                at,
            } => {
                let mut parameters: Vec<SqlValue> = vec![
                    id.to_string().into(),
                    i64::from(*is_intent).into(),
                    gateway.into(),
                ];
                let Some(end) = payload(end, max_reply) else {
                    transaction.execute(FREE, parameters).await?;
                    return Ok(());
                };
                parameters.extend([
                    end.state.into(),
                    end.detail.into(),
                    end.reply.into(),
                    (*at).into(),
                ]);
                transaction.execute(END, parameters).await?;
            }
            Self::Unknown { claim, error, at } => {
                let detail = payload(&CallEnd::Unknown(error.clone()), 0).and_then(|end| end.detail);
                add(transaction, claim, gateway, *at, "unknown", detail).await?;
            }
            Self::Intent { claim, at, .. } => add(transaction, claim, gateway, *at, "running", None).await?,
        }
        Ok(())
    }
}

async fn add(
    transaction: &mut dyn SqlTransaction,
    claim: &Claim,
    gateway: &str,
    at: i64,
    state: &str,
    detail: Option<String>,
) -> Result<(), SqlError> {
    let ttl = i64::try_from(claim.ttl.as_millis()).unwrap_or(i64::MAX);
    let parameters = vec![
        claim.id.to_string().into(),
        (&*claim.tenant).into(),
        (&*claim.principal).into(),
        (&*claim.tool).into(),
        raw_json::hex(&claim.arguments).into(),
        at.into(),
        ttl.into(),
        at.saturating_add(ttl).into(),
        gateway.into(),
        state.into(),
        detail.into(),
    ];
    transaction.execute(ADD, parameters).await?;
    Ok(())
}

/// Removes expired entries, and the leases of gateways that have died.
pub(super) async fn purge(transaction: &mut dyn SqlTransaction, now: i64) -> Result<(), SqlError> {
    transaction.execute(PURGE, vec![now.into()]).await?;
    transaction.execute(PURGE_LEASES, vec![now.into()]).await?;
    Ok(())
}
