//! `toolplane approvals`: calls of running gateways that wait for approval.

use std::collections::HashSet;

use raw_json::RawJson;
use serde::Serialize;
use toolplane::policy::{harmless_text, readable_json};
use toolplane_gateway::{OperatorClient, OperatorClientError};

use crate::{
    command::{Approvals, Format},
    error::CliError,
    exit::Exit,
    gateways,
    output::{Console, text},
    process::runtime::block_on,
};

pub(crate) fn run(approvals: &Approvals, console: Console) -> Result<Exit, CliError> {
    block_on(async {
        match approvals {
            Approvals::Ls => list(console).await,
            Approvals::Show { handle } => show(&locate(handle, console).await?, console),
            Approvals::Approve { handle, by } => {
                let found = locate(handle, console).await?;
                decide(&found, true, by.as_deref(), None, console).await
            }
            Approvals::Deny { handle, by, reason } => {
                let found = locate(handle, console).await?;
                decide(&found, false, by.as_deref(), reason.as_deref(), console).await
            }
        }
    })
}

/// An approval, and the gateway that keeps it.
struct LocatedApproval {
    socket: std::path::PathBuf,
    approval: RawJson,
}

impl LocatedApproval {
    fn text(&self, key: &str) -> String {
        let text = self.approval.get(key).and_then(|text| text.string());
        harmless_text(&text.unwrap_or_default())
    }
}

/// Returns all approvals of this user's gateways.
async fn all(console: Console) -> Result<Vec<LocatedApproval>, CliError> {
    let answers = gateways::ask(console, OperatorClient::approvals).await?;
    let all = answers.into_iter().flat_map(|(gateway, approvals)| {
        let of_gateway = approvals.into_iter();
        of_gateway.map(move |approval| LocatedApproval {
            socket: gateway.socket.clone(),
            approval,
        })
    });
    // Gateways on one store have the same approvals.
    let mut handles = HashSet::new();
    Ok(all.filter(|found| handles.insert(found.text("handle"))).collect())
}

/// Finds the approval whose handle is `handle` or begins with it.
async fn locate(handle: &str, console: Console) -> Result<LocatedApproval, CliError> {
    let mut all = all(console).await?;
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
        .with_hint("`toolplane approvals ls` lists the approvals of running gateways")
}

/// An approval as its gateway reports it.
#[derive(Serialize)]
#[serde(transparent)]
struct ApprovalRecord<'a>(&'a RawJson);

async fn list(console: Console) -> Result<Exit, CliError> {
    let all = all(console).await?;
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
    let gone = |error: &std::io::Error| {
        CliError::new(Exit::Unavailable, "unavailable", "the gateway has ended").with_source(error)
    };
    let client = OperatorClient::connect(&found.socket)
        .await
        .map_err(|error| gone(&error))?;
    let by = by.unwrap_or("operator");
    let decided = client
        .decide(&found.text("handle"), is_approved, by, reason)
        .await;
    let decided = decided.map_err(|error| match &error {
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
    })?;
    let found = LocatedApproval {
        socket: found.socket.clone(),
        approval: decided,
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
