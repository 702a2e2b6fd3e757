//! Approvals.

use std::sync::Arc;

use raw_json::{JsonLimits, RawJson};
use serde_json::{Value, json};
use tool_core::{
    ApprovalCall, ApprovalRecord, ApprovalState, Approvals, ApprovalsError, BoxFuture, Caller, Instant,
};

use crate::{Database, SqlError, SqlRow, SqlStore, SqlTransaction, SqlValue, codec, ledger};

/// Maximum number of approvals, and of those of one principal: a caller with many requests cannot evict those of others.
const MAX_TOTAL: i64 = 256;
const MAX_OF_PRINCIPAL: i64 = 32;

/// Error of a request for approval.
enum AskError {
    Sql(SqlError),
    Full { waiting: i64, whose: &'static str },
}

impl From<SqlError> for AskError {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

/// Keeps at most 256 approvals, and 32 of one principal. Expiries are stored as times of day, so that approvals outlive the
/// process and are seen by all gateways on the database.
///
/// # After a crash
/// An approval whose call was running when its gateway died stays used: nobody can tell whether the call ran, so nothing runs
/// with this approval again. Once the [lease](SqlStore#leases) of the gateway has ended, the approval becomes an unknown
/// outcome in the ledger, under its handle as the id, unless the ledger has an entry of the call already. The caller can
/// request another approval.
impl<D: Database> Approvals for SqlStore<D> {
    fn ask(
        &self,
        approval: ApprovalRecord,
        now: Instant,
    ) -> BoxFuture<'_, Result<ApprovalRecord, ApprovalsError>> {
        Box::pin(async move {
            self.ask_once(approval, now).await.map_err(|error| match error {
                AskError::Sql(error) => self.unavailable(error),
                AskError::Full { waiting, whose } => ApprovalsError::Full {
                    waiting: usize::try_from(waiting).unwrap_or_default(),
                    whose,
                },
            })
        })
    }

    fn get<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<Option<ApprovalRecord>, ApprovalsError>> {
        Box::pin(async move {
            let found = async {
                let Some(mut transaction) = self.database().read().await? else {
                    return Ok(None);
                };
                let mut rows = transaction.fetch(BY_HANDLE, vec![handle.into()]).await?;
                rows.first_mut().map(|row| self.record(row)).transpose()
            };
            found.await.map_err(|error| self.unavailable(error))
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<ApprovalRecord>, ApprovalsError>> {
        Box::pin(async move {
            let listed = async {
                let Some(mut transaction) = self.database().read().await? else {
                    return Ok(Vec::new());
                };
                let mut rows = transaction.fetch(ALL, Vec::new()).await?;
                rows.iter_mut().map(|row| self.record(row)).collect()
            };
            listed.await.map_err(|error| self.unavailable(error))
        })
    }

    /// The call of an approval stays the one that was asked for.
    fn replace<'a>(
        &'a self,
        known: &'a ApprovalState,
        new: ApprovalRecord,
    ) -> BoxFuture<'a, Result<bool, ApprovalsError>> {
        Box::pin(async move {
            let replaced = self.replace_once(known, &new).await;
            replaced.map_err(|error| self.unavailable(error))
        })
    }
}

impl<D: Database> SqlStore<D> {
    async fn ask_once(&self, approval: ApprovalRecord, now: Instant) -> Result<ApprovalRecord, AskError> {
        let now = codec::millis(codec::wall_of(&**self.clock(), now));
        let mut transaction = self.database().write().await?;
        // Orders the requests: a database that lets several writers work at once makes them wait for this row.
        let raise =
            "UPDATE store_meta SET number = number + 1 WHERE name = 'approvals_position' RETURNING number";
        let mut raised = transaction.fetch(raise, Vec::new()).await?;
        let position = raised.first_mut().map(|row| row.int(0)).transpose()?;
        let position = position.ok_or_else(|| SqlError::Corrupt("approvals have no position".to_owned()))?;
        ledger::report_abandoned_approvals(&mut *transaction, now).await?;
        // One that is in use is needed until its call ends.
        let expired = "DELETE FROM approvals WHERE expires_at <= $1 AND state <> 'running'";
        transaction.execute(expired, vec![now.into()]).await?;
        if let Some(mut row) = find_same(&mut *transaction, &approval.call).await? {
            let known = self.record(&mut row)?;
            transaction.commit().await?;
            return Ok(known);
        }
        check_room(&mut *transaction, &approval.call).await?;
        self.insert_approval(&mut *transaction, &approval, position)
            .await?;
        transaction.commit().await?;
        Ok(approval)
    }

