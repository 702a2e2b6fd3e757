//! Which configuration is used.

use std::{env, path::PathBuf, sync::Arc};

use toolplane::{
    Builder, FileListCache, Toolplane,
    faults::ChaosLayer,
    manifest::{LoadOptions, Loaded, Severity, find_configuration, load},
};

use crate::{command::Options, failure::Failure, logging, output::Console, telemetry::Telemetry};

/// The configuration's files: those on the command line, or the first one that is found.
pub(crate) fn files(options: &Options) -> Result<Vec<PathBuf>, Failure> {
    if !options.config.is_empty() {
        return Ok(options.config.clone());
    }
    // Relative, so that messages name files the way the user knows them.
    match find_configuration(&PathBuf::new()) {
        Some(file) => Ok(vec![file]),
        None => Err(Failure::configuration(
            "there is no configuration: neither `$TOOLPLANE_CONFIG`, `./toolplane.yaml` nor \
             `$XDG_CONFIG_HOME/toolplane/toolplane.yaml`",
        )
        .with_hint(
            "`toolplane init` writes an example that works at once; `--config FILE` names another file",
        )),
    }
}

/// Loads files and says what there is to be said of them.
pub(crate) fn read(files: Vec<PathBuf>, console: Console) -> Result<Loaded, Failure> {
    let options = files.into_iter().fold(LoadOptions::new(), LoadOptions::path);
    let loaded = load(&options)?;
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

/// Says what only whoever runs the tools finds strange in their settings.
pub(crate) fn warn(loaded: &Loaded, plane: &Toolplane, console: Console) {
    for (tool, warning) in plane.warnings() {
        console.warn(&loaded.warning(&tool, &warning).to_string());
    }
}

/// Begins the toolplane of a configuration, whose secrets no log tells, and which keeps the lists of servers.
pub(crate) fn builder(loaded: &Loaded) -> Builder {
    let builder = Toolplane::builder().loaded(loaded).redactor(logging::redactor());
    match list_store() {
        Some(store) => builder.list_cache(Arc::new(store)),
        None => builder,
    }
}

/// The store of kept lists: in `$XDG_CACHE_HOME`, or else in `~/.cache`, since everything in it can be read again from the
/// servers. `None` if neither names a directory.
pub(crate) fn list_store() -> Option<FileListCache> {
    // The base directory specification: a relative path is to be ignored.
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from).and_then(absolute);
    let home = || variable("HOME").map(PathBuf::from).and_then(absolute);
    let cache = cache.or_else(|| Some(home()?.join(".cache")))?;
    Some(FileListCache::new(cache.join("toolplane/lists")))
}

/// The toolplane of the configuration, with these faults on purpose. Needs a runtime; starts nothing.
pub(crate) fn open(
    options: &Options,
    chaos: ChaosLayer,
    telemetry: &Telemetry,
    console: Console,
) -> Result<(Loaded, Toolplane), Failure> {
    let loaded = read(files(options)?, console)?;
    let plane = telemetry.of(builder(&loaded).chaos(chaos), None).build()?;
    warn(&loaded, &plane, console);
    Ok((loaded, plane))
}

/// A variable of the environment, if it is set and not empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the command line is one of the two owners of the environment"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
