//! `toolplane catalog install`.

use std::{collections::BTreeMap, time::SystemTime};

use serde_json::{Value, json};
use toolplane::{
    InstalledKind, LockFile,
    catalog::{BundleContent, CatalogEntry, CatalogNeeds, ServerInput, ServerPlan},
    manifest::{LoadOptions, Loaded, Syntax, load},
    raw_json::RawJson,
    registry::{NewVersion, PublishError, PublishOptions, ServerRecord, VersionRequest, VersionState},
};

use super::{
    find::{find, to_json},
    needs,
    show::{signature_json, signature_line},
};
use crate::{
    command::{InstallEntry, Options},
    error::CliError,
    exit::Exit,
    lock,
    output::{Console, text},
    store::required_store,
    verbs::registry::{
        author, checking_plane_of, configuration, needed, published_line, published_value, publisher_of,
    },
};

/// Result of an installation.
struct Installed {
    value: Value,
    lines: Vec<String>,
    needs: CatalogNeeds,
}

pub(super) async fn run(
    options: &Options,
    install: &InstallEntry,
    console: Console,
) -> Result<Exit, CliError> {
    let (catalog, entry) = find(&install.entry, console).await?;
    if !install.entry.contains('@') {
        let message = format!("`{}` names no version", text::line(&install.entry));
        return Err(
            CliError::usage(message).with_hint(format!("write `{}@{}`", install.entry, entry.version))
        );
    }
    let checked = catalog.bundle(&entry).await?;
    let loaded = configuration(options, console)?;
    let mut pin = Pin::read(&loaded, &entry)?;
    let installed = match &checked.bundle.content {
        BundleContent::Tool(version) => {
            refuse_for_tools(install)?;
            install_tool(loaded, install, &catalog.name, version.clone(), console).await?
        }
        BundleContent::Server(settings) => {
            refuse_for_settings(install)?;
            let name = local_name(install, &entry);
            install_server(&loaded, install, &name, settings, None, console).await?
        }
        BundleContent::McpServer(server) => {
            let plan = server.plan(install.package.as_deref(), &values(install)?)?;
            for warning in &plan.warnings {
                console.warn(&text::line(warning));
            }
            let name = local_name(install, &entry);
            install_server(&loaded, install, &name, &plan.settings, Some(&plan), console).await?
        }
        _ => {
            return Err(CliError::failed(
                "this program cannot install entries of this kind",
            ));
        }
    };
    let is_pinned = pin.write(install.dry_run)?;
    let mut value = to_json(&catalog.name, &entry);
    value["signature"] = signature_json(&checked.signature, catalog.key.as_ref());
    value["lock_file"] = json!(pin.path.display().to_string());
    value["pinned_now"] = json!(is_pinned);
    value["dry_run"] = json!(install.dry_run);
    for (key, member) in installed.value.as_object().into_iter().flatten() {
        value[key] = member.clone();
    }
    value["needs"] = installed.needs.to_json().to().unwrap_or_default();
    console.value(&value, || {
        let mut lines = installed.lines;
        lines.push(format!(
            "signature {}",
            signature_line(&checked.signature, catalog.key.as_ref())
        ));
        lines.push(pin.line(is_pinned, install.dry_run));
        lines.extend(needs::lines(&installed.needs));
        lines.join("\n")
    })?;
    if install.dry_run {
        console.say("nothing was changed: without `--dry-run` it is installed");
    }
    Ok(Exit::Done)
}

/// Pin of an entry in the lock file.
struct Pin {
    path: std::path::PathBuf,
    lock: LockFile,
    kind: InstalledKind,
    version: String,
    digest: [u8; 32],
}

impl Pin {
    /// Reads the lock file, and checks that the entry is not pinned with another digest.
    fn read(loaded: &Loaded, entry: &CatalogEntry) -> Result<Self, CliError> {
        let pin = Self {
            path: lock::path(loaded),
            lock: lock::read(loaded)?.unwrap_or_default(),
            kind: match entry.kind.is_tool() {
                true => InstalledKind::Tool,
                false => InstalledKind::Server,
            },
            version: format!("{}@{}", entry.name, entry.version),
            digest: entry.digest,
        };
        match pin.lock.installed(pin.kind, &pin.version) {
            Some(locked) if *locked != pin.digest => {
                let message = format!(
                    "`{}` has the digest `sha256:{}` in the catalog, and `{}` pins `sha256:{}`",
                    pin.version,
                    raw_json::hex(&pin.digest),
                    pin.path.display(),
                    raw_json::hex(locked)
                );
                Err(
                    CliError::new(Exit::ToolChanged, "tool_changed", message).with_hint(
                        "a version never changes: ask whoever publishes the catalog for a new version",
                    ),
                )
            }
            _ => Ok(pin),
        }
    }

