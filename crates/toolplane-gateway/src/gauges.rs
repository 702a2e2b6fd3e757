//! What the gateway, its servers and its cache know of themselves, read whenever somebody looks at the metrics.

use std::{collections::BTreeSet, sync::Weak};

use toolplane::{
    CacheUse, ConnectionUse, HttpUse, Toolplane,
    core::{SourceState, SourceStatus},
    observe::{Gauge, Metrics},
};

use crate::parked::Parked;

/// A figure: its name, what it is, and what it is of `T`.
type Figure<T> = (&'static str, &'static str, fn(&T) -> f64);

const OF_SOURCES: [Figure<SourceStatus>; 4] = [
    (
        "toolplane_source_up",
        "Whether a source of tools answers: a server, or the configuration itself.",
        |status| f64::from(u8::from(status.state == SourceState::Ready)),
    ),
    (
        "toolplane_source_state",
        "Where a source of tools stands: 0 not started, 1 starting, 2 ready, 3 failed, 4 stopped.",
        |status| status.state.place() as f64,
    ),
    (
        "toolplane_source_tools",
        "How many tools a source offers.",
        |status| status.n_tools as f64,
    ),
    (
        "toolplane_source_restarts",
        "How often a source had to be started again.",
        |status| status.n_restarts as f64,
    ),
];

const OF_CONNECTIONS: [Figure<ConnectionUse>; 4] = [
    (
        "toolplane_requests_running",
        "Requests that wait for an answer on the connection to a server that all share.",
        |connections| connections.n_requests as f64,
    ),
    (
        "toolplane_own_connections",
        "Connections to a server that single clients have for themselves.",
        |connections| connections.n_own as f64,
    ),
    (
        "toolplane_own_connections_used",
        "Connections to a server that single clients have for themselves and use now.",
        |connections| connections.n_own_used as f64,
    ),
    (
        "toolplane_own_connections_limit",
        "How many connections to a server single clients may have for themselves.",
        |connections| connections.max_own as f64,
    ),
];

const OF_CACHE: [Figure<CacheUse>; 2] = [
    (
        "toolplane_cache_bytes",
        "How many bytes the answers take that are kept, about.",
        |cache| cache.n_bytes as f64,
    ),
    (
        "toolplane_cache_fetches_running",
        "Calls that run now for all who want the same.",
        |cache| cache.n_fetches as f64,
    ),
];

const OF_HTTP: [Figure<HttpUse>; 3] = [
    (
        "toolplane_http_requests_total",
        "Requests to HTTP APIs that were begun.",
        |http| http.n_requests as f64,
    ),
    (
        "toolplane_http_connections_total",
        "Connections that were made to HTTP APIs.",
        |http| http.n_opened as f64,
    ),
    (
        "toolplane_http_connections_failed_total",
        "Connections to HTTP APIs that could not be made.",
        |http| http.n_failed as f64,
    ),
];

/// How many tools are named at most that are switched off.
const MAX_NAMES: usize = 1000;

/// Shows what the gateway and its servers know of themselves.
pub(crate) fn add(metrics: &Metrics, plane: &Toolplane, parked: Weak<Parked>) {
    metrics.add_gauge(Gauge {
        name: "toolplane_parked_calls",
        help: "Calls that wait for their clients to come back with what they were asked for.",
        label: None,
        read: Box::new(move || {
            let parked = parked.upgrade();
            vec![(String::new(), parked.map_or(0, |parked| parked.len()) as f64)]
        }),
    });
    for (name, help, figure) in OF_SOURCES {
        metrics.add_gauge(gauge(plane, (name, help, Some("source")), move |plane| {
            shown(plane.sources(), figure)
        }));
    }
    for (name, help, figure) in OF_CONNECTIONS {
        metrics.add_gauge(gauge(plane, (name, help, Some("server")), move |plane| {
            shown(plane.connection_use(), figure)
        }));
    }
    for (name, help, figure) in OF_CACHE {
        metrics.add_gauge(gauge(plane, (name, help, None), move |plane| {
            vec![(String::new(), figure(&plane.cache_use()))]
        }));
    }
    for (name, help, figure) in OF_HTTP {
        metrics.add_gauge(gauge(plane, (name, help, None), move |plane| {
            vec![(String::new(), figure(&plane.http_use()))]
        }));
    }
    let help = "Requests to HTTP APIs that run now.";
    metrics.add_gauge(gauge(
        plane,
        ("toolplane_http_requests_running", help, Some("upstream")),
        |plane| {
            let running = plane.http_use().n_running.into_iter();
            running.map(|(upstream, n)| (upstream, n as f64)).collect()
        },
    ));
    let help =
        "Tools that are switched off, by an operator or since their credentials were refused: 1 for each.";
    metrics.add_gauge(gauge(
        plane,
        ("toolplane_tool_disabled", help, Some("tool")),
        |plane| {
            let refused = plane.disabled().into_iter().map(|(tool, _)| tool);
            let by_hand = plane.switched_off_by_hand().into_iter().map(|(tool, _)| tool);
            let names: BTreeSet<_> = by_hand.chain(refused).take(MAX_NAMES).collect();
            names.iter().map(|tool| (tool.to_string(), 1.0)).collect()
        },
    ));
}

fn gauge(
    plane: &Toolplane,
    (name, help, label): (&'static str, &'static str, Option<&'static str>),
    read: impl Fn(&Toolplane) -> Vec<(String, f64)> + Send + Sync + 'static,
) -> Gauge {
    // Weak, since the toolplane may have the metrics for an observer.
    let weak = plane.downgrade();
    let read = move || weak.upgrade().map(|plane| read(&plane)).unwrap_or_default();
    Gauge {
        name,
        help,
        label,
        read: Box::new(read),
    }
}

fn shown<T>(all: Vec<(String, T)>, figure: fn(&T) -> f64) -> Vec<(String, f64)> {
    let all = all.into_iter();
    all.map(|(name, one)| (name, figure(&one))).collect()
}
