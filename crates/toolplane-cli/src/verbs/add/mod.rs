//! `toolplane add`: a server by package, image, URL or command, which is started once before it is written.

mod package;
mod settings;
mod tools;

use serde_json::{Value, json};
use toolplane::{
    Toolplane,
    core::SourceState,
    manifest::{LoadOptions, Loaded, Syntax, load},
    raw_json::RawJson,
};

use self::{settings::NewServer, tools::ToolRow};
use super::{
    clients::masked,
    configuration::servers::{Target, must_be_free},
    on_opened_plane,
};
use crate::{
    command::{Add, Format, Options},
    error::CliError,
    exit::Exit,
    output::{
        Console,
        confirm::{confirm, must_be_able_to_ask},
        text,
        yaml::yaml,
    },
    process::logging,
    telemetry::Telemetry,
};

pub(crate) fn run(options: &Options, add: &Add, console: Console) -> Result<Exit, CliError> {
    must_be_able_to_ask(console, add.yes || add.dry_run)?;
    let server = settings::new_server(add)?;
    let target = Target::find(options)?;
    must_be_free(&target.servers()?, &add.name, &target.path)?;
    let loaded = loaded(&add.name, &server.settings)?;
    for (section, key) in masked::literal_secrets(&server.settings) {
        let variable = masked::variable(&key);
        console.warn(&text::line(&format!(
            "`{section}.{key}` is written out into the configuration: `${{env:{variable}}}` keeps the value in the environment"
        )));
    }
    let open = async |telemetry: &Telemetry| {
        // Without kept lists, so that the server is started.
        let builder = Toolplane::builder().loaded(&loaded).redactor(logging::redactor());
        let plane = telemetry.instrument(builder, None).build()?;
        Ok((loaded, plane))
    };
    on_opened_plane(console, open, async |_, plane| {
        let tools = start(plane, &add.name, &server, console).await?;
        finish(add, server, &target, &tools, warnings(plane), console).await
    })
}

/// Loads the settings as those of a server of a configuration.
fn loaded(name: &str, settings: &Value) -> Result<Loaded, CliError> {
    let document = json!({"servers": {name: settings}}).to_string();
    load(&LoadOptions::new().text("the new server", Syntax::Json, document)).map_err(|problems| {
        let mut failure = CliError::from(problems);
        failure.message = format!("the server `{}` cannot be used", text::line(name));
        failure
    })
}

/// Starts the server, and returns its tools.
async fn start(
    plane: &Toolplane,
    name: &str,
    server: &NewServer,
    console: Console,
) -> Result<Vec<ToolRow>, CliError> {
    let view = plane.view(&plane.local_caller()).await;
    for (source, status) in plane.sources() {
        if let SourceState::Failed(reason) = &status.state {
            super::servers::warn_of_failure(&source, reason, status.detail.as_deref(), console);
            let message = format!(
                "the server `{}` does not start: nothing was written",
                text::line(name)
            );
            return Err(
                CliError::new(Exit::Unavailable, "unavailable", message).with_hint(start_hint(server))
            );
        }
    }
    Ok(view.tools().iter().map(|tool| ToolRow::new(tool)).collect())
}

/// Returns advice on a server that does not start.
fn start_hint(server: &NewServer) -> &'static str {
    let package = server.package.as_ref();
    match package.and_then(|package| package.install_hint(&server.settings)) {
        Some(hint) => hint,
        None if server.settings.get("url").is_some() => {
            "the reason is above: correct the URL, or give what it needs with `--header`"
        }
        None => "the reason is above: correct the command or package, or give what it needs with `--env`",
    }
}

/// Returns the warnings about the definitions of the server, and its tools that are not offered.
fn warnings(plane: &Toolplane) -> Vec<String> {
    let listed = plane
        .list_warnings()
        .into_iter()
        .map(|(_, warning)| warning.to_string());
    let refused = plane.refused().into_iter();
    let refused = refused.map(|refused| format!("`{}` is not offered: {}", refused.name, refused.reason));
    listed.chain(refused).collect()
}

/// Shows the tools, pins the version, asks, and writes.
async fn finish(
    add: &Add,
    server: NewServer,
    target: &Target,
    tools: &[ToolRow],
    warnings: Vec<String>,
    console: Console,
) -> Result<Exit, CliError> {
    let (settings, pinned) = package::pin(server).await;
    let document = RawJson::from(json!({"servers": {add.name.as_str(): masked::settings(&settings)}}));
    for warning in &warnings {
        console.warn(&text::line(warning));
    }
    if pinned.is_none() {
        console.warn("the version is not pinned: each start may run another one");
    }
    let mut value = json!({
        "name": add.name,
        "settings": masked::settings(&settings),
        "pinned": pinned,
        "tools": tools,
        "warnings": warnings,
        "file": target.path,
        "state": if add.dry_run { "would_add" } else { "added" },
    });
    if console.format == Format::Table {
        console.list(tools, |table| tools::table(table, tools))?;
        console.data(&format!("\n{}", yaml(&document)))?;
    }
    if !add.dry_run {
        match confirm(
            console,
            add.yes,
            &format!("add it to `{}`?", target.path.display()),
        )? {
            true => target.add(&[(add.name.clone(), settings)])?,
            false => value["state"] = json!("declined"),
        }
    }
    if console.format != Format::Table {
        console.value(&value, String::new)?;
    }
    let file = target.path.display();
    let (said, exit) = match value["state"].as_str() {
        Some("would_add") => (
            "nothing was changed: without `--dry-run` it is added".to_owned(),
            Exit::Done,
        ),
        Some("declined") => ("nothing was changed".to_owned(), Exit::Failed),
        _ => (
            format!(
                "added `{}` to `{file}` with {}",
                add.name,
                text::count(tools.len(), "tool")
            ),
            Exit::Done,
        ),
    };
    console.say(&said);
    Ok(exit)
}
