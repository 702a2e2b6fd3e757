//! `toolplane ledger`: calls with unknown outcome or with an idempotency key, of running gateways or in the store of the
//! configuration.

use std::collections::HashSet;

use raw_json::RawJson;
use serde::Serialize;
use toolplane::{core::CorrelationId, policy::harmless_text};
use toolplane_gateway::OperatorClient;

use super::offline::OfflineStore;
use crate::{
    command::{Format, Ledger, Options},
    error::CliError,
    exit::Exit,
    gateways,
    output::{Console, text},
    process::runtime::block_on,
};

/// Maximum number of calls of the store in a list, as of a gateway.
const MAX_LISTED: usize = 1000;

pub(crate) fn run(options: &Options, ledger: &Ledger, console: Console) -> Result<Exit, CliError> {
    block_on(async {
        match ledger {
            Ledger::Ls => list(options, console).await,
            Ledger::Show { id } => show(options, id, console).await,
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

async fn list(options: &Options, console: Console) -> Result<Exit, CliError> {
    let answers = gateways::ask_running(console, OperatorClient::unknown_outcomes).await;
    let store = OfflineStore::open(options, answers.is_some(), console).await?;
    if answers.is_none() && store.is_none() {
        return Err(gateways::none_reached());
    }
    let mut calls: Vec<RawJson> = answers
        .into_iter()
        .flatten()
        .flat_map(|(_, calls)| calls)
        .collect();
    if let Some(store) = store {
        let plane = store.plane()?;
        let unknown = store.store.ledger.unknown(MAX_LISTED).await;
        calls.extend(unknown.iter().map(|entry| plane.ledger_record(entry).into()));
    }
    // Gateways on one store have the same calls.
    let mut ids = HashSet::new();
    let calls = calls
        .into_iter()
        .map(LedgerRecord)
        .filter(|call| ids.insert(call.text("id")));
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

async fn show(options: &Options, id: &str, console: Console) -> Result<Exit, CliError> {
    let id: CorrelationId = id.parse().map_err(|_| {
        let message = format!("invalid call id `{}`", text::line(id));
        CliError::usage(message)
            .with_hint("it is 32 hexadecimal digits: `ledger_id` in the error, `correlation_id` in the logs")
    })?;
    let question = async |client: OperatorClient| client.ledger_entry(id).await;
    let answers = gateways::ask_running(console, question).await;
    let store = OfflineStore::open(options, answers.is_some(), console).await?;
    if answers.is_none() && store.is_none() {
        return Err(gateways::none_reached());
    }
    let mut call = answers.into_iter().flatten().map(|(_, call)| call).next();
    if let (None, Some(store)) = (&call, &store) {
        let plane = store.plane()?;
        let found = store.store.ledger.find(id).await;
        call = found.map(|entry| plane.ledger_record(&entry).into());
    }
    let Some(call) = call else {
        let who = match store {
            Some(_) => "neither a gateway that runs here nor the store of the configuration remembers",
            None => "no gateway that runs here remembers",
        };
        let message = format!("{who} a call `{id}`");
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
