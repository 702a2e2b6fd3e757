use std::{env, fmt, process::Command, sync::OnceLock};

use crate::{
    SERVER_VARIABLE,
    cluster::{Cluster, SUPERUSER, ServerCertificate, password, unique_name},
    programs::{folder, output},
};

/// Reason why there is no server.
#[derive(Clone, Debug)]
pub struct ServerUnavailable {
    reason: String,
}

/// PostgreSQL server on loopback. Stopped when it is dropped, if this process started it.
pub struct PostgresServer {
    port: u16,
    password: String,
    /// `None` for a server that another process started.
    cluster: Option<Cluster>,
}

/// Empty database of one test, on which connections of a user with all rights may be opened. Dropped with its guard.
pub struct TestDatabase {
    name: String,
    port: u16,
    password: String,
}

impl ServerUnavailable {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

impl fmt::Display for ServerUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for ServerUnavailable {}

impl PostgresServer {
    /// Starts a server with an empty cluster in a temporary folder, on a free port. Waits until it accepts connections.
    ///
    /// # Errors
    /// If the programs of PostgreSQL are not installed, or the server does not start.
    pub fn start() -> Result<Self, ServerUnavailable> {
        Self::launch(None)
    }

    /// Starts a server that offers TLS, by a certificate and a key in PEM. See [`start`](Self::start).
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_with_certificate(certificate: &str, key: &str) -> Result<Self, ServerUnavailable> {
        Self::launch(Some(&ServerCertificate { certificate, key }))
    }

    /// Returns the server that [`SERVER_VARIABLE`] names, or starts one that lives as long as this process.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn shared() -> Result<&'static Self, ServerUnavailable> {
        static SHARED: OnceLock<Result<PostgresServer, ServerUnavailable>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| match env::var_os(SERVER_VARIABLE) {
            Some(text) => Self::named(&text.to_string_lossy()),
            None => Self::start(),
        });
        shared.as_ref().map_err(Clone::clone)
    }

    /// Returns the value of [`SERVER_VARIABLE`] for this server.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{} {}", self.port, self.password)
    }

    /// Creates an empty database.
    ///
    /// # Errors
    /// If the server does not answer.
    pub fn create_database(&self) -> Result<TestDatabase, ServerUnavailable> {
        let database = TestDatabase {
            name: unique_name()?,
            port: self.port,
            password: self.password.clone(),
        };
        // In the order of a language, where `a` is before `B`, as many clusters have it: nothing may depend on that.
        let language = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'";
        let create =
            |options: &str| database.server_sql(&format!("CREATE DATABASE {} {options}", database.name));
        // Before version 15, a database cannot have it.
        create(language).or_else(|_| create("TEMPLATE template0"))?;
        Ok(database)
    }

    /// Stops the server at once, as if its machine lost power. Its cluster stays. Does nothing to a server that another
    /// process started.
    pub fn stop_immediately(&mut self) {
        if let Some(cluster) = &mut self.cluster {
            cluster.stop();
        }
    }

    /// Starts a stopped server again, on the same port.
    ///
    /// # Errors
    /// If it does not start.
    pub fn restart(&mut self) -> Result<(), ServerUnavailable> {
        self.cluster.as_mut().map_or(Ok(()), Cluster::run)
    }

    fn launch(certificate: Option<&ServerCertificate<'_>>) -> Result<Self, ServerUnavailable> {
        let password = password()?;
        let cluster = Cluster::start(&password, certificate)?;
        Ok(Self {
            port: cluster.port(),
            password,
            cluster: Some(cluster),
        })
    }

    fn named(text: &str) -> Result<Self, ServerUnavailable> {
        let parts = text
            .split_once(' ')
            .and_then(|(port, password)| Some((port.parse().ok()?, password)));
        let (port, password) = parts.ok_or_else(|| {
            ServerUnavailable::new(format!("`{SERVER_VARIABLE}` is not a port and a password"))
        })?;
        Ok(Self {
            port,
            password: password.to_owned(),
            cluster: None,
        })
    }
}

impl TestDatabase {
    /// Returns the URL, with the password.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(SUPERUSER, &self.password)
    }

    /// Returns the URL for another user.
    #[must_use]
    pub fn url_of(&self, user: &str, password: &str) -> String {
        format!(
            "postgres://{user}:{password}@127.0.0.1:{}/{}",
            self.port, self.name
        )
    }

    /// Returns the password, which must appear in no message.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.password
    }

    /// Runs statements as the superuser, and returns the rows as text: columns separated by `|`.
    ///
    /// # Errors
    /// If a statement fails.
    pub fn sql(&self, statements: &str) -> Result<String, ServerUnavailable> {
        self.psql(&self.name, statements)
    }

    fn server_sql(&self, statement: &str) -> Result<String, ServerUnavailable> {
        self.psql("postgres", statement)
    }

    fn psql(&self, database: &str, statements: &str) -> Result<String, ServerUnavailable> {
        let mut command = Command::new(folder()?.join("psql"));
        command
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
            .args(["--set=ON_ERROR_STOP=1", "--host=127.0.0.1"])
            .arg(format!("--port={}", self.port))
            .arg(format!("--username={SUPERUSER}"))
            .arg(format!("--dbname={database}"))
            .arg(format!("--command={statements}"))
            .env("PGPASSWORD", &self.password)
            .env_remove("PGOPTIONS")
            .env_remove("PGSSLMODE");
        output(&mut command).map(|rows| rows.trim_end().to_owned())
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // The end of the server drops what is left.
        let _ = self.server_sql(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresServer")
            .field("port", &self.port)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TestDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestDatabase")
            .field("name", &self.name)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
