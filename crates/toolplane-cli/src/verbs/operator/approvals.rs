//! `toolplane approvals`: calls that wait for approval, at running gateways or in the store of the configuration.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use raw_json::RawJson;
use serde::Serialize;
use toolplane::policy::{
    ApprovalDesk, ApprovalVerdict, DecideError, approval_json, harmless_text, readable_json,
};
use toolplane_gateway::{OperatorClient, OperatorClientError};

use super::offline::OfflineStore;
use crate::{
    command::{Approvals, Format, Options},
    error::CliError,
    exit::Exit,
    gateways,
    output::{Console, text},
    process::runtime::block_on,
};

pub(crate) fn run(options: &Options, approvals: &Approvals, console: Console) -> Result<Exit, CliError> {
    block_on(async {
        let all = all(options, console).await?;
        match approvals {
            Approvals::Ls => list(&all, console),
            Approvals::Show { handle } => show(&locate(all, handle)?, console),
            Approvals::Approve { handle, by } => {
                let found = locate(all, handle)?;
                decide(&found, true, by.as_deref(), None, console).await
            }
            Approvals::Deny { handle, by, reason } => {
                let found = locate(all, handle)?;
                decide(&found, false, by.as_deref(), reason.as_deref(), console).await
            }
        }
    })
}

/// An approval, and where it is decided.
struct LocatedApproval {
    place: Place,
    approval: RawJson,
}

/// Place of an approval.
#[derive(Clone)]
enum Place {
    /// A running gateway, by its socket.
    Gateway(PathBuf),
    /// The store of the configuration.
    Store(ApprovalDesk),
}

impl LocatedApproval {
    fn text(&self, key: &str) -> String {
        let text = self.approval.get(key).and_then(|text| text.string());
        harmless_text(&text.unwrap_or_default())
    }
}

/// Returns all approvals of this user's gateways. Those of the configuration's store are added if no gateway was reached, or if the
/// command line names the configuration.
async fn all(options: &Options, console: Console) -> Result<Vec<LocatedApproval>, CliError> {
    let answers = gateways::ask_running(console, OperatorClient::approvals).await;
    let store = OfflineStore::open(options, answers.is_some(), console).await?;
    if answers.is_none() && store.is_none() {
        return Err(gateways::none_reached());
    }
    let mut all = Vec::new();
    for (gateway, approvals) in answers.unwrap_or_default() {
        let of_gateway = approvals.into_iter().map(|approval| LocatedApproval {
            place: Place::Gateway(gateway.socket.clone()),
            approval,
        });
        all.extend(of_gateway);
    }
    if let Some(OfflineStore { store, .. }) = store {
        let desk = ApprovalDesk::new(store.approvals, [], store.clock);
        let listed = desk.list().await.map_err(|error| {
            let message = "the approvals in the store cannot be read";
            CliError::new(Exit::Unavailable, "unavailable", message).with_source(&error)
        })?;
        all.extend(listed.iter().map(|approval| LocatedApproval {
            place: Place::Store(desk.clone()),
            approval: approval_json(approval),
        }));
    }
    // Gateways on one store have the same approvals.
    let mut handles = HashSet::new();
    all.retain(|found| handles.insert(found.text("handle")));
    Ok(all)
}

/// Finds the approval whose handle is `handle` or begins with it.
fn locate(mut all: Vec<LocatedApproval>, handle: &str) -> Result<LocatedApproval, CliError> {
    all.retain(|found| !handle.is_empty() && found.text("handle").starts_with(handle));
    match (all.pop(), all.is_empty()) {
        (Some(found), true) => Ok(found),
        (None, _) => Err(not_found(format!(
            "no approval has the handle `{}`",
            text::line(handle)
        ))),
        _ => Err(CliError::usage(format!(
            "more than one handle begins with `{}`",
            text::line(handle)
        ))
        .with_hint("write more characters of it")),
    }
}

fn not_found(message: String) -> CliError {
    CliError::new(Exit::NotFound, "not_found", message)
        .with_hint("`toolplane approvals ls` lists the approvals")
}

/// An approval as its gateway reports it.
#[derive(Serialize)]
#[serde(transparent)]
struct ApprovalRecord<'a>(&'a RawJson);

fn list(all: &[LocatedApproval], console: Console) -> Result<Exit, CliError> {
    if all.is_empty() && console.format == Format::Table {
        console.say("no call waits for approval");
        return Ok(Exit::Done);
    }
    let rows: Vec<ApprovalRecord<'_>> = all.iter().map(|found| ApprovalRecord(&found.approval)).collect();
    console.list(&rows, |table| {
        let header = ["HANDLE", "STATE", "TOOL", "ASKED BY", "EXPIRES", "ARGUMENTS"];
        table.header(header).rows(all.iter().map(cells))
    })?;
    Ok(Exit::Done)
}

