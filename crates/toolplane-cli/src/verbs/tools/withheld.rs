//! Definitions that are withheld: in running gateways, or by the lock file in this process.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolplane::{RawJson, Toolplane, core::FieldChange};
use toolplane_gateway::{OperatorClient, OperatorClientError};

use crate::{
    command::{Accept, Format, Options},
    error::CliError,
    exit::Exit,
    gateways::{self, RunningGateway},
    lock,
    output::{Console, text},
    process::runtime::block_on,
    verbs::{lock::change_line, on_plane},
};

/// Number of definitions that are accepted by one request.
const MAX_DIGESTS: usize = 100;

/// Record of a withheld definition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Withheld {
    /// Process id of the gateway; `None` in this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gateway: Option<String>,
    pub(super) name: String,
    feature: String,
    pub(super) source: String,
    upstream_name: String,
    /// `new` or `changed`.
    state: String,
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted_digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted_by: Option<String>,
    #[serde(default)]
    changes: Vec<Change>,
    #[serde(default)]
    definition: Value,
}

/// Difference in one place of a definition.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Change {
    path: String,
    before: Option<String>,
    after: Option<String>,
}

/// Selects the definitions of a command.
struct Selection<'a> {
    name: Option<&'a str>,
    server: Option<&'a str>,
    digest: Option<&'a str>,
}

impl Selection<'_> {
    fn has(&self, withheld: &Withheld) -> bool {
        self.name.is_none_or(|name| withheld.name == name)
            && self.server.is_none_or(|server| withheld.source == server)
            && self
                .digest
                .is_none_or(|digest| withheld.digest.starts_with(&digest.to_ascii_lowercase()))
    }

    /// Returns the error if nothing is selected.
    fn nothing(&self) -> CliError {
        let message = match (self.name, self.server, self.digest) {
            (Some(name), _, Some(digest)) => {
                let (name, digest) = (text::line(name), text::line(digest));
                format!("no definition of `{name}` with the digest `{digest}` is withheld")
            }
            (Some(name), ..) => format!("the definition of `{}` is not withheld", text::line(name)),
            (None, Some(server), _) => format!("no definition of `{}` is withheld", text::line(server)),
            (None, None, _) => "no definition is withheld".to_owned(),
        };
        CliError::new(Exit::NotFound, "not_found", message)
            .with_hint("`toolplane tools diff` shows the definitions that are withheld")
    }
}

/// Returns the withheld definitions of running gateways. Empty if no gateway was reached.
pub(super) async fn of_gateways(console: Console) -> Vec<(RunningGateway, Vec<Withheld>)> {
    let answers = gateways::ask(console, OperatorClient::withheld)
        .await
        .unwrap_or_default();
    let answers = answers.into_iter().map(|(gateway, records)| {
        let process = gateway.process();
        let records = records.iter().filter_map(|record: &RawJson| {
            let withheld: Withheld = record.to().ok()?;
            Some(Withheld {
                gateway: Some(process.clone()),
                ..withheld
            })
        });
        let records = records.collect();
        (gateway, records)
    });
    answers.collect()
}

/// Returns the withheld definitions of this process.
fn of_plane(plane: &Toolplane) -> Vec<Withheld> {
    let records = plane.withheld_records().into_iter();
    records
        .filter_map(|record| serde_json::from_value(record).ok())
        .collect()
}

/// Warns of withheld definitions in this process and in running gateways, in lines for each source.
pub(super) async fn warn(plane: &Toolplane, server: Option<&str>, console: Console) {
    let gateways = of_gateways(console).await;
    let all = of_plane(plane)
        .into_iter()
        .chain(gateways.into_iter().flat_map(|(_, records)| records));
    let mut known: Vec<(String, Option<String>, Vec<String>)> = Vec::new();
    for withheld in all.filter(|withheld| server.is_none_or(|server| withheld.source == server)) {
        let at = known
            .iter()
            .position(|(source, gateway, _)| *source == withheld.source && *gateway == withheld.gateway);
        let at = at.unwrap_or_else(|| {
            known.push((withheld.source.clone(), withheld.gateway.clone(), Vec::new()));
            known.len() - 1
        });
        known[at].2.push(text::line(&withheld.name).into_owned());
    }
    for (source, gateway, names) in known {
        let place = gateway
            .map(|gateway| format!(" in the gateway {gateway}"))
            .unwrap_or_default();
        console.warn(&format!(
            "{} of `{}`{} withheld{place}: `{}`{}; `toolplane tools diff` shows what has changed",
            text::count(names.len(), "definition"),
            text::line(&source),
            if names.len() == 1 { " is" } else { " are" },
            names[0],
            if names.len() > 1 { ", …" } else { "" },
        ));
    }
}

/// Shows the differences of withheld definitions: those of running gateways, or else those of the lock file.
pub(super) fn diff(options: &Options, name: Option<&str>, console: Console) -> Result<Exit, CliError> {
    let selection = Selection {
        name,
        server: None,
        digest: None,
    };
    let mut of_gateways = Vec::new();
    block_on(async {
        of_gateways = self::of_gateways(console).await;
        Ok(Exit::Done)
    })?;
    let records = of_gateways.into_iter().flat_map(|(_, records)| records);
    let shown: Vec<_> = records.filter(|withheld| selection.has(withheld)).collect();
    if !shown.is_empty() {
        return show(&shown, console);
    }
    on_plane(options, console, async |_, plane| {
        plane.view(&plane.local_caller()).await;
        let shown: Vec<_> = of_plane(plane)
            .into_iter()
            .filter(|withheld| selection.has(withheld))
            .collect();
        match (shown.is_empty(), name) {
            (true, Some(_)) => Err(selection.nothing()),
            _ => show(&shown, console),
        }
    })
}

