use std::{
    fmt,
    future::ready,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::sync::{OnceCell, watch};
use tool_core::BoxFuture;
use tool_store_sql::{ChangeWatch, Database, SqlDialect, SqlError, SqlTransaction};

use crate::{
    PostgresOptions,
    connections::Connections,
    listener::Listener,
    loan::Loan,
    tables::{self, Tables},
    transaction::{PostgresTransaction, READ, WRITE},
};

/// Schema of a PostgreSQL database as a [`Database`].
///
/// Until the schema exists, every read finds an empty store, and nothing is created. The first change creates the schema
/// and its tables; for that the role needs the right to create a schema, unless an empty one is there already.
pub struct PostgresDatabase {
    name: String,
    options: PostgresOptions,
    connections: OnceLock<Connections>,
    /// Set once the tables are known to have the version of this program.
    is_current: OnceCell<()>,
    /// Counts changes of this process and of others.
    changes: Arc<watch::Sender<u64>>,
    listener: OnceLock<Listener>,
}

impl PostgresDatabase {
    /// Creates the database of these options. Connects to nothing.
    #[must_use]
    pub fn new(options: PostgresOptions) -> Self {
        Self {
            name: options.name(),
            options,
            connections: OnceLock::new(),
            is_current: OnceCell::new(),
            changes: Arc::new(watch::Sender::new(0)),
            listener: OnceLock::new(),
        }
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &PostgresOptions {
        &self.options
    }

    fn connections(&self) -> &Connections {
        self.connections.get_or_init(|| Connections::new(&self.options))
    }

    /// Returns the time for a statement: the server ends it before, unless the server or the network fails.
    fn limit(&self) -> Duration {
        self.options.statement_timeout + self.options.connect_timeout
    }

    async fn begin(
        &self,
        connection: Loan,
        begin: &'static str,
    ) -> Result<Box<dyn SqlTransaction>, SqlError> {
        let schema = self.options.schema();
        let transaction = PostgresTransaction::begin(connection, begin, schema, self.limit()).await?;
        Ok(Box::new(transaction))
    }

    /// Returns a connection once the tables are known to have the version of this program; `None` if there are no tables and
    /// none are wanted.
    async fn connect(&self, creates: bool) -> Result<Option<Loan>, SqlError> {
        let connections = self.connections();
        let connection = connections.acquire().await?;
        if self.is_current.initialized() {
            return Ok(Some(connection));
        }
        // The server starts a process for each connection, so that the one which found out is used.
        let (state, connection) = tables::state_of(connection, &self.options).await?;
        if state == Tables::Current {
            if self.options.migrates {
                self.is_current.get_or_init(async || ()).await;
            }
            return Ok(Some(connection));
        }
        connection.give_back();
        if state == Tables::Missing && !creates {
            return Ok(None);
        }
        let create = async || tables::create(connections.acquire().await?, &self.options).await;
        if self.options.migrates {
            self.is_current.get_or_try_init(create).await?;
        } else {
            create().await?;
        }
        connections.acquire().await.map(Some)
    }
}

impl Database for PostgresDatabase {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::Postgres
    }

    fn read(&self) -> BoxFuture<'_, Result<Option<Box<dyn SqlTransaction>>, SqlError>> {
        Box::pin(async move {
            match self.connect(false).await? {
                Some(connection) => self.begin(connection, READ).await.map(Some),
                None => Ok(None),
            }
        })
    }

    fn write(&self) -> BoxFuture<'_, Result<Box<dyn SqlTransaction>, SqlError>> {
        Box::pin(async move {
            let connection = self.connect(true).await?;
            let connection = connection.ok_or_else(|| SqlError::failed("the tables were not created"))?;
            self.begin(connection, WRITE).await
        })
    }

    fn watch(&self) -> BoxFuture<'_, Result<Box<dyn ChangeWatch + '_>, SqlError>> {
        // Whether the listener is connected does not matter: as soon as it is, every waiter looks again.
        let changes = self.changes.subscribe();
        self.listener
            .get_or_init(|| Listener::start(self.options.clone(), self.changes.clone()));
        let watch: Box<dyn ChangeWatch + '_> = Box::new(PostgresWatch { changes });
        Box::pin(ready(Ok(watch)))
    }

    fn notify(&self) -> BoxFuture<'_, ()> {
        self.changes.send_modify(|n_changes| *n_changes += 1);
        Box::pin(ready(()))
    }
}

/// Watch for changes of this process and of others.
struct PostgresWatch {
    changes: watch::Receiver<u64>,
}

impl ChangeWatch for PostgresWatch {
    fn changed(&mut self) -> BoxFuture<'_, Result<(), SqlError>> {
        Box::pin(async move {
            let changed = self.changes.changed().await;
            changed.map_err(|_| SqlError::failed("the database is closed"))
        })
    }
}

impl fmt::Debug for PostgresDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresDatabase")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
