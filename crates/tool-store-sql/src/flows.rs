//! Workflows that have begun.

use std::time::Duration;

use raw_json::RawJson;
use tool_core::{BoxFuture, FlowChoice, FlowClaim, FlowPhase, FlowRun, Flows, FlowsError};

use crate::{Database, SqlError, SqlStore, SqlTransaction, SqlValue, codec};

/// Time for which a run is kept after it was last saved.
const TIME_TO_LIVE: Duration = Duration::from_secs(24 * 3600);
/// Maximum size of one entry, in bytes.
const MAX_ENTRY: usize = 64 << 20;

/// The condition that nobody runs a run: it waits, or the lease of its gateway has ended.
macro_rules! is_free {
    ($now:literal) => {
        concat!(
            "(owner IS NULL OR NOT EXISTS (SELECT 1 FROM gateways g WHERE g.id = flows.owner AND g.lease_until > ",
            $now,
            "))"
        )
    };
}

/// Statements about a run that this column chooses. `$1` is its value, `$2` the present time, `$3` this gateway.
struct Statements {
    find: &'static str,
    /// Free also in the outer condition: of two claims at once, the second one looks at the row again.
    claim: &'static str,
    find_running: &'static str,
}

macro_rules! statements {
    ($column:literal) => {
        Statements {
            find: concat!(
                "SELECT 1 FROM flows WHERE ",
                $column,
                " = $1 AND expires_at > $2 LIMIT 1"
            ),
            claim: concat!(
                "UPDATE flows SET owner = $3 WHERE ",
                is_free!("$2"),
                " AND id = (SELECT id FROM flows WHERE ",
                $column,
                " = $1 AND expires_at > $2 AND ",
                is_free!("$2"),
                " ORDER BY expires_at, id LIMIT 1) RETURNING id, call_key"
            ),
            find_running: concat!(
                "SELECT 1 FROM flows WHERE ",
                $column,
                " = $1 AND expires_at > $2 AND owner <> $3 LIMIT 1"
            ),
        }
    };
}

const BY_KEY: Statements = statements!("call_key");
const BY_ID: Statements = statements!("id");
const SAVE: &str = "INSERT INTO flows (id, call_key, owner, expires_at) VALUES ($1, $2, $3, $4) \
                    ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at";
const SAVE_STEP: &str = "INSERT INTO flow_steps (flow, step, entry) VALUES ($1, $2, $3) \
                         ON CONFLICT (flow, step) DO UPDATE SET entry = excluded.entry";
const EXPIRED_STEPS: &str = concat!(
    "DELETE FROM flow_steps WHERE flow IN (SELECT id FROM flows WHERE expires_at <= $1 AND ",
    is_free!("$1"),
    ")"
);
const EXPIRED: &str = concat!("DELETE FROM flows WHERE expires_at <= $1 AND ", is_free!("$1"));

/// A run whose gateway died is claimed by the next call once the [lease](SqlStore#leases) of that gateway has ended.
impl<D: Database> Flows for SqlStore<D> {
    fn is_durable(&self) -> bool {
        true
    }

    fn claim<'a>(&'a self, choice: FlowChoice<'a>) -> BoxFuture<'a, Result<FlowClaim, FlowsError>> {
        Box::pin(async move {
            let claimed = self.claim_flow(choice).await;
            claimed.map_err(|error| self.flows_error(&error))
        })
    }

    fn save(&self, run: FlowRun, phase: FlowPhase) -> BoxFuture<'_, Result<(), FlowsError>> {
        Box::pin(async move {
            if let Some((step, entry)) = run.steps.iter().find(|(_, entry)| entry.len() > MAX_ENTRY) {
                let n_bytes = entry.len();
                let message =
                    format!("the result of step `{step}` has {n_bytes} bytes; {MAX_ENTRY} are allowed");
                return Err(FlowsError::new(message));
            }
            let saved = self.save_flow(&run, phase).await;
            saved.map_err(|error| self.flows_error(&error))
        })
    }

    fn end<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), FlowsError>> {
        Box::pin(async move {
            let ended = self.end_flow(id).await;
            ended.map_err(|error| self.flows_error(&error))
        })
    }
}