    async fn insert_approval(
        &self,
        transaction: &mut dyn SqlTransaction,
        approval: &ApprovalRecord,
        position: i64,
    ) -> Result<(), SqlError> {
        let call = &*approval.call;
        let (state, detail) = state_columns(&approval.state);
        let changed_at = codec::millis(self.clock().wall());
        let parameters = vec![
            (&*approval.handle).into(),
            position.into(),
            (&*call.tenant).into(),
            (&*call.principal).into(),
            (&*call.tool).into(),
            call.version.as_deref().into(),
            call.arguments.as_str().into(),
            Value::from(call.risks.clone()).to_string().into(),
            Value::from(call.reason.as_str()).to_string().into(),
            i64::from(call.by_another).into(),
            codec::millis(call.asked_at).into(),
            codec::millis(call.expires_at).into(),
            raw_json::hex(&call.tool_digest).into(),
            raw_json::hex(&call.arguments_digest).into(),
            raw_json::hex(&call.policy_digest).into(),
            state.into(),
            detail.into(),
            self.expiry(approval).into(),
            changed_at.into(),
            Value::from(call.details.as_str()).to_string().into(),
        ];
        let statement = "INSERT INTO approvals (handle, position, tenant, principal, tool, version, arguments, risks, \
                         reason, by_another, asked_at, shown_expiry, tool_digest, arguments_digest, policy_digest, \
                         state, state_detail, expires_at, changed_at, details) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, \
                         $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)";
        transaction.execute(statement, parameters).await?;
        Ok(())
    }

    async fn replace_once(&self, known: &ApprovalState, new: &ApprovalRecord) -> Result<bool, SqlError> {
        let now = codec::millis(self.clock().wall());
        let mut transaction = self.database().write().await?;
        let (state, detail) = state_columns(known);
        let mut parameters: Vec<SqlValue> = vec![(&*new.handle).into(), state.into(), detail.into()];
        if new.state == ApprovalState::Ended {
            let statement = "DELETE FROM approvals WHERE handle = $1 AND state = $2 AND state_detail = $3";
            let n_removed = transaction.execute(statement, parameters).await?;
            transaction.commit().await?;
            return Ok(n_removed > 0);
        }
        let is_running = matches!(new.state, ApprovalState::Running { .. });
        let renewal = match is_running {
            true => Some(self.lease().ensure(&mut *transaction, now).await?),
            false => None,
        };
        let (state, detail) = state_columns(&new.state);
        let owner = is_running.then(|| self.lease().gateway());
        parameters.extend([
            state.into(),
            detail.into(),
            self.expiry(new).into(),
            now.into(),
            owner.into(),
        ]);
        let statement = "UPDATE approvals SET state = $4, state_detail = $5, expires_at = $6, changed_at = $7, \
                         owner = $8 WHERE handle = $1 AND state = $2 AND state_detail = $3";
        let n_changed = transaction.execute(statement, parameters).await?;
        transaction.commit().await?;
        if let Some(renewal) = &renewal {
            self.lease()
                .confirm(renewal, self.shared_database(), self.clock());
        }
        Ok(n_changed > 0)
    }

    /// Returns the expiry of an approval, in milliseconds since 1970.
    fn expiry(&self, approval: &ApprovalRecord) -> i64 {
        codec::millis(codec::wall_of(&**self.clock(), approval.expiry))
    }

    fn record(&self, row: &mut SqlRow) -> Result<ApprovalRecord, SqlError> {
        let expiry = codec::instant_of(&**self.clock(), codec::time(row.int(16)?));
        let state = state(&row.text(14)?, &row.text(15)?)?;
        let mut caller = Caller::new(row.text(2)?);
        caller.tenant = row.text(1)?.into();
        let arguments = RawJson::parse_within(row.text(5)?, JsonLimits::RELAY).map_err(|error| {
            SqlError::Corrupt(format!("the arguments of an approval are no JSON: {error}"))
        })?;
        let (asked_at, expires_at) = (codec::time(row.int(9)?), codec::time(row.int(10)?));
        let tool = row.text(3)?;
        let mut call = ApprovalCall::new(tool.into(), arguments, &caller, asked_at, expires_at);
        call.version = row.optional_text(4)?;
        call.risks = codec::json(&row.text(6)?, "the risks of an approval")?;
        call.reason = codec::json(&row.text(7)?, "the reason of an approval")?;
        let details = row.text(17)?;
        if !details.is_empty() {
            call.details = codec::json(&details, "the details of an approval")?;
        }
        call.by_another = row.int(8)? != 0;
        call.tool_digest = codec::digest(&row.text(11)?)?;
        call.arguments_digest = codec::digest(&row.text(12)?)?;
        call.policy_digest = codec::digest(&row.text(13)?)?;
        let handle = row.text(0)?;
        Ok(ApprovalRecord::new(handle.into(), Arc::new(call), expiry, state))
    }

