//! Ledger of calls.

mod claim;
mod payload;
mod queue;
mod read;
mod writes;

use std::{fmt, future::ready, sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::sleep};
use tool_core::{
    BoxFuture, CallEnd, Claim, ClaimResult, CorrelationId, ErrorKind, Ledger, LedgerEntry, ToolError,
};

pub(crate) use self::read::report_abandoned_approvals;
use self::{claim::Claimed, queue::Queue, writes::Write};
use crate::{Database, SqlError, SqlStore, codec};

/// Interval at which a call looks for the end of a call of another gateway that has the same key.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Ledger of calls in an SQL database: it outlives the process, and all gateways on the database share it.
///
/// A claim is one transaction, whose first statement decides. Ends of calls are queued and written in the background, all that
/// wait at once in one transaction, and again until that succeeds. While more than 10,000 wait, further calls are refused.
/// [`Ledger::close`] writes everything. Intents are written by the same transactions, and their calls wait for them: calls
/// that run at once share the cost of a commit.
///
/// # Calls of a gateway that has died
/// An entry belongs to the gateway that runs its call, and that gateway holds a [lease](SqlStore#leases). When the lease has
/// ended, the outcome of the call is unknown: the entry is listed by [`Ledger::unknown`], and its key is given to another
/// call only if the tool may run again. If the gateway lives after all, for example after a suspension, it still settles its
/// entry, unless the key was claimed again.
///
/// # Limits
/// An entry is kept until its time to live has passed. A reply of more than 1 MiB is not stored: a further call with the key is
/// refused as having run already.
pub struct SqlLedger<D>(Arc<Queue<D>>);

impl<D: Database> SqlLedger<D> {
    /// Default maximum size of a stored reply, in bytes.
    pub const MAX_REPLY: usize = 1 << 20;

    /// Creates the ledger of a store. Reads and starts nothing.
    #[must_use]
    pub fn new(store: Arc<SqlStore<D>>) -> Self {
        Self::with_max_reply(store, Self::MAX_REPLY)
    }

    /// Creates the ledger of a store with a maximum size of a stored reply, in bytes.
    #[must_use]
    pub fn with_max_reply(store: Arc<SqlStore<D>>, max_reply: usize) -> Self {
        Self(Arc::new(Queue::new(store, max_reply)))
    }

    fn now(&self) -> i64 {
        codec::millis(self.0.store().clock().wall())
    }

    async fn claim_once(&self, claim: &Claim) -> Result<Claimed, SqlError> {
        let store = self.0.store();
        let now = self.now();
        let mut transaction = store.database().write().await?;
        let renewal = store.lease().ensure(&mut *transaction, now).await?;
        let claimed = claim::claim(&mut *transaction, claim, store.lease().gateway(), now).await?;
        transaction.commit().await?;
        store
            .lease()
            .confirm(&renewal, store.shared_database(), store.clock());
        Ok(claimed)
    }

    async fn find_once(&self, id: CorrelationId) -> Result<Option<LedgerEntry>, SqlError> {
        // What was recorded before is found, if the database works.
        let _ = self.0.flush().await;
        self.report_abandoned_approvals().await?;
        match self.0.store().database().read().await? {
            Some(mut transaction) => read::find(&mut *transaction, id, self.now()).await,
            None => Ok(None),
        }
    }

    async fn unknown_once(&self, limit: usize) -> Result<Vec<LedgerEntry>, SqlError> {
        let _ = self.0.flush().await;
        self.report_abandoned_approvals().await?;
        match self.0.store().database().read().await? {
            Some(mut transaction) => read::unknown(&mut *transaction, limit, self.now()).await,
            None => Ok(Vec::new()),
        }
    }

    /// Makes unknown outcomes of approvals that were in use when their gateways died.
    async fn report_abandoned_approvals(&self) -> Result<(), SqlError> {
        let database = self.0.store().database();
        let Some(mut transaction) = database.read().await? else {
            return Ok(());
        };
        if !read::has_abandoned_approvals(&mut *transaction, self.now()).await? {
            return Ok(());
        }
        drop(transaction);
        let mut transaction = database.write().await?;
        read::report_abandoned_approvals(&mut *transaction, self.now()).await?;
        transaction.commit().await
    }

