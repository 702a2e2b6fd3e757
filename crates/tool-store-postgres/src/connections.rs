//! Pool of connections.

use std::{future::Future, io, sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, Connection, Executor, PgPool,
    postgres::{PgConnection, PgPoolOptions},
};
use tool_store_sql::SqlError;

use crate::{
    PostgresOptions,
    loan::{Loan, Returns},
};

/// Time for the second attempt to connect, which finds out why the first one took too long.
const DIAGNOSIS_LIMIT: Duration = Duration::from_secs(1);

/// Time after which a kept connection that nobody used goes to the pool, which closes it when it is idle or old.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// Connections for statements.
#[derive(Debug)]
pub(crate) struct Connections {
    pool: PgPool,
    returns: Arc<Returns>,
    options: PostgresOptions,
}

impl Connections {
    /// Creates the pool. Must run within a runtime: a task of the pool closes idle connections.
    pub(crate) fn new(options: &PostgresOptions) -> Self {
        let pool = pool_options(options)
            .max_connections(options.max_connections.max(1))
            .connect_lazy_with(options.connect().clone());
        Self {
            pool,
            returns: Arc::new(Returns::new(IDLE_LIMIT)),
            options: options.clone(),
        }
    }

    /// Returns a connection that works: a pooled one is tested before, since the server may have been restarted.
    pub(crate) async fn acquire(&self) -> Result<Loan, SqlError> {
        match self.returns.acquire(&self.pool).await {
            Ok(loan) => Ok(loan),
            Err(sqlx::Error::PoolTimedOut) => Err(self.diagnose().await),
            Err(error) => Err(SqlError::failed("the server does not accept a connection").with_source(error)),
        }
    }

    /// Returns the reason why there was no connection in time.
    ///
    /// The pool tries again until its time is over if the server refuses connections, because it may be starting, and
    /// then reports only the time.
    async fn diagnose(&self) -> SqlError {
        let limit = DIAGNOSIS_LIMIT.min(self.options.connect_timeout);
        let attempt = PgConnection::connect_with(self.options.connect());
        match within(limit, attempt).await {
            Err(error) => SqlError::failed("the server does not accept a connection").with_source(error),
            Ok(connection) => {
                drop(connection);
                SqlError::failed(format!(
                    "none of the {} connections was free within {:?}: allow more, or look for slow statements",
                    self.options.max_connections, self.options.connect_timeout
                ))
            }
        }
    }
}

/// Options of a pool whose connections have the settings of a store.
pub(crate) fn pool_options(options: &PostgresOptions) -> PgPoolOptions {
    let settings = settings(options);
    PgPoolOptions::new()
        .acquire_timeout(options.connect_timeout)
        .after_connect(move |connection, _| {
            let settings = settings.clone();
            Box::pin(async move { connection.execute(AssertSqlSafe(settings)).await.map(drop) })
        })
}

/// Statement that sets up a session.
///
/// A gateway that stops in the middle of a change, because its machine sleeps or its network fails, holds the row of the
/// counter: the server ends its transaction after the time for a statement, so that others go on. The settings are made
/// by a statement and not by parameters of the connection, which poolers between the two refuse.
fn settings(options: &PostgresOptions) -> String {
    let millis = options.statement_timeout.as_millis().clamp(1, i32::MAX as u128);
    let schema = options.schema();
    format!(
        "SET search_path TO \"{schema}\"; SET statement_timeout TO {millis}; \
         SET idle_in_transaction_session_timeout TO {millis}; SET client_min_messages TO warning"
    )
}

/// Waits for the server for a limited time. The server has limits of its own, but cannot tell if the network fails.
pub(crate) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        let late = io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {limit:?}"));
        Err(sqlx::Error::Io(late))
    })
}
