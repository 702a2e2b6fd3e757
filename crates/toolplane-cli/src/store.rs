//! Store of a configuration: tools with versions, servers and tokens.

mod pending_pins;
mod ports;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{Access, access};
use serde_json::json;
use toolplane::{
    Builder, Pins, PinsError, StoredListCache,
    core::{Approvals, Clock, DailyUsage, Flows, KeptTexts, Ledger, Tokens},
    manifest::{AuthenticationSpec, Configuration, LoadOptions, Loaded, StoreSpec, Syntax, load},
    registry::{ServerRecord, Store, StoreError},
    runtime::TokioClock,
    store_files::{FileStore, FileStoreOptions},
    store_postgres::{PostgresOptions, postgres_store},
    store_sqlite::{SqliteOptions, sqlite_store},
};

use self::{
    pending_pins::PendingPins,
    ports::{SharedPorts, ports},
};
use crate::{
    config::variable,
    error::CliError,
    exit::Exit,
    output::{Console, text},
};

/// Store of a configuration, by the ports that use it.
#[derive(Clone)]
pub(crate) struct OpenStore {
    /// Tools and servers.
    pub(crate) tools: Arc<dyn Store>,
    /// Tokens.
    pub(crate) tokens: Arc<dyn Tokens>,
    /// Approvals.
    pub(crate) approvals: Arc<dyn Approvals>,
    /// Workflows that wait or run.
    pub(crate) flows: Arc<dyn Flows>,
    /// Figures of calls.
    pub(crate) usage: Arc<dyn DailyUsage>,
    /// Calls with idempotency keys, and those with unknown outcome.
    pub(crate) ledger: Arc<dyn Ledger>,
    /// Lists of servers.
    pub(crate) texts: Arc<dyn KeptTexts>,
    /// Ports that are read as a whole before their first use.
    shared: Arc<dyn SharedPorts>,
    /// Accepted definitions that are being read: see [`OpenStore::read_pins_in_background`].
    pending_pins: Option<Arc<PendingPins>>,
    /// Clock of the approvals.
    pub(crate) clock: Arc<dyn Clock>,
    /// `true` if the configuration names the store. Otherwise it has only what must outlive a process: definitions that were
    /// accepted by their first use, lists of servers and uses of tools end with the gateway, or stay in files, and usage is not recorded.
    pub(crate) is_named: bool,
    /// `false` if its tools are not offered.
    offers_tools: bool,
}

/// Opens the store of a configuration; `None` if it has none. Nothing is read before the first use: a store that does not
/// work refuses what needs it, and nothing else.
///
/// # Errors
/// If the URL of the store is not usable.
pub(crate) async fn open_store(loaded: &Loaded) -> Result<Option<OpenStore>, CliError> {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
    match &loaded.configuration.store {
        StoreSpec::Off => Ok(None),
        StoreSpec::Files { directory, state } => {
            let files = FileStore::new(FileStoreOptions::new(directory));
            let state = named_database(state, loaded, clock).await?;
            Ok(state.map(|state| OpenStore {
                tools: Arc::new(files),
                ..state
            }))
        }
        StoreSpec::Sqlite(_) | StoreSpec::Postgres(_) => {
            named_database(&loaded.configuration.store, loaded, clock).await
        }
        _ => Ok(user_store()
            .filter(|database| may_be_written(database))
            .map(|database| {
                let store = sqlite_store(SqliteOptions::new(database)).with_clock(clock.clone());
                ports(Arc::new(store), clock, false)
            })),
    }
}

/// Opens a database that the configuration names.
async fn named_database(
    database: &StoreSpec,
    loaded: &Loaded,
    clock: Arc<dyn Clock>,
) -> Result<Option<OpenStore>, CliError> {
    Ok(match database {
        StoreSpec::Sqlite(path) => {
            let store = sqlite_store(SqliteOptions::new(path)).with_clock(clock.clone());
            Some(ports(Arc::new(store), clock, true))
        }
        StoreSpec::Postgres(url) => {
            let url = url.resolve(&loaded.secrets()).await.map_err(|error| {
                CliError::configuration("the URL of the store is not known").with_source(&error)
            })?;
            let options = PostgresOptions::new(url.expose()).map_err(|error| {
                CliError::configuration("the URL of the store cannot be used").with_source(&error)
            })?;
            let store = postgres_store(options).with_clock(clock.clone());
            Some(ports(Arc::new(store), clock, true))
        }
        _ => None,
    })
}

