//! `toolplane tools publish` and the other verbs that change the versions in the store.

mod agents;
mod diff;
mod files;
mod publish;
mod versions;

use std::sync::Arc;

use semver::Version;
use toolplane::{
    StoredManifests, Toolplane,
    core::SystemClock,
    manifest::{LoadOptions, Loaded, ServerSpec, load},
    registry::{PublishError, Publisher, ReadManifest, StoreError, VersionRequest, split_version},
};

pub(super) use self::agents::needed;
pub(super) use self::publish::{publish_tools, published_line, published_value};
use crate::{
    command::{Accept, Options, Publish, Secrets, VersionVerb},
    config,
    error::CliError,
    exit::Exit,
    output::Console,
    process::runtime::block_on,
    store::{OpenStore, add_servers, required_store},
};

pub(crate) fn run(options: &Options, verb: VersionVerb, console: Console) -> Result<Exit, CliError> {
    block_on(async {
        match &verb {
            VersionVerb::Publish(publish) => return publish::run(options, publish, console).await,
            VersionVerb::Create(create) => {
                let draft = Publish {
                    draft: true,
                    ..create.clone()
                };
                return publish::run(options, &draft, console).await;
            }
            VersionVerb::Test { version, json } => {
                return agents::test(options, version, json.as_deref(), console).await;
            }
            _ => {}
        }
        let publisher = publisher(options, console).await?;
        match verb {
            VersionVerb::Publish(_) | VersionVerb::Create(_) | VersionVerb::Test { .. } => Ok(Exit::Done),
            VersionVerb::Delete { version } => agents::delete(&publisher, &version, console).await,
            VersionVerb::Versions { tool } => versions::list(&publisher, &tool, console).await,
            VersionVerb::Deprecate(deprecate) => versions::deprecate(&publisher, deprecate, console).await,
            VersionVerb::Yank { version, reason, by } => {
                versions::yank(&publisher, &version, &reason, by.as_deref(), console).await
            }
            VersionVerb::Rollback { tool, to, by } => {
                versions::rollback(&publisher, &tool, to.as_deref(), by.as_deref(), console).await
            }
            VersionVerb::Alias { name, target, remove } => {
                versions::alias(&publisher, &name, target.as_deref(), remove, console).await
            }
        }
    })
}

/// Accepts what a version declares that an agent made.
pub(super) fn accept(
    options: &Options,
    version: &str,
    accept: &Accept,
    console: Console,
) -> Result<Exit, CliError> {
    block_on(async { agents::accept(&publisher(options, console).await?, version, accept, console).await })
}

/// Grants, lists or revokes the secrets of tools that agents made.
pub(crate) fn secrets(options: &Options, verb: Secrets, console: Console) -> Result<Exit, CliError> {
    block_on(agents::secrets(options, verb, console))
}

/// Shows what differs between a version in the store and another one, or the latest one.
pub(super) fn diff(
    options: &Options,
    version: &str,
    other: Option<&str>,
    console: Console,
) -> Result<Exit, CliError> {
    block_on(async { diff::run(&publisher(options, console).await?, version, other, console).await })
}

/// Returns the publisher of the configuration's store. The configuration is optional: without one, the store is in the
/// user's data directory.
pub(super) async fn publisher(options: &Options, console: Console) -> Result<Publisher, CliError> {
    let store = required_store(&configuration(options, console)?).await?;
    Ok(publisher_of(store, Arc::new(StoredManifests)))
}

/// Returns the publisher of the configuration's store, as [`publisher`] does. It accepts only tools that can run with this
/// configuration, its store, and these servers.
pub(super) async fn checking_publisher(
    options: &Options,
    servers: &[ServerSpec],
    console: Console,
) -> Result<Publisher, CliError> {
    checking_publisher_of(configuration(options, console)?, servers, console).await
}

/// Returns the publisher of the store of a loaded configuration, as [`checking_publisher`] does.
pub(super) async fn checking_publisher_of(
    loaded: Loaded,
    servers: &[ServerSpec],
    console: Console,
) -> Result<Publisher, CliError> {
    let (plane, store) = checking_plane_of(loaded, servers, console).await?;
    Ok(publisher_of(store, plane.manifests()))
}