    fn unavailable(&self, error: SqlError) -> ApprovalsError {
        ApprovalsError::Unavailable(error.of_store(self.database().name()).to_string())
    }
}

const BY_HANDLE: &str = "SELECT handle, tenant, principal, tool, version, arguments, risks, reason, by_another, \
                         asked_at, shown_expiry, tool_digest, arguments_digest, policy_digest, state, state_detail, \
                         expires_at, details FROM approvals WHERE handle = $1";
const ALL: &str = "SELECT handle, tenant, principal, tool, version, arguments, risks, reason, by_another, asked_at, \
                   shown_expiry, tool_digest, arguments_digest, policy_digest, state, state_detail, expires_at, \
                   details FROM approvals ORDER BY position";

/// Finds the open approval of the same call: see [`ApprovalCall::is_same`] and [`ApprovalState::is_open`].
async fn find_same(
    transaction: &mut dyn SqlTransaction,
    call: &ApprovalCall,
) -> Result<Option<SqlRow>, SqlError> {
    let query = "SELECT handle, tenant, principal, tool, version, arguments, risks, reason, by_another, asked_at, \
                 shown_expiry, tool_digest, arguments_digest, policy_digest, state, state_detail, expires_at, \
                 details FROM approvals WHERE tenant = $1 AND principal = $2 AND tool = $3 AND tool_digest = $4 \
                 AND arguments_digest = $5 AND policy_digest = $6 AND by_another = $7 \
                 AND state IN ('pending', 'approved', 'denied') ORDER BY position LIMIT 1";
    let parameters = vec![
        (&*call.tenant).into(),
        (&*call.principal).into(),
        (&*call.tool).into(),
        raw_json::hex(&call.tool_digest).into(),
        raw_json::hex(&call.arguments_digest).into(),
        raw_json::hex(&call.policy_digest).into(),
        i64::from(call.by_another).into(),
    ];
    Ok(transaction.fetch(query, parameters).await?.pop())
}

async fn check_room(transaction: &mut dyn SqlTransaction, call: &ApprovalCall) -> Result<(), AskError> {
    let own = "SELECT COUNT(*) FROM approvals WHERE tenant = $1 AND principal = $2";
    let owner = vec![(&*call.tenant).into(), (&*call.principal).into()];
    let all = "SELECT COUNT(*) FROM approvals";
    for (query, parameters, max, whose) in [
        (own, owner, MAX_OF_PRINCIPAL, "this caller"),
        (all, Vec::new(), MAX_TOTAL, "all callers"),
    ] {
        let mut rows = transaction.fetch(query, parameters).await?;
        let waiting = rows.first_mut().map_or(Ok(0), |row| row.int(0))?;
        if waiting >= max {
            return Err(AskError::Full { waiting, whose });
        }
    }
    Ok(())
}

/// Returns a state as a word and its details. Equal states have equal texts.
fn state_columns(state: &ApprovalState) -> (&'static str, String) {
    let (word, detail) = match state {
        ApprovalState::Pending => ("pending", Value::Null),
        ApprovalState::Asked => ("asked", Value::Null),
        ApprovalState::Approved { by } => ("approved", json!({"by": **by})),
        ApprovalState::Denied { by, reason } => ("denied", json!({"by": **by, "reason": reason})),
        ApprovalState::Running { round } => ("running", json!({"round": round})),
        ApprovalState::Waiting { round } => ("waiting", json!({"round": round})),
        // A state that this store does not know has no row, and is never found.
        _ => ("ended", Value::Null),
    };
    (word, detail.to_string())
}

fn state(word: &str, detail: &str) -> Result<ApprovalState, SqlError> {
    let detail: Value = codec::json(detail, "the details of an approval's state")?;
    let by = || Arc::from(detail["by"].as_str().unwrap_or_default());
    let round = || {
        detail["round"]
            .as_u64()
            .and_then(|round| u32::try_from(round).ok())
            .unwrap_or_default()
    };
    Ok(match word {
        "pending" => ApprovalState::Pending,
        "asked" => ApprovalState::Asked,
        "approved" => ApprovalState::Approved { by: by() },
        "denied" => ApprovalState::Denied {
            by: by(),
            reason: detail["reason"].as_str().map(str::to_owned),
        },
        "running" => ApprovalState::Running { round: round() },
        "waiting" => ApprovalState::Waiting { round: round() },
        other => {
            return Err(SqlError::Corrupt(format!(
                "unknown state `{}`",
                other.escape_debug()
            )));
        }
    })
}