/// Returns `true` if this process may write into the directory of a file, or create it.
fn may_be_written(file: &Path) -> bool {
    let existing = file.ancestors().skip(1).find(|directory| directory.exists());
    existing.is_some_and(|existing| access(existing, Access::WRITE_OK | Access::EXEC_OK).is_ok())
}

/// Opens the store for a verb that cannot do without one.
///
/// # Errors
/// If there is none, or as [`open_store`].
pub(crate) async fn required_store(loaded: &Loaded) -> Result<OpenStore, CliError> {
    open_store(loaded)
        .await?
        .ok_or_else(|| match loaded.configuration.store {
            StoreSpec::Off => {
                CliError::configuration("the configuration has no store: `store.enabled` is false")
            }
            _ => CliError::configuration(
                "there is no place for the store: neither `$XDG_DATA_HOME` nor `$HOME` is a directory",
            )
            .with_hint("name a file: `store: {sqlite: FILE}`"),
        })
}

impl OpenStore {
    /// Gives a builder the store: its tools, its approvals and its ledger, its tokens if the configuration authenticates
    /// callers by them, and the rest if the configuration names the store. What cannot be read stays in memory, with a
    /// warning.
    pub(crate) async fn give(
        self,
        builder: Builder,
        configuration: &Configuration,
        console: Console,
    ) -> Builder {
        let mut builder = self
            .give_tools(builder, configuration)
            .approvals(self.approvals)
            .ledger(self.ledger)
            .clock(self.clock);
        if configuration.usage.is_recorded(&configuration.store) {
            builder = builder.daily_usage(self.usage);
        }
        if !self.is_named {
            return builder;
        }
        builder = builder
            .flows(self.flows)
            .list_cache(Arc::new(StoredListCache::new(self.texts)));
        match self.shared.usage().await {
            Ok(usage) => builder.usage_log(usage),
            Err(error) => {
                let reason = text::line(&error.to_string()).into_owned();
                console.warn(&format!("the uses of tools are not kept: {reason}"));
                builder
            }
        }
    }

    /// Returns the store without its tools if there is none in it and nobody asked for a store: a verb that runs once has nothing
    /// to wait for there. Agents who may make tools need it empty as well.
    pub(crate) async fn unless_empty(mut self, configuration: &Configuration) -> Self {
        if configuration.authoring.enabled {
            return self;
        }
        let is_empty = self.tools.revision().await.is_ok_and(|revision| revision == 0);
        self.offers_tools = self.is_named || !is_empty;
        self
    }

    /// Gives a builder the tools of the store, and its tokens if the configuration authenticates callers by them.
    pub(crate) fn give_tools(&self, builder: Builder, configuration: &Configuration) -> Builder {
        let builder = match self.offers_tools {
            true => builder.store(self.tools.clone()),
            false => builder,
        };
        match configuration.gateway.auth {
            AuthenticationSpec::None => builder,
            _ => builder.tokens(self.tokens.clone()),
        }
    }

    /// Reads the accepted definitions in the background, if the configuration names the store: at once, so that they are read while
    /// the tools are built, or when they are first needed. [`OpenStore::pins`] then returns pins that block the thread of whoever needs
    /// them until they are read. That needs a runtime with several threads.
    pub(crate) fn read_pins_in_background(&mut self, at_once: bool) {
        if self.is_named {
            let shared = self.shared.clone();
            let pending = PendingPins::new(async move { shared.pins_by_digest().await });
            if at_once {
                pending.begin();
            }
            self.pending_pins = Some(pending);
        }
    }

    /// Returns the accepted definitions, if the configuration names the store.
    ///
    /// # Errors
    /// If they cannot be read: nothing is offered then whose definition may have changed. Pins that are still being read report
    /// that in [`OpenStore::check_pins`].
    pub(crate) async fn pins(&self) -> Result<Option<Arc<dyn Pins>>, CliError> {
        match &self.pending_pins {
            Some(pending) => Ok(Some(pending.clone())),
            None if self.is_named => self
                .shared
                .pins()
                .await
                .map(Some)
                .map_err(|error| unreadable_pins(&error)),
            None => Ok(None),
        }
    }

