//! `toolplane ledger`: calls of running gateways with unknown outcome or with an idempotency key.

use std::collections::HashSet;

use raw_json::RawJson;
use serde::Serialize;
use toolplane::{core::CorrelationId, policy::harmless_text};
use toolplane_gateway::OperatorClient;

use crate::{
    command::{Format, Ledger},
    error::CliError,
    exit::Exit,
    gateways,
    output::{Console, text},
    process::runtime::block_on,
};

pub(crate) fn run(ledger: &Ledger, console: Console) -> Result<Exit, CliError> {
    block_on(async {
        match ledger {
            Ledger::Ls => list(console).await,
            Ledger::Show { id } => show(id, console).await,
        }
    })
}

/// A call as its gateway records it.
#[derive(Serialize)]
#[serde(transparent)]
struct LedgerRecord(RawJson);

impl LedgerRecord {
    fn text(&self, key: &str) -> String {
        printable(self.0.get(key))
    }

    fn error(&self, key: &str) -> String {
        printable(self.0.get("error").and_then(|error| error.get(key)))
    }
}

fn printable(value: Option<RawJson>) -> String {
    let text = value.and_then(|text| text.string());
    harmless_text(&text.unwrap_or_default())
}

async fn list(console: Console) -> Result<Exit, CliError> {
    let answers = gateways::ask(console, OperatorClient::unknown_outcomes).await?;
    let calls = answers.into_iter().flat_map(|(_, calls)| calls);
    // Gateways on one store have the same calls.
    let mut ids = HashSet::new();
    let calls = calls.map(LedgerRecord).filter(|call| ids.insert(call.text("id")));
    let calls: Vec<_> = calls.collect();
    if calls.is_empty() && console.format == Format::Table {
        console.say("no calls with unknown outcome");
        return Ok(Exit::Done);
    }
    console.list(&calls, |table| {
        let header = ["ID", "BEGUN", "TOOL", "CALLED BY", "WHY"];
        let cells = |call: &LedgerRecord| {
            let fields = ["id", "begun", "tool", "principal"].map(|key| call.text(key));
            let [id, begun, tool, principal] = fields;
            [id, begun, tool, principal, call.error("message")]
        };
        table.header(header).rows(calls.iter().map(cells))
    })?;
    Ok(Exit::Done)
}

async fn show(id: &str, console: Console) -> Result<Exit, CliError> {
    let id: CorrelationId = id.parse().map_err(|_| {
        let message = format!("invalid call id `{}`", text::line(id));
        CliError::usage(message)
            .with_hint("it is 32 hexadecimal digits: `ledger_id` in the error, `correlation_id` in the logs")
    })?;
    let question = async |client: OperatorClient| client.ledger_entry(id).await;
    let mut answers = gateways::ask(console, question).await?;
    let Some((_, call)) = answers.pop() else {
        let message = format!("no gateway that runs here remembers a call `{id}`");
        return Err(CliError::new(Exit::NotFound, "not_found", message)
            .with_hint("a gateway remembers unknown outcomes and calls with an idempotency key, for a day unless configured"));
    };
    let call = LedgerRecord(call);
    console.value(&call, || {
        let mut lines = Vec::new();
        for (name, key) in [
            ("Call", "id"),
            ("State", "state"),
            ("Tool", "tool"),
            ("Called by", "principal"),
            ("Tenant", "tenant"),
            ("Begun", "begun"),
            ("Key", "key"),
        ] {
            let value = call.text(key);
            if !value.is_empty() {
                lines.push(format!("{name}: {value}"));
            }
        }
        let why = call.error("message");
        if !why.is_empty() {
            lines.push(format!("Error: {}: {why}", call.error("kind")));
        }
        lines.join("\n")
    })?;
    Ok(Exit::Done)
}
