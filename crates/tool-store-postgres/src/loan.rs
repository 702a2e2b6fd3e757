//! Connections on loan from the pool, and the one that is kept for the next.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use sqlx::{Connection, Executor, PgPool, Postgres, pool::PoolConnection, postgres::PgConnection};
use tokio::{
    runtime::Handle,
    sync::Notify,
    time::{sleep, timeout},
};

use crate::connections::within;

/// Time for the rollback of a transaction that was dropped, and for the test of a kept connection.
const STATEMENT_LIMIT: Duration = Duration::from_secs(5);
/// Maximum time that a caller waits for a connection on its way back. A server that needs longer to roll back is no faster with a
/// new connection.
const RETURN_LIMIT: Duration = Duration::from_secs(1);

/// Connection on loan.
pub(crate) struct Loan {
    connection: PoolConnection<Postgres>,
    returns: Arc<Returns>,
}

impl Loan {
    pub(crate) fn new(connection: PoolConnection<Postgres>, returns: &Arc<Returns>) -> Self {
        Self {
            connection,
            returns: Arc::clone(returns),
        }
    }

    /// Gives a connection back on which no transaction is open.
    pub(crate) fn give_back(self) {
        self.returns.put(self.connection);
    }

    /// Rolls back the open transaction and gives the connection back, in the background.
    pub(crate) fn roll_back(mut self, runtime: &Handle) {
        let returning = Returning::begin(&self.returns);
        runtime.spawn(async move {
            match within(STATEMENT_LIMIT, self.connection.execute("ROLLBACK")).await {
                Ok(_) => self.give_back(),
                Err(_) => self.close(),
            }
            drop(returning);
        });
    }

    /// Closes the connection: the server rolls back what is open. Its place in the pool is free at once.
    pub(crate) fn close(self) {
        drop(self.connection.detach());
    }
}

impl Deref for Loan {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Loan {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

/// Connections that come back.
///
/// The pool takes a connection back by a task, which sends a statement. Whoever asks for one meanwhile gets a new one, for which
/// the server starts a process. So the last connection that comes back is kept here for the next caller, and a caller waits for
/// one on its way back.
#[derive(Debug)]
pub(crate) struct Returns {
    state: Mutex<State>,
    changed: Notify,
    idle_limit: Duration,
}

#[derive(Debug, Default)]
struct State {
    kept: Option<PoolConnection<Postgres>>,
    /// `true` if a connection was kept since a task looked last.
    is_used: bool,
    /// `true` while a task looks for a kept connection that nobody uses.
    is_watched: bool,
    /// Number of connections on their way back.
    n_returning: usize,
    /// Number of callers that the pool serves. While there are any, it gets all connections.
    n_asking: usize,
}

impl Returns {
    /// `idle_limit` is the time after which a kept connection that nobody used goes to the pool.
    pub(crate) fn new(idle_limit: Duration) -> Self {
        Self {
            state: Mutex::default(),
            changed: Notify::new(),
            idle_limit,
        }
    }

    /// Returns the kept connection, one that comes back soon, or one of the pool.
    pub(crate) async fn acquire(self: &Arc<Self>, pool: &PgPool) -> Result<Loan, sqlx::Error> {
        if let Some(mut connection) = self.kept().await {
            // The server may have been restarted.
            match within(STATEMENT_LIMIT, connection.ping()).await {
                Ok(()) => return Ok(Loan::new(connection, self)),
                Err(_) => drop(connection.detach()),
            }
            self.state.lock().n_asking += 1;
        }
        let _asking = Asking(self);
        let connection = pool.acquire().await?;
        Ok(Loan::new(connection, self))
    }

    /// Returns the kept connection, or one that comes back soon. Without one, the caller is counted as one that asks the pool.
    async fn kept(&self) -> Option<PoolConnection<Postgres>> {
        let mut is_late = false;
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            {
                let mut state = self.state.lock();
                if state.kept.is_some() {
                    return state.kept.take();
                }
                if is_late || state.n_returning == 0 {
                    state.n_asking += 1;
                    return None;
                }
            }
            is_late = timeout(RETURN_LIMIT, changed).await.is_err();
        }
    }

    fn put(self: &Arc<Self>, connection: PoolConnection<Postgres>) {
        let mut state = self.state.lock();
        let of_pool = match state.n_asking {
            0 => {
                state.is_used = true;
                if !state.is_watched
                    && let Ok(runtime) = Handle::try_current()
                {
                    state.is_watched = true;
                    runtime.spawn(release_when_idle(Arc::downgrade(self), self.idle_limit));
                }
                state.kept.replace(connection)
            }
            _ => Some(connection),
        };
        drop(state);
        self.changed.notify_waiters();
        // The pool closes it when it is not used.
        drop(of_pool);
    }
}

/// Gives the kept connection to the pool once nobody has used it for some time.
async fn release_when_idle(returns: Weak<Returns>, idle_limit: Duration) {
    loop {
        sleep(idle_limit).await;
        let Some(returns) = returns.upgrade() else { return };
        let mut state = returns.state.lock();
        if !state.is_used {
            state.is_watched = false;
            let idle = state.kept.take();
            drop(state);
            drop(idle);
            return;
        }
        state.is_used = false;
    }
}

/// Caller that asks the pool, as long as this exists. It was counted before.
struct Asking<'a>(&'a Returns);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.state.lock().n_asking -= 1;
    }
}

impl Drop for Returns {
    fn drop(&mut self) {
        // The pool would take it back by a task, and there may be no runtime any more.
        if let Some(kept) = self.state.get_mut().kept.take() {
            drop(kept.detach());
        }
    }
}

/// Connection on its way back, as long as this exists.
struct Returning(Arc<Returns>);

impl Returning {
    fn begin(returns: &Arc<Returns>) -> Self {
        returns.state.lock().n_returning += 1;
        Self(Arc::clone(returns))
    }
}

impl Drop for Returning {
    fn drop(&mut self) {
        self.0.state.lock().n_returning -= 1;
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::PgPoolOptions;
    use tool_testkit::skip;
    use tp_postgres::PostgresServer;

    use super::*;

    #[tokio::test]
    async fn a_kept_connection_that_nobody_uses_goes_to_the_pool() {
        let database = match PostgresServer::shared().and_then(PostgresServer::create_database) {
            Ok(database) => database,
            Err(reason) => return skip(reason.to_string()),
        };
        let pool = PgPoolOptions::new().connect_lazy(&database.url()).expect("a URL");
        let returns = Arc::new(Returns::new(Duration::from_millis(10)));
        for _ in 0..2 {
            let loan = returns.acquire(&pool).await.expect("a connection");
            loan.give_back();
            assert_eq!((pool.size(), pool.num_idle()), (1, 0), "it is kept");
            while pool.num_idle() == 0 {
                sleep(Duration::from_millis(1)).await;
            }
            assert!(returns.state.lock().kept.is_none());
        }
    }
}
