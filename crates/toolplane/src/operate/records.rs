//! Records of servers and tools for operators, as JSON.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value, json};
use tool_core::{LedgerEntry, LedgerState, SourceState, SourceStatus, Tool, rfc3339};
use tool_scan::escape_line;

use crate::Toolplane;

impl Toolplane {
    /// Returns the status of each server as JSON objects, for its operators:
    ///
    /// - `name`, and `state`: `not started`, `starting`, `ready`, `failed` or `stopped`;
    /// - `since`, the time of day at which it entered that state, and `in_state_ms`, the time since then;
    /// - `start`: `lazy` or `eager`; `lists`: `read` in this run, `kept` from an earlier one, or `missing`; `checked_at_start`: whether a health check is part of its start;
    /// - `attempts`: number of attempts of its start so far;
    /// - `retry_in_ms`: time until the next attempt, if it waits;
    /// - `sandbox`: level of the sandbox in which its program was started, `bwrap`, `landlock` or `none`, if its settings name one;
    /// - `n_tools`, `n_restarts`, and `start_ms`: duration of the last start;
    /// - `reason`: why it has failed; `last_error`: the last failure, if it has recovered;
    /// - `detail`: its own description, or the end of its output on stderr;
    /// - `n_withheld`: number of its definitions that are withheld: see [`Toolplane::withheld`];
    /// - `n_warnings`: number of warnings about its lists, including omitted entries, and `first_warning`.
    ///
    /// Secrets are hidden, but internal names are not: not for models.
    #[must_use]
    pub fn server_records(&self) -> Vec<Value> {
        let wall = self.0.clock.wall();
        let servers = self.server_sources().into_iter();
        let mut warnings = self.source_warnings();
        let withheld = self.withheld();
        let records = servers.map(|(name, status)| {
            let mut record = record(&name, &status, wall);
            let warnings = warnings.remove(&name).unwrap_or_default();
            record.insert("n_warnings".to_owned(), warnings.len().into());
            let n_withheld = withheld.iter().filter(|known| *known.key.source == *name).count();
            record.insert("n_withheld".to_owned(), n_withheld.into());
            let first = warnings.into_iter().next();
            record.extend(first.map(|first| ("first_warning".to_owned(), first.into())));
            Value::Object(record)
        });
        records.collect()
    }

    /// Returns the warnings about the lists of each source: omitted entries first, then other warnings.
    fn source_warnings(&self) -> HashMap<String, Vec<String>> {
        let refused = self.refused().into_iter().map(|refused| {
            let kind = refused.feature.as_str();
            let (name, reason) = (escape_line(&refused.name), escape_line(&refused.reason));
            (
                refused.source,
                format!("{kind} `{name}` is not offered: {reason}"),
            )
        });
        let warnings = self.list_warnings().into_iter();
        let warnings = warnings.map(|(source, warning)| (source, warning.to_string()));
        let mut by_source: HashMap<_, Vec<_>> = HashMap::new();
        for (source, warning) in refused.chain(warnings) {
            by_source.entry(source).or_default().push(warning);
        }
        by_source
    }

    /// Returns the status of the server of a tool as a JSON object: `state`, `start`, `lists`, `attempts` and the
    /// further members of [`Toolplane::server_records`] about its start; `None` for a tool without a server.
    #[must_use]
    pub fn server_record_of(&self, tool: &Tool) -> Option<Value> {
        let upstream = tool.state().upstream()?;
        let name = upstream.name();
        let status = self.server_source(name)?;
        let mut record = public_record(name, &status, self.0.clock.wall());
        if let SourceState::Failed(reason) = &status.state {
            record.insert("reason".to_owned(), reason.as_str().into());
        }
        Some(Value::Object(record))
    }

