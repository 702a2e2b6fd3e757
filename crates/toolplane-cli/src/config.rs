//! Finding, loading and building the configuration.

use std::{env, path::PathBuf, sync::Arc};

use toolplane::{
    Builder, FileListCache, PrivateFolder, Toolplane,
    faults::ChaosLayer,
    manifest::{
        EndpointSpec, LoadOptions, Loaded, Severity, cache_directory, find_configuration, load,
        load_without_files,
    },
};

use crate::{
    command::Options,
    error::CliError,
    lock,
    output::Console,
    process::logging,
    store::{OpenStore, add_servers, open_store, user_store},
    telemetry::Telemetry,
};

/// Returns the configuration files: those of the command line, or the first one that is found. None are needed where the
/// user has a store, or the environment names an endpoint: their tools are offered with the defaults.
///
/// # Errors
/// If there is neither a file nor a store nor an endpoint.
pub(crate) fn files(options: &Options) -> Result<Vec<PathBuf>, CliError> {
    let has_endpoint = || !options.ignores_endpoint_variable && variable(EndpointSpec::VARIABLE).is_some();
    match named_files(options) {
        Err(_) if user_store().is_some_and(|store| store.exists()) || has_endpoint() => Ok(Vec::new()),
        files => files,
    }
}

/// Adds the endpoint whose command the environment variable `MCP_ENDPOINT` holds.
///
/// # Errors
/// If the variable is no command line, or the configuration has a source with the name of its endpoint.
pub(crate) fn add_endpoint(loaded: &mut Loaded) -> Result<(), CliError> {
    let Some(command) = variable(EndpointSpec::VARIABLE) else {
        return Ok(());
    };
    let name = EndpointSpec::VARIABLE;
    let endpoint = EndpointSpec::from_variable(&command).map_err(|reason| {
        CliError::configuration(format!("`{name}` in the environment cannot be used: {reason}"))
            .with_hint("it is a program with its arguments, such as `./mcp_echo.sh`")
    })?;
    let configuration = &mut loaded.configuration;
    let servers = configuration.servers.iter().map(|server| &server.name);
    let endpoints = configuration.endpoints.iter().map(|known| &known.name);
    if servers.chain(endpoints).any(|known| *known == endpoint.name) {
        let message = format!(
            "`{name}` in the environment adds an endpoint `{}`, and the configuration has a source of this name",
            endpoint.name
        );
        return Err(
            CliError::configuration(message).with_hint(format!("unset `{name}`, or rename the other"))
        );
    }
    configuration.endpoints.push(endpoint);
    Ok(())
}

/// Returns the configuration files: those of the command line, or the first one that is found.
///
/// # Errors
/// If there is none.
pub(crate) fn named_files(options: &Options) -> Result<Vec<PathBuf>, CliError> {
    if !options.config.is_empty() {
        return Ok(options.config.clone());
    }
    // Relative, so that messages name files as the user knows them.
    match find_configuration(&PathBuf::new()) {
        Some(file) => Ok(vec![file]),
        None => Err(CliError::configuration(
            "no configuration found: neither `$TOOLPLANE_CONFIG`, `./toolplane.yaml` nor \
             `$XDG_CONFIG_HOME/toolplane/toolplane.yaml`",
        )
        .with_hint(
            "`toolplane init` writes an example that works at once; `--config FILE` names another file; \
             `toolplane tools publish FILE` makes a store, which needs no configuration",
        )),
    }
}

/// Loads files and prints their warnings.
pub(crate) fn read(files: Vec<PathBuf>, console: Console) -> Result<Loaded, CliError> {
    let options = files.into_iter().fold(LoadOptions::new(), LoadOptions::path);
    with_warnings(load(&options)?, console)
}

/// Loads a file as [`read`] does, without the files of its tools.
pub(crate) fn read_without_files(file: PathBuf, console: Console) -> Result<Loaded, CliError> {
    with_warnings(load_without_files(&LoadOptions::new().path(file))?, console)
}