fn show(shown: &[Withheld], console: Console) -> Result<Exit, CliError> {
    if shown.is_empty() && console.format == Format::Table {
        console.say("no definition is withheld");
        return Ok(Exit::Done);
    }
    console.value(shown, || {
        let pages: Vec<_> = shown.iter().map(page).collect();
        pages.join("\n\n")
    })?;
    Ok(Exit::Done)
}

fn page(withheld: &Withheld) -> String {
    let place = withheld.gateway.as_ref();
    let place = place
        .map(|gateway| format!(", in the gateway {gateway}"))
        .unwrap_or_default();
    let (name, source) = (text::line(&withheld.name), text::line(&withheld.source));
    let (state, feature) = (&withheld.state, &withheld.feature);
    let mut lines = vec![format!("{state:<9}{feature} `{name}` of `{source}`{place}")];
    let known = [withheld.accepted_by.as_ref(), withheld.accepted_at.as_ref()];
    let known: Vec<_> = known.into_iter().flatten().map(|text| text::line(text)).collect();
    if !known.is_empty() {
        lines.push(format!("         accepted before: {}", known.join(", ")));
    }
    let digest: String = withheld.digest.chars().take(16).collect();
    lines.push(format!("         digest: {digest}"));
    let changes = withheld.changes.iter();
    lines.extend(changes.map(|change| {
        change_line(&FieldChange::new(
            &*change.path,
            change.before.clone(),
            change.after.clone(),
        ))
    }));
    if withheld.changes.is_empty() {
        // Nothing to compare with: the whole definition is to be read.
        let definition = serde_json::to_string_pretty(&withheld.definition).unwrap_or_default();
        lines.extend(
            definition
                .lines()
                .map(|line| format!("         {}", text::line(line))),
        );
    }
    lines.join("\n")
}

/// Accepts withheld definitions: in the gateways that withhold them, or else in the lock file.
pub(super) fn accept(options: &Options, accept: &Accept, console: Console) -> Result<Exit, CliError> {
    let selection = Selection {
        name: accept.name.as_deref(),
        server: accept.server.as_deref(),
        digest: accept.digest.as_deref(),
    };
    let by = accept.by.as_deref().unwrap_or("operator");
    let mut accepted = Vec::new();
    block_on(async {
        for (gateway, records) in of_gateways(console).await {
            let selected = records.into_iter().filter(|withheld| selection.has(withheld));
            accepted.extend(accept_in(&gateway, selected.collect(), by).await?);
        }
        Ok(Exit::Done)
    })?;
    if !accepted.is_empty() {
        return report(&accepted, console);
    }
    on_plane(options, console, async |loaded, plane| {
        plane.view(&plane.local_caller()).await;
        let selected: Vec<_> = of_plane(plane)
            .into_iter()
            .filter(|withheld| selection.has(withheld))
            .collect();
        if selected.is_empty() {
            return Err(selection.nothing());
        }
        if lock::read(loaded)?.is_none_or(|lock| lock.has_no_sources()) && !lock::locks(&loaded.configuration)
        {
            return Err(CliError::failed(
                "there is neither a gateway that withholds it nor a lock file",
            ));
        }
        let is_selected = |digest: &[u8; 32]| selected.iter().any(|one| one.digest == raw_json::hex(digest));
        let stored = plane.accept(by, |withheld| is_selected(&withheld.digest())).await;
        stored.map_err(|error| CliError::failed(error.to_string()))?;
        report(&selected, console)
    })
}

/// Accepts definitions in a gateway, by their digests: one that has changed since it was read stays withheld.
async fn accept_in(
    gateway: &RunningGateway,
    selected: Vec<Withheld>,
    by: &str,
) -> Result<Vec<Withheld>, CliError> {
    let mut accepted: Vec<Withheld> = Vec::new();
    for part in selected.chunks(MAX_DIGESTS) {
        let digests: Vec<String> = part.iter().map(|withheld| withheld.digest.clone()).collect();
        let client = OperatorClient::connect(&gateway.socket).await.map_err(|error| {
            CliError::new(Exit::Unavailable, "unavailable", "the gateway has ended").with_source(&error)
        })?;
        let answer = client.accept(&digests, by).await;
        let records = answer.map_err(|error| match &error {
            OperatorClientError::Refused { kind, message, .. } if kind == "not_found" => {
                let message = text::line(message).into_owned();
                CliError::new(Exit::ToolChanged, "tool_changed", message)
                    .with_hint("it has changed again: `toolplane tools diff` shows the present definition")
            }
            OperatorClientError::Refused { message, .. } => CliError::failed(text::line(message)),
            _ => CliError::new(Exit::Unavailable, "unavailable", error.to_string()).with_source(&error),
        })?;
        let digests: Vec<_> = records
            .iter()
            .filter_map(|record| record.get("digest")?.string())
            .collect();
        accepted.extend(
            part.iter()
                .filter(|withheld| digests.contains(&withheld.digest))
                .cloned(),
        );
    }
    Ok(accepted)
}

fn report(accepted: &[Withheld], console: Console) -> Result<Exit, CliError> {
    console.value(accepted, || {
        let lines = accepted.iter().map(|withheld| {
            let place = withheld.gateway.as_ref();
            let place = place
                .map(|gateway| format!(" in the gateway {gateway}"))
                .unwrap_or_default();
            let digest: String = withheld.digest.chars().take(16).collect();
            format!("accepted {} ({digest}){place}", text::line(&withheld.name))
        });
        lines.collect::<Vec<_>>().join("\n")
    })?;
    Ok(Exit::Done)
}