impl<D: Database> SqlStore<D> {
    fn flows_error(&self, error: &SqlError) -> FlowsError {
        FlowsError::new(format!("{}: {error}", self.database().name()))
    }

    async fn claim_flow(&self, choice: FlowChoice<'_>) -> Result<FlowClaim, SqlError> {
        let (statements, value) = match choice {
            FlowChoice::Key(key) => (BY_KEY, raw_json::hex(&key)),
            FlowChoice::Id(id) => (BY_ID, id.to_owned()),
            _ => return Ok(FlowClaim::None),
        };
        let now = codec::millis(self.clock().wall());
        let mut parameters: Vec<SqlValue> = vec![value.into(), now.into()];
        // Most calls continue nothing, and write nothing.
        let Some(mut transaction) = self.database().read().await? else {
            return Ok(FlowClaim::None);
        };
        let found = transaction.fetch(statements.find, parameters.clone()).await?;
        if found.is_empty() {
            return Ok(FlowClaim::None);
        }
        drop(transaction);
        let mut transaction = self.database().write().await?;
        let renewal = self.lease().ensure(&mut *transaction, now).await?;
        parameters.push(self.lease().gateway().into());
        let mut rows = transaction.fetch(statements.claim, parameters.clone()).await?;
        let Some(row) = rows.first_mut() else {
            let running = transaction.fetch(statements.find_running, parameters).await?;
            return Ok(match running.is_empty() {
                true => FlowClaim::None,
                false => FlowClaim::Running,
            });
        };
        let (id, key) = (row.text(0)?, codec::digest(&row.text(1)?)?);
        let steps = steps(&mut *transaction, &id).await?;
        transaction.commit().await?;
        self.lease()
            .confirm(&renewal, self.shared_database(), self.clock());
        Ok(FlowClaim::Claimed(FlowRun::new(id, key).with_steps(steps)))
    }

    async fn save_flow(&self, run: &FlowRun, phase: FlowPhase) -> Result<(), SqlError> {
        let now = codec::millis(self.clock().wall());
        let expiry = codec::millis(self.clock().wall() + TIME_TO_LIVE);
        let mut transaction = self.database().write().await?;
        let is_running = phase == FlowPhase::Running;
        let renewal = match is_running {
            true => Some(self.lease().ensure(&mut *transaction, now).await?),
            false => {
                for statement in [EXPIRED_STEPS, EXPIRED] {
                    transaction.execute(statement, vec![now.into()]).await?;
                }
                None
            }
        };
        let owner = is_running.then(|| self.lease().gateway());
        let parameters = vec![
            (&*run.id).into(),
            raw_json::hex(&run.key).into(),
            owner.into(),
            expiry.into(),
        ];
        transaction.execute(SAVE, parameters).await?;
        for (step, entry) in &run.steps {
            let parameters = vec![(&*run.id).into(), step.as_str().into(), entry.as_str().into()];
            transaction.execute(SAVE_STEP, parameters).await?;
        }
        transaction.commit().await?;
        if let Some(renewal) = &renewal {
            self.lease()
                .confirm(renewal, self.shared_database(), self.clock());
        }
        Ok(())
    }

    async fn end_flow(&self, id: &str) -> Result<(), SqlError> {
        let mut transaction = self.database().write().await?;
        for statement in [
            "DELETE FROM flow_steps WHERE flow = $1",
            "DELETE FROM flows WHERE id = $1",
        ] {
            transaction.execute(statement, vec![id.into()]).await?;
        }
        transaction.commit().await
    }
}

/// Returns the entries of a run's steps.
async fn steps(transaction: &mut dyn SqlTransaction, id: &str) -> Result<Vec<(String, RawJson)>, SqlError> {
    let query = "SELECT step, entry FROM flow_steps WHERE flow = $1 ORDER BY step";
    let rows = transaction.fetch(query, vec![id.into()]).await?;
    let steps = rows.into_iter().map(|mut row| {
        let (step, entry) = (row.text(0)?, row.text(1)?);
        let entry = RawJson::parse(entry).map_err(|error| {
            SqlError::Corrupt(format!("the step `{step}` of a workflow is no JSON: {error}"))
        })?;
        Ok((step, entry))
    });
    steps.collect()
}