fn with_warnings(loaded: Loaded, console: Console) -> Result<Loaded, CliError> {
    for problem in &loaded.diagnostics {
        let left_out = if problem.severity == Severity::Error {
            " (left out)"
        } else {
            ""
        };
        console.warn(&format!("{problem}{left_out}"));
    }
    Ok(loaded)
}

/// Prints the warnings that only executors can give about the settings of tools.
pub(crate) fn warn(loaded: &Loaded, plane: &Toolplane, console: Console) {
    for (tool, warning) in plane.warnings() {
        console.warn(&loaded.warning(&tool, &warning).to_string());
    }
}

/// Returns a builder for the configuration and its store. Logs hide its secrets, and lists of servers are kept on disk.
pub(crate) async fn builder(loaded: &Loaded, store: Option<OpenStore>, console: Console) -> Builder {
    let builder = local_builder(loaded);
    match store {
        Some(store) => store.give(builder, &loaded.configuration, console).await,
        None => builder,
    }
}

/// Returns a builder for the configuration without its store.
pub(crate) fn local_builder(loaded: &Loaded) -> Builder {
    let builder = Toolplane::builder().loaded(loaded).redactor(logging::redactor());
    match list_store() {
        Some(store) => builder.list_cache(Arc::new(store)),
        None => builder,
    }
}

/// Loads files as [`read`] does, and adds the servers of the store. `prepare` gets the configuration and its store before the store is
/// read.
pub(crate) async fn read_with_store(
    files: Vec<PathBuf>,
    console: Console,
    prepare: impl AsyncFnOnce(&Loaded, Option<&mut OpenStore>),
) -> Result<(Loaded, Option<OpenStore>), CliError> {
    let mut loaded = read(files, console)?;
    let mut store = open_store(&loaded).await?;
    prepare(&loaded, store.as_mut()).await;
    add_servers(&mut loaded, store.as_ref(), console).await;
    Ok((loaded, store))
}

/// Returns the store of kept lists: in `$XDG_CACHE_HOME`, else in `~/.cache`, since its content can be read again from
/// the servers. `None` if neither names a directory.
pub(crate) fn list_store() -> Option<FileListCache> {
    Some(FileListCache::new(cache_directory()?.join("toolplane/lists")))
}

/// Suffix of the files in [`answers_folder`].
pub(crate) const ANSWERS_ENDING: &str = ".json";

/// Returns the directory of the first answers of gateways, beside that of the [lists](list_store).
pub(crate) fn answers_folder() -> Option<PrivateFolder> {
    Some(PrivateFolder::new(cache_directory()?.join("toolplane/answers")))
}

/// Builds the toolplane of the configuration with these injected faults. Needs a runtime; starts no server.
pub(crate) async fn open(
    options: &Options,
    chaos: ChaosLayer,
    telemetry: &Telemetry,
    console: Console,
) -> Result<(Loaded, Toolplane), CliError> {
    let with_pins = async |builder: Builder, loaded: &Loaded, store: Option<&OpenStore>| {
        lock::with_pins(builder.chaos(chaos), loaded, store, console).await
    };
    open_with(options, telemetry, console, with_pins).await
}

/// Builds the toolplane of the configuration with what `complete` adds. Needs a runtime; starts no server.
pub(crate) async fn open_with(
    options: &Options,
    telemetry: &Telemetry,
    console: Console,
    complete: impl AsyncFnOnce(Builder, &Loaded, Option<&OpenStore>) -> Result<Builder, CliError>,
) -> Result<(Loaded, Toolplane), CliError> {
    let (mut loaded, store) = read_with_store(files(options)?, console, async |_, _| ()).await?;
    if !options.ignores_endpoint_variable {
        add_endpoint(&mut loaded)?;
    }
    let store = match store {
        Some(store) => Some(store.unless_empty(&loaded.configuration).await),
        None => None,
    };
    let builder = builder(&loaded, store.clone(), console).await;
    let builder = complete(builder, &loaded, store.as_ref()).await?;
    let plane = telemetry.instrument(builder, None).build()?;
    warn(&loaded, &plane, console);
    Ok((loaded, plane))
}

/// Returns a variable of the environment, if it is set and not empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the command line is one of the two owners of the environment"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