/// Maximum number of characters of the arguments in a list.
const MAX_SHOWN: usize = 60;

fn cells(found: &LocatedApproval) -> [String; 6] {
    let arguments = found.approval.get("arguments").unwrap_or_default();
    let arguments = harmless_text(arguments.as_str());
    let mut shown: String = arguments.chars().take(MAX_SHOWN).collect();
    if shown.len() < arguments.len() {
        shown.push('…');
    }
    let handle: String = found.text("handle").chars().take(8).collect();
    [
        handle,
        found.text("state"),
        found.text("tool"),
        found.text("principal"),
        found.text("expires_at"),
        shown,
    ]
}

fn show(found: &LocatedApproval, console: Console) -> Result<Exit, CliError> {
    console.value(&ApprovalRecord(&found.approval), || {
        let mut lines = Vec::new();
        for (name, key) in [
            ("Handle", "handle"),
            ("State", "state"),
            ("Decided by", "decided_by"),
            ("Tool", "tool"),
            ("Version", "version"),
            ("Asked by", "principal"),
            ("Tenant", "tenant"),
            ("Because", "reason"),
            ("Asked at", "asked_at"),
            ("Expires at", "expires_at"),
        ] {
            let value = found.text(key);
            if !value.is_empty() {
                lines.push(format!("{name}: {value}"));
            }
        }
        let risks = found.approval.get("risks").unwrap_or_default();
        let risks = risks.items().filter_map(|risk| risk.string());
        lines.extend(risks.map(|risk| format!("Note: {}", harmless_text(&risk))));
        let details = found.approval.get("details").and_then(|details| details.string());
        let details = details.unwrap_or_default();
        if !details.is_empty() {
            let details: Vec<_> = details.lines().map(harmless_text).collect();
            lines.push(format!("Details:\n{}", details.join("\n")));
        }
        let arguments = found.approval.get("arguments").unwrap_or_default();
        lines.push(format!("Arguments:\n{}", readable_json(&arguments)));
        lines.join("\n")
    })?;
    Ok(Exit::Done)
}

async fn decide(
    found: &LocatedApproval,
    is_approved: bool,
    by: Option<&str>,
    reason: Option<&str>,
    console: Console,
) -> Result<Exit, CliError> {
    let by = by.unwrap_or("operator");
    let approval = match &found.place {
        Place::Gateway(socket) => {
            decide_at_gateway(socket, &found.text("handle"), is_approved, by, reason).await?
        }
        Place::Store(desk) => decide_in_store(desk, &found.text("handle"), is_approved, by, reason).await?,
    };
    let found = LocatedApproval {
        place: found.place.clone(),
        approval,
    };
    console.value(&ApprovalRecord(&found.approval), || {
        format!(
            "{} {}: {}",
            found.text("state"),
            found.text("handle"),
            found.text("tool")
        )
    })?;
    Ok(Exit::Done)
}

async fn decide_at_gateway(
    socket: &Path,
    handle: &str,
    is_approved: bool,
    by: &str,
    reason: Option<&str>,
) -> Result<RawJson, CliError> {
    let gone = |error: &std::io::Error| {
        CliError::new(Exit::Unavailable, "unavailable", "the gateway has ended").with_source(error)
    };
    let client = OperatorClient::connect(socket)
        .await
        .map_err(|error| gone(&error))?;
    let decided = client.decide(handle, is_approved, by, reason).await;
    decided.map_err(|error| match &error {
        OperatorClientError::Refused { kind, message, .. } => {
            let message = text::line(message).into_owned();
            match kind.as_str() {
                "not_found" => not_found(message),
                "denied" => CliError::new(Exit::Denied, "denied", message),
                "unavailable" => CliError::new(Exit::Unavailable, "unavailable", message),
                _ => CliError::failed(message),
            }
        }
        _ => CliError::new(Exit::Unavailable, "unavailable", error.to_string()).with_source(&error),
    })
}

async fn decide_in_store(
    desk: &ApprovalDesk,
    handle: &str,
    is_approved: bool,
    by: &str,
    reason: Option<&str>,
) -> Result<RawJson, CliError> {
    let verdict = match is_approved {
        true => ApprovalVerdict::Approve,
        false => ApprovalVerdict::Deny {
            reason: reason.map(str::to_owned),
        },
    };
    let decided = desk.decide(handle, verdict, by).await;
    let decided = decided.map_err(|error| {
        let message = text::line(&error.to_string()).into_owned();
        match &error {
            DecideError::Unknown { .. } => not_found(message),
            DecideError::OwnCall { .. } => CliError::new(Exit::Denied, "denied", message),
            DecideError::Store(_) => {
                CliError::new(Exit::Unavailable, "unavailable", message).with_source(&error)
            }
            _ => CliError::failed(message),
        }
    })?;
    Ok(approval_json(&decided))
}