    /// Waits until the accepted definitions are read, if that was begun.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) async fn check_pins(&self) -> Result<(), CliError> {
        match &self.pending_pins {
            Some(pending) => pending.finished().await.map_err(|error| unreadable_pins(&error)),
            None => Ok(()),
        }
    }

    /// Returns a text that is another one whenever something in the store has changed that lists of tools are made of. `None` if there
    /// is no database yet.
    ///
    /// # Errors
    /// If the store does not work.
    pub(crate) async fn list_state(&self) -> Result<Option<String>, StoreError> {
        self.shared.list_state().await
    }

    /// Returns the key that seals the states which clients give back. Gateways on a store share it.
    ///
    /// # Errors
    /// If the store does not work.
    pub(crate) async fn state_key(&self) -> Result<[u8; 32], CliError> {
        self.shared.state_key().await.map_err(|error| {
            CliError::new(
                Exit::Unavailable,
                "unavailable",
                "the key of the gateway cannot be read",
            )
            .with_source(&error)
        })
    }
}

fn unreadable_pins(error: &PinsError) -> CliError {
    CliError::new(
        Exit::Unavailable,
        "unavailable",
        "the accepted definitions cannot be read",
    )
    .with_source(error)
}

/// Adds the servers of the store to a configuration. One that the configuration has under the same name stays; one that
/// cannot be used is left out with a warning.
pub(crate) async fn add_servers(loaded: &mut Loaded, store: Option<&OpenStore>, console: Console) {
    let Some(store) = store else {
        return;
    };
    let servers = match store.tools.servers().await {
        Ok(servers) => servers,
        Err(error) => {
            console.warn(&format!(
                "the servers of the store are not offered: {}",
                text::line(&error.to_string())
            ));
            return;
        }
    };
    for server in servers {
        let name = text::line(&server.name).into_owned();
        let is_known = |known: &toolplane::manifest::ServerSpec| *known.name == *server.name;
        let mut endpoints = loaded.configuration.endpoints.iter();
        let is_endpoint = endpoints.any(|known| *known.name == *server.name);
        // An operator has not approved it: see `toolplane servers proposed`.
        if server.proposed_by.is_some() {
            continue;
        }
        if is_endpoint || loaded.configuration.servers.iter().any(is_known) {
            console.warn(&format!(
                "the server `{name}` of the store is not offered: the configuration has one of this name"
            ));
            continue;
        }
        match server_specs(&server) {
            Ok(mut specs) => {
                for spec in &mut specs {
                    spec.origin.place = stored_place(store, &server.name);
                }
                loaded.configuration.servers.extend(specs);
            }
            Err(reason) => {
                console.warn(&format!(
                    "the server `{name}` of the store is not offered: {}",
                    text::line(&reason)
                ));
            }
        }
    }
}

/// Returns the place of a server's configuration, for messages.
pub(crate) fn stored_place(store: &OpenStore, server: &str) -> String {
    format!("{}: {server}", store.tools.name())
}

/// Returns the settings of a stored server, as a configuration would have them.
///
/// # Errors
/// If they cannot be used: every problem, as a fragment.
pub(crate) fn server_specs(server: &ServerRecord) -> Result<Vec<toolplane::manifest::ServerSpec>, String> {
    let document = json!({"servers": {&*server.name: server.settings}});
    let options = LoadOptions::new().text(&*server.name, Syntax::Json, document.to_string());
    match load(&options) {
        Ok(loaded) => Ok(loaded.configuration.servers),
        Err(problems) => {
            let messages: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
            Err(messages.join("; "))
        }
    }
}

/// Returns the database of the user's store, which is used where no configuration names another one. `None` if there is no
/// place for it.
pub(crate) fn user_store() -> Option<PathBuf> {
    Some(user_data()?.join("toolplane/toolplane.db"))
}

/// Returns the user's data directory: `$XDG_DATA_HOME`, else `~/.local/share`. `None` if neither names a directory.
fn user_data() -> Option<PathBuf> {
    // XDG Base Directory Specification: a relative path is ignored.
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let data = variable("XDG_DATA_HOME").map(PathBuf::from).and_then(absolute);
    let home = || variable("HOME").map(PathBuf::from).and_then(absolute);
    data.or_else(|| Some(home()?.join(".local/share")))
}