/// Returns a toolplane with the executors of the configuration, its servers and those of the store, and the store.
async fn checking_plane(
    options: &Options,
    servers: &[ServerSpec],
    console: Console,
) -> Result<(Toolplane, OpenStore), CliError> {
    checking_plane_of(configuration(options, console)?, servers, console).await
}

pub(super) async fn checking_plane_of(
    mut loaded: Loaded,
    servers: &[ServerSpec],
    console: Console,
) -> Result<(Toolplane, OpenStore), CliError> {
    let store = required_store(&loaded).await?;
    add_servers(&mut loaded, Some(&store), console).await;
    let known = &mut loaded.configuration.servers;
    let is_new = |server: &&ServerSpec| known.iter().all(|known| known.name != server.name);
    let added: Vec<_> = servers.iter().filter(is_new).cloned().collect();
    known.extend(added);
    let builder = config::local_builder(&loaded);
    let plane = store.give_tools(builder, &loaded.configuration).build()?;
    Ok((plane, store))
}

/// Loads the configuration; an empty one if there is none.
pub(super) fn configuration(options: &Options, console: Console) -> Result<Loaded, CliError> {
    match config::files(options) {
        Ok(files) => config::read(files, console),
        Err(error) if !options.config.is_empty() => Err(error),
        Err(_) => Ok(load(&LoadOptions::new())?),
    }
}

pub(super) fn publisher_of(store: OpenStore, manifests: Arc<dyn ReadManifest>) -> Publisher {
    Publisher::new(store.tools, manifests, Arc::new(SystemClock::new()))
}

/// Splits `tool@version`, where the version is required.
pub(super) fn tool_and_version(text: &str) -> Result<(&str, VersionRequest), CliError> {
    match split_version(text) {
        Ok((tool, Some(request))) => Ok((tool, request)),
        Ok((tool, None)) => Err(
            CliError::usage(format!("`{tool}` names no version")).with_hint(format!(
                "write `{tool}@1.0.0`; `toolplane tools versions {tool}` lists them"
            )),
        ),
        Err(error) => Err(CliError::usage(error.to_string())),
    }
}

/// Splits `tool@version`, where the version is an exact one.
fn tool_and_number(text: &str) -> Result<(&str, Version), CliError> {
    match tool_and_version(text)? {
        (tool, VersionRequest::Exact(version)) => Ok((tool, version)),
        (tool, request) => Err(CliError::usage(format!("`{request}` is no exact version"))
            .with_hint(format!("write one such as `{tool}@1.0.0`"))),
    }
}

/// Returns the person who changes the store, for its records.
pub(super) fn author(by: Option<&str>) -> String {
    by.map(str::to_owned)
        .or_else(|| config::variable("USER"))
        .unwrap_or_else(|| "local".to_owned())
}

impl From<PublishError> for CliError {
    fn from(error: PublishError) -> Self {
        let hint = match &error {
            PublishError::UnknownTool { .. } => {
                Some("`toolplane tools ls --wide` shows where each tool comes from".to_owned())
            }
            PublishError::UnknownVersion { tool, .. } => {
                Some(format!("`toolplane tools versions {tool}` lists them"))
            }
            PublishError::Immutable { .. } => Some("publish the new content under a new version".to_owned()),
            PublishError::Unproven(_) => Some("`--compatible` declares it compatible".to_owned()),
            PublishError::NoFormer { tool } => Some(format!(
                "`toolplane tools rollback {tool} --to VERSION` names one"
            )),
            PublishError::Store(StoreError::Conflict { .. }) => {
                Some("look at the present state, and try again".to_owned())
            }
            _ => None,
        };
        let (exit, kind) = match &error {
            PublishError::UnknownTool { .. } | PublishError::UnknownVersion { .. } => {
                (Exit::NotFound, "not_found")
            }
            PublishError::Invalid(_) | PublishError::Request(_) => (Exit::Usage, "invalid"),
            PublishError::Store(StoreError::Conflict { .. }) => (Exit::Failed, "conflict"),
            PublishError::Store(_) => (Exit::Unavailable, "unavailable"),
            _ => (Exit::Failed, "refused"),
        };
        let failure = Self::new(exit, kind, error.to_string());
        let failure = match std::error::Error::source(&error) {
            Some(source) => failure.with_source(source),
            None => failure,
        };
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}
