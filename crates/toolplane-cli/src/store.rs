//! Store of a configuration: tools with versions, servers and tokens.

use std::{path::PathBuf, sync::Arc};

use serde_json::json;
use tool_store_sqlite::{SqliteOptions, sqlite_store};
use toolplane::{
    Builder,
    core::Tokens,
    manifest::{AuthenticationSpec, Configuration, LoadOptions, Loaded, StoreSpec, Syntax, load},
    registry::{ServerRecord, Store},
};

use crate::{
    config::variable,
    error::CliError,
    output::{Console, text},
};

/// Store of a configuration, by the ports that use it.
#[derive(Clone)]
pub(crate) struct OpenStore {
    /// Tools and servers.
    pub(crate) tools: Arc<dyn Store>,
    /// Tokens.
    pub(crate) tokens: Arc<dyn Tokens>,
}

/// Opens the store of a configuration; `None` if the configuration has none. Nothing is read before the first use: a store
/// that does not work refuses what needs it, and nothing else.
///
/// # Errors
/// If the store cannot be located.
pub(crate) fn open_store(configuration: &Configuration) -> Result<Option<OpenStore>, CliError> {
    let path = match &configuration.store {
        StoreSpec::Off => return Ok(None),
        StoreSpec::Sqlite(path) => path.clone(),
        StoreSpec::Postgres(_) => {
            return Err(CliError::configuration("this program has no store on PostgreSQL")
                .with_hint("use `store: {sqlite: FILE}`"));
        }
        _ => match user_data() {
            Some(directory) => directory.join("toolplane/toolplane.db"),
            None => return Ok(None),
        },
    };
    let store = Arc::new(sqlite_store(SqliteOptions::new(path)));
    Ok(Some(OpenStore {
        tools: store.clone(),
        tokens: store,
    }))
}

/// Opens the store for a verb that cannot do without one.
///
/// # Errors
/// If there is none, or as [`open_store`].
pub(crate) fn required_store(configuration: &Configuration) -> Result<OpenStore, CliError> {
    open_store(configuration)?.ok_or_else(|| match configuration.store {
        StoreSpec::Off => CliError::configuration("the configuration has no store: `store.enabled` is false"),
        _ => CliError::configuration(
            "there is no place for the store: neither `$XDG_DATA_HOME` nor `$HOME` is a directory",
        )
        .with_hint("name a file: `store: {sqlite: FILE}`"),
    })
}

/// Gives a builder the store: its tools, and its tokens if the configuration authenticates callers by them.
pub(crate) fn with_store(
    builder: Builder,
    configuration: &Configuration,
    store: Option<OpenStore>,
) -> Builder {
    let Some(store) = store else {
        return builder;
    };
    let builder = builder.store(store.tools);
    match configuration.gateway.auth {
        AuthenticationSpec::None => builder,
        _ => builder.tokens(store.tokens),
    }
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
        if loaded.configuration.servers.iter().any(is_known) {
            console.warn(&format!(
                "the server `{name}` of the store is not offered: the configuration has one of this name"
            ));
            continue;
        }
        match spec(&server) {
            Ok(specs) => loaded.configuration.servers.extend(specs),
            Err(reason) => {
                console.warn(&format!(
                    "the server `{name}` of the store is not offered: {}",
                    text::line(&reason)
                ));
            }
        }
    }
}

fn spec(server: &ServerRecord) -> Result<Vec<toolplane::manifest::ServerSpec>, String> {
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

/// Returns the user's data directory: `$XDG_DATA_HOME`, else `~/.local/share`. `None` if neither names a directory.
fn user_data() -> Option<PathBuf> {
    // XDG Base Directory Specification: a relative path is ignored.
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let data = variable("XDG_DATA_HOME").map(PathBuf::from).and_then(absolute);
    let home = || variable("HOME").map(PathBuf::from).and_then(absolute);
    data.or_else(|| Some(home()?.join(".local/share")))
}
