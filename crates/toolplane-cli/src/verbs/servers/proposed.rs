//! Servers that agents proposed.

use serde_json::{Value, json};
use toolplane::{
    RawJson,
    core::{Clock as _, SystemClock},
    policy::readable_json,
    registry::ServerRecord,
    settings::NetworkHosts,
};

use crate::{
    command::Options,
    config,
    error::CliError,
    exit::Exit,
    output::{Console, text},
    store::{OpenStore, required_store, server_specs},
};

async fn store(options: &Options, console: Console) -> Result<OpenStore, CliError> {
    let loaded = match config::files(options) {
        Ok(files) => config::read(files, console)?,
        Err(error) if !options.config.is_empty() => return Err(error),
        Err(_) => toolplane::manifest::load(&toolplane::manifest::LoadOptions::new())?,
    };
    required_store(&loaded).await
}

async fn servers(store: &OpenStore) -> Result<Vec<ServerRecord>, CliError> {
    let servers = store.tools.servers().await;
    servers
        .map_err(toolplane::registry::PublishError::from)
        .map_err(Into::into)
}

pub(super) async fn list(options: &Options, console: Console) -> Result<Exit, CliError> {
    let store = store(options, console).await?;
    let mut proposed = servers(&store).await?;
    proposed.retain(|server| server.proposed_by.is_some());
    let values: Vec<Value> = proposed
        .iter()
        .map(|server| {
            json!({
                "name": &*server.name,
                "proposed_by": server.proposed_by.as_deref(),
                "settings": server.settings.to::<Value>().unwrap_or_default(),
            })
        })
        .collect();
    console.value(&values, || {
        if proposed.is_empty() {
            return "no server is proposed".to_owned();
        }
        let shown = proposed.iter().map(shown);
        shown.collect::<Vec<_>>().join("\n\n")
    })?;
    Ok(Exit::Done)
}

fn shown(server: &ServerRecord) -> String {
    let by = server.proposed_by.as_deref().unwrap_or_default();
    let (name, by) = (text::line(&server.name), text::line(by));
    format!("{name}, proposed by {by}:\n{}", readable_json(&server.settings))
}

/// Approves a server as it is. Its settings are shown, since they are what is approved.
pub(super) async fn approve(
    options: &Options,
    name: &str,
    hosts: &[String],
    console: Console,
) -> Result<Exit, CliError> {
    let store = store(options, console).await?;
    let mut server = find(&store, name).await?;
    if !hosts.is_empty() {
        if let Some(wrong) = hosts.iter().find(|host| !NetworkHosts::is_host(host)) {
            let message = format!("`{}` is no host", text::line(wrong));
            return Err(
                CliError::usage(message).with_hint("write it like `api.example.com` or `*.example.com`")
            );
        }
        if server.settings.get("sandbox").is_none() {
            return Err(CliError::usage("`--network` is for a server that is a program"));
        }
        let sandbox = RawJson::from(json!({"level": "auto", "network": hosts}));
        let settings = server.settings.without_members(&["sandbox"]);
        let settings = settings.and_then(|settings| settings.with_members(&[("sandbox", sandbox)]));
        server.settings = settings.map_err(|error| CliError::failed(error.to_string()))?;
    }
    server.proposed_by = None;
    server.updated_at = SystemClock::new().wall();
    server_specs(&server).map_err(|reason| {
        CliError::failed(format!(
            "the server `{}` cannot be used: {}",
            text::line(name),
            text::line(&reason)
        ))
    })?;
    let settings = server.settings.clone();
    let set = store.tools.set_server(name, Some(server)).await;
    set.map_err(toolplane::registry::PublishError::from)?;
    console.value(
        &json!({"approved": name, "settings": settings.to::<Value>().unwrap_or_default()}),
        || format!("approved {}:\n{}", text::line(name), readable_json(&settings)),
    )?;
    Ok(Exit::Done)
}

pub(super) async fn reject(options: &Options, name: &str, console: Console) -> Result<Exit, CliError> {
    let store = store(options, console).await?;
    find(&store, name).await?;
    let removed = store.tools.set_server(name, None).await;
    removed.map_err(toolplane::registry::PublishError::from)?;
    console.value(&json!({"rejected": name}), || {
        format!("removed {}", text::line(name))
    })?;
    Ok(Exit::Done)
}

async fn find(store: &OpenStore, name: &str) -> Result<ServerRecord, CliError> {
    let servers = servers(store).await?;
    let found = servers
        .into_iter()
        .find(|server| *server.name == *name && server.proposed_by.is_some());
    found.ok_or_else(|| {
        let message = format!("no server `{}` is proposed", text::line(name));
        CliError::new(Exit::NotFound, "not_found", message)
            .with_hint("`toolplane servers proposed` lists them")
    })
}
