//! Packages that the code of tools requires: locked by `toolplane lock` and `toolplane tools publish`.

use std::{collections::BTreeMap, fs};

use toolplane::{
    core::Descriptor,
    lock_requirements,
    manifest::{LoadOptions, Loaded, load},
    registry::ToolFile,
};

use crate::{
    command::{Lock, Options},
    config,
    error::CliError,
    exit::Exit,
    output::{Console, text},
    process::runtime::block_on,
};

/// Locks the packages of the tools in the files of the configuration, each beside the file that describes the tool: those that
/// are not locked, and those that `--update` names. Returns `false` if `--update` names only such tools.
///
/// # Errors
/// If packages cannot be resolved; with `--check`, if packages are not locked.
pub(super) fn lock_all(options: &Options, verb: &Lock, console: Console) -> Result<bool, CliError> {
    let files = config::files(options)?;
    let load_options = files.into_iter().fold(LoadOptions::new(), LoadOptions::path);
    // Its warnings are shown when the configuration is loaded again, with the locked packages.
    let loaded = load(&load_options)?;
    block_on(async {
        for tool in &loaded.configuration.tools {
            let update = verb.update.as_ref();
            let renew =
                update.is_some_and(|names| names.is_empty() || names.iter().any(|name| **name == *tool.name));
            if verb.check {
                check(tool)?;
            } else {
                lock(&loaded, tool, renew, console).await?;
            }
        }
        Ok(Exit::Done)
    })?;
    let requires = |name: &str| {
        let mut tools = loaded.configuration.tools.iter();
        tools.any(|tool| *tool.name == *name && tool.executor.config.get("requires").is_some())
    };
    let names = verb.update.as_deref().unwrap_or_default();
    Ok(names.is_empty() || !names.iter().all(|name| requires(name)))
}

fn check(tool: &Descriptor) -> Result<(), CliError> {
    if toolplane::is_locked(tool) {
        return Ok(());
    }
    let message = format!(
        "the packages that `{}` requires are not locked, or others are",
        tool.name
    );
    Err(CliError::new(Exit::ToolChanged, "tool_changed", message).with_hint("`toolplane lock` locks them"))
}

async fn lock(loaded: &Loaded, tool: &Descriptor, renew: bool, console: Console) -> Result<(), CliError> {
    if !renew && toolplane::is_locked(tool) {
        return Ok(());
    }
    let locked = lock_requirements(&loaded.configuration.defaults, tool, renew).await;
    let locked = locked.map_err(|error| failed(tool, &error))?;
    let Some(((_, content), path)) = locked.zip(loaded.requirements_file(&tool.name)) else {
        return Ok(());
    };
    let n_packages = content.lines().filter(|line| line.contains("==")).count();
    fs::write(&path, content).map_err(|error| {
        CliError::failed(format!("`{}` cannot be written", path.display())).with_source(&error)
    })?;
    console.say(&format!(
        "wrote {}: {}",
        path.display(),
        text::count(n_packages, "package")
    ));
    Ok(())
}

/// Returns the files of a tool to publish, with its locked packages.
pub(super) async fn with_locked(
    loaded: &Loaded,
    tool: &Descriptor,
) -> Result<BTreeMap<String, ToolFile>, CliError> {
    let mut files: BTreeMap<_, _> = tool
        .files
        .iter()
        .map(|(path, content)| (path.clone(), ToolFile::new(content.clone())))
        .collect();
    let locked = lock_requirements(&loaded.configuration.defaults, tool, false).await;
    if let Some((path, content)) = locked.map_err(|error| failed(tool, &error))? {
        files.insert(path.to_owned(), ToolFile::new(content));
    }
    Ok(files)
}

fn failed(tool: &Descriptor, error: &(dyn std::error::Error + 'static)) -> CliError {
    CliError::failed(format!("the packages of `{}` are not locked", tool.name)).with_source(error)
}
