//! Leases of gateways: which of them live, so that the calls of the others are known to have no end.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, time::sleep};
use tool_core::Clock;

use crate::{Database, SqlError, SqlTransaction, codec};

/// Lease of the gateway that a store belongs to: a row with a time, which is renewed while calls run.
#[derive(Debug)]
pub(crate) struct Lease {
    /// Random id of this gateway.
    gateway: String,
    length: Duration,
    /// Committed end of the lease, in milliseconds since 1970.
    until: AtomicI64,
    is_renewing: AtomicBool,
    /// `true` from the end of the lease to the next call: calls that still run do not keep it.
    is_ended: AtomicBool,
}

/// Renewal of a lease that is part of a transaction. It counts once that is committed.
#[must_use = "a renewal that is not confirmed is repeated"]
pub(crate) struct Renewal(Option<i64>);

impl Lease {
    pub(crate) fn new(length: Duration) -> Self {
        let random = || RandomState::new().build_hasher().finish();
        Self {
            gateway: format!("{:016x}{:016x}", random(), random()),
            length,
            until: AtomicI64::new(i64::MIN),
            is_renewing: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn gateway(&self) -> &str {
        &self.gateway
    }

    fn length_millis(&self) -> i64 {
        i64::try_from(self.length.as_millis()).unwrap_or(i64::MAX)
    }

    /// Makes sure, within a transaction that makes rows of this gateway, that the lease holds for a while.
    pub(crate) async fn ensure(
        &self,
        transaction: &mut dyn SqlTransaction,
        now: i64,
    ) -> Result<Renewal, SqlError> {
        self.is_ended.store(false, Ordering::Release);
        let left = self.until.load(Ordering::Acquire).saturating_sub(now);
        if left > self.length_millis() / 3 * 2 && left <= self.length_millis() {
            return Ok(Renewal(None));
        }
        self.renew(transaction, now).await
    }

    async fn renew(&self, transaction: &mut dyn SqlTransaction, now: i64) -> Result<Renewal, SqlError> {
        let until = now.saturating_add(self.length_millis());
        let statement = "INSERT INTO gateways (id, lease_until) VALUES ($1, $2) \
                         ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until";
        transaction
            .execute(statement, vec![self.gateway().into(), until.into()])
            .await?;
        Ok(Renewal(Some(until)))
    }

    /// Records that the transaction of a renewal is committed, and keeps the lease from then on.
    pub(crate) fn confirm<D: Database>(
        self: &Arc<Self>,
        renewal: &Renewal,
        database: &Arc<D>,
        clock: &Arc<dyn Clock>,
    ) {
        if let &Renewal(Some(until)) = renewal {
            self.until.store(until, Ordering::Release);
        }
        if !self.is_renewing.swap(true, Ordering::AcqRel) {
            let token = RenewingToken(Arc::downgrade(self));
            if let Ok(runtime) = Handle::try_current() {
                let database = Arc::downgrade(database);
                runtime.spawn(keep(token, self.length / 3, database, clock.clone()));
            }
        }
    }

    /// Returns `true` if the lease was ever held and not ended.
    pub(crate) fn is_held(&self) -> bool {
        self.until.load(Ordering::Acquire) != i64::MIN
    }

    /// Ends the lease. Calls of this gateway that are still running are unknown outcomes from now on.
    pub(crate) async fn end(&self, transaction: &mut dyn SqlTransaction) -> Result<(), SqlError> {
        self.until.store(i64::MIN, Ordering::Release);
        self.is_ended.store(true, Ordering::Release);
        let statement = "DELETE FROM gateways WHERE id = $1";
        transaction
            .execute(statement, vec![self.gateway().into()])
            .await?;
        Ok(())
    }

    /// Returns `true` if a call of this gateway runs.
    async fn is_needed(&self, transaction: &mut dyn SqlTransaction) -> Result<bool, SqlError> {
        let query = "SELECT 1 FROM ledger WHERE owner = $1 AND state = 'running' LIMIT 1";
        if !transaction
            .fetch(query, vec![self.gateway().into()])
            .await?
            .is_empty()
        {
            return Ok(true);
        }
        let queries = [
            "SELECT 1 FROM approvals WHERE owner = $1 AND state = 'running' LIMIT 1",
            "SELECT 1 FROM flows WHERE owner = $1 LIMIT 1",
        ];
        for query in queries {
            let found = transaction.fetch(query, vec![self.gateway().into()]).await?;
            if !found.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Marks that a task keeps the lease, until it ends, also with its runtime.
struct RenewingToken(Weak<Lease>);

impl Drop for RenewingToken {
    fn drop(&mut self) {
        if let Some(lease) = self.0.upgrade() {
            lease.is_renewing.store(false, Ordering::Release);
        }
    }
}

/// Renews the lease while calls run, until the store is dropped.
async fn keep<D: Database>(token: RenewingToken, pause: Duration, database: Weak<D>, clock: Arc<dyn Clock>) {
    loop {
        sleep(pause).await;
        let (Some(lease), Some(database)) = (token.0.upgrade(), database.upgrade()) else {
            return;
        };
        let now = codec::millis(clock.wall());
        if let Err(error) = keep_once(&lease, &*database, now).await {
            tracing::warn!(database = database.name(), %error, "the lease of this gateway is not renewed");
        }
    }
}

async fn keep_once<D: Database>(lease: &Lease, database: &D, now: i64) -> Result<(), SqlError> {
    let Some(mut transaction) = database.read().await? else {
        return Ok(());
    };
    if lease.is_ended.load(Ordering::Acquire) || !lease.is_needed(&mut *transaction).await? {
        return Ok(());
    }
    drop(transaction);
    let mut transaction = database.write().await?;
    if lease.is_ended.load(Ordering::Acquire) {
        return Ok(());
    }
    let Renewal(until) = lease.renew(&mut *transaction, now).await?;
    // The renewal waited for the end of the lease, if that was written at the same time.
    if lease.is_ended.load(Ordering::Acquire) {
        return Ok(());
    }
    transaction.commit().await?;
    if let Some(until) = until {
        lease.until.store(until, Ordering::Release);
    }
    Ok(())
}
