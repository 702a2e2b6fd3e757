use std::{fmt, time::Duration};

use sqlx::postgres::PgConnectOptions;
use url::Url;

/// Parameters of a URL. Others are refused: sqlx would write an unknown one into the log, with its value.
const PARAMETERS: &[&str] = &[
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
    "statement-cache-capacity",
];
/// Longest name that PostgreSQL keeps whole, in bytes.
const MAX_NAME: usize = 63;

/// Options of a PostgreSQL store.
///
/// The URL is `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full`. What it leaves out comes from the
/// environment variables and the password file of PostgreSQL's own programs: `PGPASSWORD`, `~/.pgpass` and the like.
/// Credentials appear neither in the output of `Debug` nor in messages.
#[derive(Clone)]
#[non_exhaustive]
pub struct PostgresOptions {
    connect: PgConnectOptions,
    schema: String,
    /// Maximum number of connections for statements. One more listens for changes. Default: 8.
    pub max_connections: u32,
    /// Time for which a statement waits for a connection. Default: 5 s.
    pub connect_timeout: Duration,
    /// Time after which the server ends a statement, and a transaction that stands idle. Default: 30 s.
    pub statement_timeout: Duration,
    /// `false` leaves the tables as they are: for tests of migrations.
    #[doc(hidden)]
    pub migrates: bool,
}

/// Option of a PostgreSQL store that is not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidPostgresOption {
    message: String,
}

impl PostgresOptions {
    /// Reads the URL of the database. Connects to nothing.
    ///
    /// # Errors
    /// If the text is no URL of a PostgreSQL database. The error holds no part of the URL but the name of a parameter.
    pub fn new(url: &str) -> Result<Self, InvalidPostgresOption> {
        let form = "expected `postgres://USER:PASSWORD@HOST:PORT/DATABASE`";
        let parsed = Url::parse(url).map_err(|error| {
            invalid(format!(
                "the URL of the PostgreSQL database is invalid ({error}), {form}"
            ))
        })?;
        if !matches!(parsed.scheme(), "postgres" | "postgresql") {
            return Err(invalid(format!(
                "the URL is not one of a PostgreSQL database, {form}"
            )));
        }
        let is_known = |name: &str| PARAMETERS.contains(&name) || name.starts_with("options[");
        if let Some((name, _)) = parsed.query_pairs().find(|(name, _)| !is_known(name)) {
            let (name, known) = (name.escape_debug(), PARAMETERS.join("`, `"));
            let message = format!(
                "unknown parameter `{name}` in the URL of the PostgreSQL database, known are `{known}`"
            );
            return Err(invalid(message));
        }
        let mut connect: PgConnectOptions = url.parse().map_err(|error| {
            invalid(format!(
                "the URL of the PostgreSQL database is not usable: {error}"
            ))
        })?;
        if connect.get_application_name().is_none() {
            connect = connect.application_name("toolplane");
        }
        Ok(Self {
            connect,
            schema: "toolplane".to_owned(),
            max_connections: 8,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            migrates: true,
        })
    }

    /// Sets the schema of the tables, which the first change creates. Default: `toolplane`.
    ///
    /// # Errors
    /// If the name is not made of at most 63 lower-case letters, digits and `_`, the first one no digit, or if it begins
    /// with `pg_`.
    pub fn with_schema(mut self, schema: impl Into<String>) -> Result<Self, InvalidPostgresOption> {
        let schema = schema.into();
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let begins_well = !schema.starts_with(|c: char| c.is_ascii_digit()) && !schema.starts_with("pg_");
        if schema.is_empty() || schema.len() > MAX_NAME || !schema.chars().all(is_plain) || !begins_well {
            return Err(invalid(format!(
                "invalid schema name `{}`: use at most {MAX_NAME} lower-case letters, digits and `_`, begin with no digit and \
                 not with `pg_`",
                schema.escape_debug()
            )));
        }
        self.schema = schema;
        Ok(self)
    }

    /// Sets the maximum number of connections for statements, at least 1.
    #[must_use]
    pub fn with_max_connections(mut self, max: u32) -> Self {
        self.max_connections = max;
        self
    }

    /// Sets the time for which a statement waits for a connection.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the time after which the server ends a statement, and a transaction that stands idle.
    #[must_use]
    pub fn with_statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// Returns the schema of the tables.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }

    pub(crate) fn connect(&self) -> &PgConnectOptions {
        &self.connect
    }

    /// Returns the name for messages: host and database.
    pub(crate) fn name(&self) -> String {
        let database = self.connect.get_database().unwrap_or(self.connect.get_username());
        match self.connect.get_socket() {
            Some(socket) => format!("postgres {}/{database}", socket.display()),
            None => format!(
                "postgres {}:{}/{database}",
                self.connect.get_host(),
                self.connect.get_port()
            ),
        }
    }
}

fn invalid(message: String) -> InvalidPostgresOption {
    InvalidPostgresOption { message }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("database", &self.name())
            .field("schema", &self.schema)
            .field("max_connections", &self.max_connections)
            .field("connect_timeout", &self.connect_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .finish_non_exhaustive()
    }
}
