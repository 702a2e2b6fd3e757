//! `toolplane tools publish`.

use std::path::Path;

use semver::Version;
use serde_json::{Value, json};
use toolplane::{
    core::Descriptor,
    manifest::Loaded,
    registry::{NewVersion, PublishError, PublishOptions, Published, Publisher},
};

use super::{author, checking_publisher, files, tool_and_number};
use crate::{
    command::{Options, Publish},
    config,
    error::CliError,
    exit::Exit,
    output::{Console, text},
    verbs::requirements,
};

/// Setting of a mock tool that names a file beside the configuration.
const RESULT_FILE: &str = "result_file";

pub(super) async fn run(options: &Options, publish: &Publish, console: Console) -> Result<Exit, CliError> {
    let by = author(publish.by.as_deref());
    let chosen = PublishOptions::default()
        .draft(publish.draft)
        .declared_compatible(publish.compatible)
        .dry_run(publish.dry_run);
    let path = Path::new(&publish.source);
    let published = if publish.source.contains('@') && !path.exists() {
        let (tool, version) = tool_and_number(&publish.source)?;
        let publisher = checking_publisher(options, &[], console).await?;
        vec![publisher.publish_draft(tool, &version, &by, chosen).await?]
    } else {
        let loaded = match &publish.files {
            None => config::read(vec![path.to_owned()], console)?,
            Some(_) => config::read_without_files(path.to_owned(), console)?,
        };
        let publisher = checking_publisher(options, &loaded.configuration.servers, console).await?;
        from_file(&publisher, &loaded, publish, &by, chosen).await?
    };
    show(&published, publish.dry_run, console)
}

/// Publishes the tools of a file: all, or the one that is asked for.
async fn from_file(
    publisher: &Publisher,
    loaded: &Loaded,
    publish: &Publish,
    by: &str,
    options: PublishOptions,
) -> Result<Vec<Published>, CliError> {
    let wanted =
        |tool: &&std::sync::Arc<Descriptor>| publish.tool.as_ref().is_none_or(|name| **name == *tool.name);
    let tools: Vec<_> = loaded.configuration.tools.iter().filter(wanted).collect();
    match (tools.len(), &publish.tool) {
        (0, Some(name)) => {
            let message = format!("`{}` has no tool `{}`", publish.source, text::line(name));
            return Err(CliError::new(Exit::NotFound, "not_found", message));
        }
        (0, None) => {
            let message = format!("`{}` has no tools", publish.source);
            return Err(CliError::new(Exit::NotFound, "not_found", message));
        }
        (2.., None) if publish.version.is_some() || publish.files.is_some() => {
            return Err(CliError::usage(
                "`--version` and `--files` belong to one tool, and the file has several",
            )
            .with_hint("`--tool NAME` chooses one"));
        }
        _ => {}
    }
    let mut versions = Vec::with_capacity(tools.len());
    for tool in tools {
        let version = publish.version.clone().or_else(|| tool.version.clone());
        let mut tool = Descriptor::clone(tool);
        if let Some(directory) = &publish.files {
            tool.files = files::read(directory)?;
        }
        versions.push(new_version(publisher, loaded, &tool, version.as_deref()).await?);
    }
    Ok(publisher.publish_all(versions, by, options).await?)
}

/// Publishes all tools of loaded files, or none. `version` is that of tools that state none.
pub(crate) async fn publish_tools(
    publisher: &Publisher,
    loaded: &Loaded,
    version: Option<&str>,
    by: &str,
    options: PublishOptions,
) -> Result<Vec<Published>, CliError> {
    let mut versions = Vec::with_capacity(loaded.configuration.tools.len());
    for tool in &loaded.configuration.tools {
        versions.push(new_version(publisher, loaded, tool, tool.version.as_deref().or(version)).await?);
    }
    Ok(publisher.publish_all(versions, by, options).await?)
}

async fn new_version(
    publisher: &Publisher,
    loaded: &Loaded,
    tool: &Descriptor,
    version: Option<&str>,
) -> Result<NewVersion, CliError> {
    let version = match version {
        Some(written) => Version::parse(written).map_err(|_| {
            let message = format!(
                "`{}` of `{}` is no semantic version",
                text::line(written),
                tool.name
            );
            CliError::usage(message).with_hint("write three numbers, such as `1.0.0`")
        })?,
        None if publisher
            .store()
            .tool(&tool.name)
            .await
            .map_err(PublishError::from)?
            .is_none() =>
        {
            Version::new(1, 0, 0)
        }
        None => {
            let message = format!("`{}` does not say its version", tool.name);
            return Err(
                CliError::usage(message).with_hint("add `version: ..` to it, or write `--version VERSION`")
            );
        }
    };
    if let Some(file) = tool.executor.config.get(RESULT_FILE) {
        let message = format!(
            "`{}` reads the file {file}, which is not part of the version",
            tool.name
        );
        return Err(CliError::usage(message).with_hint("write the result into the tool: `result: ..`"));
    }
    let manifest = loaded.manifest(&tool.name);
    let manifest = manifest.ok_or_else(|| {
        CliError::failed(format!(
            "the tool `{}` cannot be written as a document",
            tool.name
        ))
    })?;
    let files = requirements::with_locked(loaded, tool).await?;
    Ok(NewVersion::new(tool.name.clone(), version, manifest).with_files(files))
}

fn show(published: &[Published], is_dry_run: bool, console: Console) -> Result<Exit, CliError> {
    let values: Vec<Value> = published.iter().map(published_value).collect();
    console.value(&values, || {
        let lines: Vec<_> = published
            .iter()
            .map(|one| published_line(one, is_dry_run))
            .collect();
        lines.join("\n")
    })?;
    Ok(Exit::Done)
}

/// Returns the line for people about a publication.
pub(crate) fn published_line(one: &Published, is_dry_run: bool) -> String {
    let (tool, version) = (&one.tool, &one.version);
    let state = one.state.as_str();
    if !one.is_new {
        return format!("{tool}@{version} is {state} already, with the same content");
    }
    let said = if is_dry_run { "would be " } else { "" };
    let latest = match &one.latest {
        Some(latest) if latest == version => "; it is the latest version".to_owned(),
        Some(latest) => format!("; the latest version is {latest}"),
        None => String::new(),
    };
    let change = match (&one.before, one.change.phrase()) {
        (Some(before), Some(change)) => format!(" (against {before}: {})", text::line(&change)),
        _ => String::new(),
    };
    format!("{said}{state}: {tool}@{version}{change}{latest}")
}

/// Returns a publication as JSON.
pub(crate) fn published_value(one: &Published) -> Value {
    json!({
        "tool": &*one.tool,
        "version": one.version.to_string(),
        "digest": format!("sha256:{}", raw_json::hex(&one.digest)),
        "state": one.state.as_str(),
        "latest": one.latest.as_ref().map(ToString::to_string),
        "before": one.before.as_ref().map(ToString::to_string),
        "change": one.change.phrase(),
        "new": one.is_new,
    })
}
