//! Servers that the manifests of agents describe.

use raw_json::RawJson;
use tool_core::{AuthoringAction, AuthoringChange, Caller, Event};
use tool_manifest::{ServerSpec, ServerTransport};
use tool_registry::ServerRecord;

use super::{Authoring, AuthoringError, DraftProblem};

/// Compares a described server with those of the operators, and proposes it to them if they have none of its name. Returns
/// its name if it waits for their approval.
pub(super) async fn propose(
    authoring: &Authoring,
    caller: &Caller,
    server: Option<(ServerSpec, RawJson)>,
) -> Result<Option<String>, AuthoringError> {
    let Some((spec, settings)) = server else {
        return Ok(None);
    };
    if find(authoring, &spec)?.is_some() {
        return Ok(None);
    }
    let author = super::author(caller);
    let store = authoring.publisher.store();
    let servers = store.servers().await?;
    let known = servers.into_iter().find(|known| *known.name == *spec.name);
    let settings = sandboxed(&spec, settings);
    match known {
        Some(known) if known.proposed_by.as_deref() == Some(&*author) && known.settings == settings => {
            return Ok(Some(spec.name));
        }
        Some(known) if known.proposed_by.as_deref() != Some(&*author) => return Err(taken(&spec)),
        _ => {}
    }
    let now = authoring.plane.0.clock.wall();
    let record =
        ServerRecord::new(spec.name.as_str(), settings, now).with_proposed_by(Some(author.as_str().into()));
    let digest = raw_json::digest(&record.settings);
    store.set_server(&spec.name, Some(record)).await?;
    let change = AuthoringChange::new(AuthoringAction::ServerProposed, &*spec.name, "", caller, digest);
    authoring.plane.0.observers.emit(&Event::authored(&change));
    Ok(Some(spec.name))
}

/// Finds the server of the operators that a manifest describes: one of the same name, which is reached the same way.
///
/// # Errors
/// If the server of that name is another one.
pub(super) fn find<'a>(
    authoring: &'a Authoring,
    spec: &ServerSpec,
) -> Result<Option<&'a ServerSpec>, AuthoringError> {
    let known = authoring
        .state
        .servers
        .iter()
        .find(|known| known.name == spec.name);
    match known {
        Some(known) if is_same(&known.transport, &spec.transport) => Ok(Some(known)),
        Some(_) => Err(taken(spec)),
        None => Ok(None),
    }
}

/// Returns `true` if two servers are the same program with the same arguments and environment, or have the same URL and headers.
fn is_same(one: &ServerTransport, other: &ServerTransport) -> bool {
    match (one, other) {
        (
            ServerTransport::Stdio {
                command,
                args,
                env,
                cwd,
                env_file,
                ..
            },
            ServerTransport::Stdio {
                command: other_command,
                args: other_args,
                env: other_env,
                cwd: other_cwd,
                env_file: other_env_file,
                ..
            },
        ) => {
            let other = (other_command, other_args, other_env, other_cwd, other_env_file);
            (command, args, env, cwd, env_file) == other
        }
        (
            ServerTransport::Http { url, headers, .. },
            ServerTransport::Http {
                url: other_url,
                headers: other_headers,
                ..
            },
        ) => (url, headers) == (other_url, other_headers),
        _ => false,
    }
}

fn taken(spec: &ServerSpec) -> AuthoringError {
    let message = format!("there is another server `{}`", spec.name);
    let fix = "leave out its command and URL to use that one, or name yours differently";
    AuthoringError::Invalid(vec![DraftProblem::new(
        "executor_config.mcp_server",
        "server",
        message,
        fix,
    )])
}

/// Returns the settings of a proposed server: a program runs in a sandbox.
fn sandboxed(spec: &ServerSpec, settings: RawJson) -> RawJson {
    let is_program = matches!(spec.transport, ServerTransport::Stdio { .. });
    let added = settings.with_members(&[("sandbox", RawJson::from("auto"))]);
    match added {
        Ok(sandboxed) if is_program => sandboxed,
        _ => settings,
    }
}
