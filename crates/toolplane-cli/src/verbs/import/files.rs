//! `toolplane import FILE --publish`.

use std::time::SystemTime;

use serde_json::{Value, json};
use toolplane::{
    manifest::Loaded,
    registry::{PublishError, PublishOptions, Publisher, ServerRecord},
};

use crate::{
    command::{Import, Options},
    config,
    error::CliError,
    exit::Exit,
    output::{Console, text},
    process::runtime::block_on,
    verbs::registry::{author, checking_publisher, publish_tools, published_line, published_value},
};

pub(super) fn run(options: &Options, import: &Import, console: Console) -> Result<Exit, CliError> {
    block_on(async {
        let loaded = config::read(import.files.clone(), console)?;
        let publisher = checking_publisher(options, &loaded.configuration.servers, console).await?;
        for endpoint in &loaded.configuration.endpoints {
            let name = text::line(&endpoint.name).into_owned();
            console.warn(&format!(
                "the endpoint `{name}` stays in its file: a store keeps tools and servers"
            ));
        }
        if loaded.configuration.tools.is_empty() && loaded.configuration.servers.is_empty() {
            return Err(CliError::new(
                Exit::NotFound,
                "not_found",
                "the files have neither tools nor servers",
            ));
        }
        let chosen = PublishOptions::default()
            .declared_compatible(import.compatible)
            .dry_run(!import.publish);
        let servers = match import.publish {
            true => store_servers(&publisher, &loaded, import.official).await?,
            false => loaded
                .configuration
                .servers
                .iter()
                .map(|server| server.name.clone())
                .collect(),
        };
        let by = author(import.by.as_deref());
        let published = publish_tools(&publisher, &loaded, import.version.as_deref(), &by, chosen).await?;
        let value = json!({
            "servers": servers,
            "tools": published.iter().map(published_value).collect::<Vec<Value>>(),
            "published": import.publish,
        });
        console.value(&value, || {
            let kept = if import.publish { "kept" } else { "would be kept" };
            let servers = servers
                .iter()
                .map(|server| format!("{kept}: the server {}", text::line(server)));
            let tools = published.iter().map(|one| published_line(one, !import.publish));
            servers.chain(tools).collect::<Vec<_>>().join("\n")
        })?;
        if !import.publish {
            console.say("nothing was changed: `--publish` publishes");
        }
        Ok(Exit::Done)
    })
}

/// Keeps the servers of files in the store. Those that are there are replaced.
async fn store_servers(
    publisher: &Publisher,
    loaded: &Loaded,
    is_official: bool,
) -> Result<Vec<String>, CliError> {
    let mut kept = Vec::new();
    for server in &loaded.configuration.servers {
        let Some(settings) = loaded.server_settings(&server.name) else {
            let message = format!(
                "the server `{}` cannot be written as a document",
                text::line(&server.name)
            );
            return Err(CliError::failed(message));
        };
        let record =
            ServerRecord::new(server.name.as_str(), settings, SystemTime::now()).with_official(is_official);
        let stored = publisher.store().set_server(&server.name, Some(record)).await;
        stored.map_err(PublishError::from)?;
        kept.push(server.name.clone());
    }
    Ok(kept)
}