    /// Writes the pin. Returns `false` if it was there.
    fn write(&mut self, is_dry_run: bool) -> Result<bool, CliError> {
        if self.lock.installed(self.kind, &self.version).is_some() {
            return Ok(false);
        }
        self.lock
            .set_installed(self.kind, self.version.as_str(), self.digest);
        if !is_dry_run {
            self.lock.write(&self.path).map_err(|error| {
                CliError::failed(format!("it is installed, and not pinned: {error}"))
                    .with_hint("make the lock file writable, and install it again")
            })?;
        }
        Ok(true)
    }

    fn line(&self, is_new: bool, is_dry_run: bool) -> String {
        let said = match (is_new, is_dry_run) {
            (false, _) => "pinned already in",
            (true, true) => "would be pinned in",
            (true, false) => "pinned in",
        };
        format!(
            "{said} {}: sha256:{}",
            self.path.display(),
            raw_json::hex(&self.digest)
        )
    }
}

/// Installs a tool as one of a foreign author: what it declares counts after `tools accept`, and its secrets need grants. Without
/// them it stays a draft.
async fn install_tool(
    loaded: Loaded,
    install: &InstallEntry,
    catalog: &str,
    version: NewVersion,
    console: Console,
) -> Result<Installed, CliError> {
    let needs = needs::needs_of_tool(&version)?;
    let (plane, store) = checking_plane_of(loaded, &[], console).await?;
    let publisher = publisher_of(store, plane.manifests());
    let author_name = format!("catalog {catalog}");
    let (tool, number) = (version.tool.clone(), version.version.clone());
    let chosen = PublishOptions::default()
        .by_agent(true)
        .declared_compatible(install.compatible)
        .dry_run(install.dry_run);
    let has_secrets = !needs.secrets.is_empty();
    let published = publisher
        .publish(version, &author_name, chosen.draft(has_secrets))
        .await;
    let mut published = published.map_err(|error| match error {
        PublishError::Invalid(_) if !needs.is_empty() => {
            CliError::from(error).with_hint(needs::sentence(&needs))
        }
        error => error.into(),
    })?;
    let mut lines = Vec::new();
    let is_draft = published.state == VersionState::Draft;
    if is_draft && install.grant && !install.dry_run {
        let exact = VersionRequest::Exact(number.clone());
        let head = publisher.find(&tool, &exact).await?.head;
        if head.digest != published.digest {
            return Err(CliError::failed(format!(
                "`{tool}@{number}` was changed meanwhile"
            )));
        }
        let uses = needed(&plane, &publisher, &tool, &head).await?;
        let by = author(install.by.as_deref());
        publisher.grant(&tool, &head, &uses, &by).await?;
        published = publisher
            .publish_draft(&tool, &number, &author_name, chosen)
            .await?;
        lines.push(format!("granted {} to it", text::count(uses.len(), "secret")));
    }
    lines.insert(0, published_line(&published, install.dry_run));
    if published.state == VersionState::Draft {
        lines.push(format!(
            "it is a draft until its secrets are granted: `toolplane secrets grant {tool}@{number} --all`, then \
             `toolplane tools publish {tool}@{number}`; `--grant` does both"
        ));
    }
    Ok(Installed {
        value: json!({"tool": published_value(&published)}),
        lines,
        needs,
    })
}

async fn install_server(
    loaded: &Loaded,
    install: &InstallEntry,
    name: &str,
    settings: &RawJson,
    plan: Option<&ServerPlan>,
    console: Console,
) -> Result<Installed, CliError> {
    let needs = needs::needs_of_server(settings)?;
    check_settings(name, settings, console)?;
    let configured = loaded.configuration.servers.iter().map(|server| &server.name);
    let endpoints = loaded
        .configuration
        .endpoints
        .iter()
        .map(|endpoint| &endpoint.name);
    if configured.chain(endpoints).any(|known| known == name) {
        let message = format!("the configuration has a server `{name}`, which would be offered instead");
        return Err(CliError::failed(message).with_hint("`--name NAME` gives this one another name"));
    }
    let store = required_store(loaded).await?;
    let known = store.tools.servers().await.map_err(PublishError::from)?;
    let known = known.iter().find(|known| *known.name == *name);
    // A server that an agent proposed is not there yet: an operator has not approved it.
    let is_same = known.is_some_and(|known| {
        known.proposed_by.is_none() && raw_json::digest(&known.settings) == raw_json::digest(settings)
    });
    if let (Some(agent), false) = (
        known.and_then(|known| known.proposed_by.as_ref()),
        install.replace,
    ) {
        let message = format!(
            "the agent `{}` proposed a server `{name}`, which nobody approved",
            text::line(agent)
        );
        return Err(CliError::failed(message)
            .with_hint("`--replace` replaces it, and `--name NAME` gives this one another name"));
    }
    if known.is_some() && !is_same && !install.replace {
        let message = format!("the store has a server `{name}` with other settings");
        return Err(CliError::failed(message)
            .with_hint("`--replace` replaces it, and `--name NAME` gives this one another name"));
    }
    if !is_same && !install.dry_run {
        let record = ServerRecord::new(name, settings.clone(), SystemTime::now());
        store
            .tools
            .set_server(name, Some(record))
            .await
            .map_err(PublishError::from)?;
    }
    let mut value = json!({
        "server": name,
        "settings": settings.to::<Value>().unwrap_or_default(),
        "new": known.is_none(),
        "replaced": known.is_some() && !is_same,
    });
    let said = match (is_same, known.is_some(), install.dry_run) {
        (true, ..) => "is there already, with the same settings",
        (false, true, true) => "would be replaced",
        (false, true, false) => "replaced",
        (false, false, true) => "would be added",
        (false, false, false) => "added",
    };
    let mut lines = vec![
        format!("the server {name} {said}"),
        text::lines(&settings.indented()).into_owned(),
    ];
    if let Some(plan) = plan {
        value["package"] =
            json!({"number": plan.package.number, "type": plan.package.kind, "name": plan.package.label});
        value["pinned"] = json!(plan.pinned);
        value["asked"] = inputs_json(&plan.asked);
        value["optional"] = inputs_json(&plan.optional);
        value["warnings"] = json!(plan.warnings);
        lines.extend(input_lines(plan));
    }
    Ok(Installed { value, lines, needs })
}

