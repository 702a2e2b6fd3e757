//! Health as data for edges.

use std::collections::{HashMap, HashSet};

use raw_json::RawJson;
use serde_json::{Map, Value, json};
use tool_core::{AlertSubject, Caller, SourceStatus};
use tool_observe::health_record;

use crate::{Toolplane, operate::records::public_record};

impl Toolplane {
    /// Returns the health of everything known that this caller may see, as one JSON object:
    ///
    /// - `status`: `ready` or `not_ready`, and `reasons` for the latter;
    /// - `window_s`: length of the window of attempts, in seconds;
    /// - `servers`: each server with its `name`, its `state`, whether it is started lazily (`start`), the origin of its `lists`,
    ///   whether it is `checked_at_start`, the time in its state (`since`, `in_state_ms`), the number of `attempts` of its
    ///   start, `retry_in_ms` while it backs off, `n_restarts`, `n_warnings` about its lists with the kind of the first
    ///   (`first_warning`), and its figures; then the hosts of HTTP tools;
    /// - `tools`: each tool that was called or checked, with its `name`, its `server`, the server's `state`, and its figures;
    /// - `chaos`, with its `seed`, while faults are injected on purpose.
    ///
    /// The figures are those of [`health_record`].
    #[must_use]
    pub fn health_page(&self, caller: &Caller) -> RawJson {
        // Read once, so that servers and readiness agree.
        let sources = self.server_sources();
        let readiness = self.readiness_by(&sources);
        let mut page = json!({
            "status": if readiness.is_ready() { "ready" } else { "not_ready" },
            "reasons": readiness.reasons,
            "window_s": self.health().window().as_secs(),
            "servers": servers(self, &sources),
            "tools": tools(self, caller, &sources),
        });
        if let (Some(seed), Value::Object(page)) = (readiness.chaos, &mut page) {
            page.insert("chaos".to_owned(), json!({"seed": seed}));
        }
        RawJson::from(page)
    }
}

/// Returns the rows of servers. `sources` are the servers.
fn servers(plane: &Toolplane, sources: &[(String, SourceStatus)]) -> Vec<Value> {
    let (book, wall) = (plane.health(), plane.0.clock.wall());
    let warnings = plane.list_warnings();
    let of_servers = sources.iter().map(|(name, status)| {
        let report = book.report(&AlertSubject::Upstream(name.as_str().into()));
        let figures = report.as_ref().map(health_record);
        let figures = figures.unwrap_or_else(|| json!({"status": "unknown", "calls": 0, "failures": 0}));
        let mut record = public_record(name, status, wall);
        // The texts of warnings are the server's own and only for operators.
        let mut kinds = warnings
            .iter()
            .filter(|(source, _)| source == name)
            .map(|(_, warning)| warning.kind);
        if let Some(first) = kinds.next() {
            record.insert("n_warnings".to_owned(), (1 + kinds.count()).into());
            record.insert("first_warning".to_owned(), first.into());
        }
        with(record, figures)
    });
    let is_server = |name: &str| sources.iter().any(|(server, _)| server == name);
    let snapshot = plane.0.registry.snapshot();
    let upstreams = snapshot.tools().iter().filter_map(|tool| tool.state().upstream());
    let upstreams: HashSet<_> = upstreams.map(|upstream| upstream.name()).collect();
    let hosts = book
        .reports()
        .into_iter()
        .filter_map(|(subject, _, report)| match subject {
            AlertSubject::Upstream(name) if upstreams.contains(&name) && !is_server(&name) => {
                Some(row(&name, None, health_record(&report)))
            }
            _ => None,
        });
    of_servers.chain(hosts).collect()
}

/// Returns the rows of tools. `sources` are the servers.
fn tools(plane: &Toolplane, caller: &Caller, sources: &[(String, SourceStatus)]) -> Vec<Value> {
    let view = plane.cached_view(caller);
    let seen: HashSet<_> = view.tools().iter().map(|tool| tool.name()).collect();
    let reports = plane.health().reports().into_iter();
    let states: HashMap<_, _> = sources
        .iter()
        .map(|(name, status)| (name.as_str(), status.state.as_str()))
        .collect();
    reports
        .filter_map(|(subject, upstream, report)| match subject {
            AlertSubject::Tool(name) if seen.contains(&name) => {
                let mut figures = health_record(&report);
                if let Some(state) = upstream.as_deref().and_then(|server| states.get(server)) {
                    figures["state"] = (*state).into();
                }
                Some(row(&name, upstream.as_deref(), figures))
            }
            _ => None,
        })
        .collect()
}

/// Returns figures after the name of their subject and of its server.
fn row(name: &str, server: Option<&str>, figures: Value) -> Value {
    let mut row = Map::new();
    row.insert("name".to_owned(), name.into());
    row.extend(server.map(|server| ("server".to_owned(), server.into())));
    with(row, figures)
}

fn with(mut row: Map<String, Value>, figures: Value) -> Value {
    if let Value::Object(figures) = figures {
        row.extend(figures);
    }
    Value::Object(row)
}
