//! Needs of an installation: the list that an operator grants.

use toolplane::{
    StoredManifests, Toolplane,
    catalog::CatalogNeeds,
    raw_json::RawJson,
    registry::{NewVersion, ReadManifest as _},
};

use crate::{error::CliError, output::text};

/// Returns what a version of a tool needs, by the reach that its executor states: the only place that decides it for tools.
pub(in crate::verbs) fn needs_of_tool(version: &NewVersion) -> Result<CatalogNeeds, CliError> {
    let tool = StoredManifests.read(&version.tool, &version.manifest);
    let tool = tool.map_err(|reason| {
        CliError::new(
            crate::Exit::Usage,
            "invalid",
            format!("the tool `{}` cannot be used: {reason}", version.tool),
        )
    })?;
    // Without a configuration: what a tool names does not depend on one.
    let plane = Toolplane::builder().build()?;
    Ok(match plane.reach(&tool) {
        Some(reach) => CatalogNeeds::of_tool(&tool, &reach)?,
        None => CatalogNeeds::of_settings(&RawJson::from(&tool.executor.config))?,
    })
}

/// Returns what a server with these settings needs: the only place that decides it for servers.
pub(super) fn needs_of_server(settings: &RawJson) -> Result<CatalogNeeds, CliError> {
    Ok(CatalogNeeds::of_settings(settings)?)
}

/// Returns the needs as lines for people.
pub(super) fn lines(needs: &CatalogNeeds) -> Vec<String> {
    if needs.is_empty() {
        return vec!["grants it needs: none".to_owned()];
    }
    let secrets = needs.secrets.iter().map(|secret| {
        let default = if secret.has_default {
            ", which may be absent"
        } else {
            ""
        };
        let destination = secret.destination.as_ref().map(|to| format!(" for {to}"));
        let destination = destination.unwrap_or_default();
        let line = format!(
            "  secret {} in {}{destination}{default}",
            secret.reference, secret.field
        );
        text::line(&line).into_owned()
    });
    let hosts = needs
        .hosts
        .iter()
        .map(|host| format!("  host {}", text::line(host)));
    let programs = needs
        .programs
        .iter()
        .map(|program| format!("  program {}", text::line(program)));
    let others = needs
        .others
        .iter()
        .map(|other| format!("  {}", text::line(other)));
    std::iter::once("grants it needs:".to_owned())
        .chain(secrets)
        .chain(hosts)
        .chain(programs)
        .chain(others)
        .collect()
}

/// Returns the needs as one sentence, for an installation that was refused.
pub(super) fn sentence(needs: &CatalogNeeds) -> String {
    let secrets = needs
        .secrets
        .iter()
        .map(|secret| format!("the secret {} in {}", secret.reference, secret.field));
    let hosts = needs.hosts.iter().map(|host| format!("the host {host}"));
    let programs = needs
        .programs
        .iter()
        .map(|program| format!("the program {program}"));
    let others = needs.others.iter().cloned();
    let all: Vec<String> = secrets.chain(hosts).chain(programs).chain(others).collect();
    format!("it needs {}", all.join(", "))
}