/// Checks that settings can be loaded as those of a server.
fn check_settings(name: &str, settings: &RawJson, console: Console) -> Result<(), CliError> {
    let document = RawJson::from_members(&[("servers", RawJson::from_members(&[(name, settings.clone())]))]);
    let options = LoadOptions::new().text(name, Syntax::Json, document.as_str());
    let loaded = load(&options).map_err(|problems| {
        let mut failure = CliError::from(problems);
        failure.message = format!("the settings of the server `{}` cannot be used", text::line(name));
        failure.with_hint_if_none("`--name NAME` gives the server another name".to_owned())
    })?;
    for problem in &loaded.diagnostics {
        console.warn(&text::lines(&problem.to_string()));
    }
    Ok(())
}

/// Returns the name of a server in the store.
fn local_name(install: &InstallEntry, entry: &CatalogEntry) -> String {
    let last = entry.name.rsplit('/').next().unwrap_or(&entry.name);
    install.name.clone().unwrap_or_else(|| last.to_owned())
}

/// Reads the values of `--set`.
fn values(install: &InstallEntry) -> Result<BTreeMap<String, String>, CliError> {
    let mut values = BTreeMap::new();
    for written in &install.values {
        let Some((name, value)) = written.split_once('=') else {
            let message = format!("`--set {}` has no value", text::line(written));
            return Err(CliError::usage(message).with_hint("write `--set NAME=VALUE`"));
        };
        if values.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(CliError::usage(format!(
                "`--set` gives `{}` twice",
                text::line(name)
            )));
        }
    }
    Ok(values)
}

fn refuse_for_tools(install: &InstallEntry) -> Result<(), CliError> {
    if install.name.is_some() || install.replace {
        let message = "`--name` and `--replace` belong to servers, and this is a tool";
        return Err(
            CliError::usage(message).with_hint("`toolplane tools alias` lists a tool under a second name")
        );
    }
    refuse_for_settings(install)
}

fn refuse_for_settings(install: &InstallEntry) -> Result<(), CliError> {
    match install.values.is_empty() && install.package.is_none() {
        true => Ok(()),
        false => Err(CliError::usage(
            "`--set` and `--package` belong to a `server.json` of the MCP registry, and this entry is none",
        )),
    }
}

/// Returns the inputs of a `server.json` as data.
pub(super) fn inputs_json(inputs: &[ServerInput]) -> Value {
    let rows = inputs.iter().map(|input| {
        json!({
            "name": input.name,
            "reference": input.reference,
            "secret": input.is_secret,
            "description": input.description,
            "choices": input.choices,
        })
    });
    rows.collect::<Vec<Value>>().into()
}

/// Returns what a `server.json` pins and asks for, as lines for people.
pub(super) fn input_lines(plan: &ServerPlan) -> Vec<String> {
    let described = |input: &ServerInput| match &input.description {
        Some(description) => format!(" ({description})"),
        None => String::new(),
    };
    let package = format!(
        "package {} ({}) pins {}",
        plan.package.number, plan.package.kind, plan.pinned
    );
    let asked = plan.asked.iter().map(|input| {
        let reference = input.reference.as_deref().unwrap_or_default();
        match input.is_secret {
            true => format!(
                "it asks for the secret {}, as {reference}{}",
                input.name,
                described(input)
            ),
            false => format!(
                "it asks for {}, as {reference} or by `--set {}=VALUE`{}",
                input.name,
                input.name,
                described(input)
            ),
        }
    });
    let optional = plan
        .optional
        .iter()
        .map(|input| format!("`--set {}=VALUE` may be given{}", input.name, described(input)));
    let lines = std::iter::once(package).chain(asked).chain(optional);
    lines.map(|line| text::line(&line).into_owned()).collect()
}