    /// Returns the disabled tools as JSON objects, for their operators: `tool`, `digest` of its definition in
    /// hexadecimal digits, `reason`, `since`, and `by`: `operator` for a tool that an operator disabled, or
    /// `credentials` for one whose credentials were rejected. The latter has `retry_in_ms`: the time until a call may
    /// probe it.
    #[must_use]
    pub fn disabled_records(&self) -> Vec<Value> {
        let now = self.0.clock.now();
        let record = |tool: &str, reason: String, since: SystemTime, by: &str| {
            let digest = self.known_tool(tool).map(|tool| raw_json::hex(tool.digest()));
            json!({"tool": tool, "digest": digest, "reason": reason, "since": rfc3339(since), "by": by})
        };
        let by_hand = self.disabled_by_operator().into_iter();
        let by_hand = by_hand.map(|(tool, off)| record(&tool, off.to_string(), off.since, "operator"));
        let refused = self.disabled().into_iter().map(|(tool, disabled)| {
            let mut record = record(&tool, disabled.reason, disabled.since, "credentials");
            record["retry_in_ms"] = milliseconds(disabled.until.since(now)).into();
            record
        });
        by_hand.chain(refused).collect()
    }

    /// Returns the ledger entry of a call as a JSON object for operators: `id`, `state` (`running`, `open`,
    /// `answered`, `failed` or `unknown`), `tool`, `principal`, `tenant`, `begun`, the `key` if its caller sent one,
    /// and the `error` of the call, with `kind`, `message` and, if the tool may have run, `may_have_run`. Secrets are
    /// hidden; arguments and results are not included.
    #[must_use]
    pub fn ledger_record(&self, entry: &LedgerEntry) -> Value {
        let mut record = json!({
            "id": entry.id.to_string(),
            "state": entry.state.as_str(),
            "tool": *entry.tool,
            "principal": *entry.principal,
            "tenant": *entry.tenant,
            "begun": rfc3339(entry.begun),
        });
        if let Some(key) = &entry.key {
            record["key"] = Value::from(&**key);
        }
        if let LedgerState::Failed(error) | LedgerState::Unknown(error) = &entry.state {
            let message = self.0.redactor.hide_in_text(error.message());
            record["error"] = json!({"kind": error.kind().as_str(), "message": message});
            if error.may_have_run() {
                record["error"]["may_have_run"] = Value::from(true);
            }
        }
        record
    }
}

fn record(name: &str, status: &SourceStatus, wall: SystemTime) -> Map<String, Value> {
    let mut record = public_record(name, status, wall);
    let mut add = |key: &str, value: Value| {
        record.insert(key.to_owned(), value);
    };
    add("n_tools", status.n_tools.into());
    if let Some(took) = status.start_took {
        add("start_ms", milliseconds(took).into());
    }
    match (&status.state, &status.last_error) {
        (SourceState::Failed(reason), _) => add("reason", reason.as_str().into()),
        (_, Some(error)) => add("last_error", error.as_str().into()),
        _ => {}
    }
    if let Some(detail) = &status.detail {
        add("detail", detail.as_str().into());
    }
    record
}

/// Returns the public status of a server, for everyone who may know of it: without addresses and messages.
pub(crate) fn public_record(name: &str, status: &SourceStatus, wall: SystemTime) -> Map<String, Value> {
    let mut record = Map::new();
    let mut add = |key: &str, value: Value| {
        record.insert(key.to_owned(), value);
    };
    add("name", name.into());
    add("state", status.state.as_str().into());
    if let Some(since) = status.in_state {
        add("since", rfc3339(wall - since).into());
        add("in_state_ms", milliseconds(since).into());
    }
    add("start", if status.is_lazy { "lazy" } else { "eager" }.into());
    add("lists", lists(status).into());
    add("checked_at_start", status.is_checked_at_start.into());
    add("attempts", status.n_attempts.into());
    if let Some(level) = &status.sandbox {
        add("sandbox", level.as_str().into());
    }
    if let Some(pause) = status.retry_in {
        add("retry_in_ms", milliseconds(pause).into());
    }
    add("n_restarts", status.n_restarts.into());
    record
}

/// Returns the origin of the lists of a server as a word.
fn lists(status: &SourceStatus) -> &'static str {
    match (status.has_kept_lists, status.has_lists) {
        (true, _) => "kept",
        (false, true) => "read",
        (false, false) => "missing",
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