    /// Returns the error of a call that is not made, since its entry cannot be written.
    fn unavailable(&self, error: SqlError) -> ToolError {
        let cause = error.of_store(self.0.store().database().name());
        let message = "the ledger of calls does not work, so the call was not made";
        ToolError::new(ErrorKind::Unavailable, message)
            .with_source(cause)
            .ignored_by_health()
    }

    fn log<T: Default>(&self, result: Result<T, SqlError>) -> T {
        result.unwrap_or_else(|error| {
            let database = self.0.store().database().name();
            tracing::warn!(database, %error, "the ledger cannot be read");
            T::default()
        })
    }
}

impl<D: Database> Ledger for SqlLedger<D> {
    fn claim<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<ClaimResult, ToolError>> {
        Box::pin(async move {
            self.0.check_room()?;
            // Before the entry is read, so that no end is missed.
            let mut progress = self.0.watch();
            progress.mark_unchanged();
            let claimed = self
                .claim_once(claim)
                .await
                .map_err(|error| self.unavailable(error))?;
            Ok(match claimed {
                Claimed::Granted(id) => ClaimResult::Granted(id),
                Claimed::Ended(entry) => ClaimResult::Ended(entry),
                Claimed::Conflict => ClaimResult::Conflict,
                Claimed::Changed => ClaimResult::Running(Box::pin(ready(()))),
                Claimed::Running => ClaimResult::Running(Box::pin(async move {
                    tokio::select! {
                        _ = progress.changed() => {}
                        () = sleep(POLL_INTERVAL) => {}
                    }
                })),
            })
        })
    }

    fn settle(&self, id: CorrelationId, end: CallEnd) {
        let at = self.now();
        self.0.push(Write::End {
            id,
            is_intent: false,
            end: detached(end),
            at,
        });
    }

    fn record(&self, claim: Claim, unknown: ToolError) {
        let at = self.now();
        self.0.push(Write::Unknown {
            claim: Box::new(claim),
            error: unknown,
            at,
        });
    }

    fn find(&self, id: CorrelationId) -> BoxFuture<'_, Option<LedgerEntry>> {
        Box::pin(async move { self.log(self.find_once(id).await) })
    }

    fn unknown(&self, limit: usize) -> BoxFuture<'_, Vec<LedgerEntry>> {
        Box::pin(async move { self.log(self.unknown_once(limit).await) })
    }

    fn is_durable(&self) -> bool {
        true
    }

    fn intend<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            self.0.check_room()?;
            let (done, written) = oneshot::channel();
            let at = self.now();
            self.0.push(Write::Intent {
                claim: Box::new(claim.clone()),
                at,
                done,
            });
            let written = written.await;
            let written =
                written.unwrap_or_else(|_| Err(SqlError::failed("the writer of the ledger has ended")));
            written.map_err(|error| self.unavailable(error))
        })
    }

    fn settle_intent(&self, id: CorrelationId, end: CallEnd) {
        let at = self.now();
        // Nobody can ask for the reply again: there is no key.
        let end = match end {
            CallEnd::Answered(_) => CallEnd::Answered(None),
            end => end,
        };
        self.0.push(Write::End {
            id,
            is_intent: true,
            end,
            at,
        });
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let closed = async {
                self.0.flush().await?;
                self.0.end_lease().await
            };
            if let Err(error) = closed.await {
                let database = self.0.store().database().name();
                tracing::error!(database, %error, "the last ends of calls are not recorded: they become unknown outcomes");
            }
        })
    }
}

/// Detaches the reply of an end from the message in which it arrived.
fn detached(end: CallEnd) -> CallEnd {
    match end {
        CallEnd::Answered(Some(mut reply)) => {
            reply.detach();
            CallEnd::Answered(Some(reply))
        }
        end => end,
    }
}

impl<D> Clone for SqlLedger<D> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<D: Database> fmt::Debug for SqlLedger<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlLedger")
            .field("database", self.0.store().database())
            .finish_non_exhaustive()
    }
}
