//! Gauges of the gateway, its servers and its cache. They are read whenever the metrics page is rendered.

use std::{collections::BTreeSet, sync::Weak};

use toolplane::{
    CacheUse, ConnectionUse, HttpUse, Toolplane,
    core::{SourceState, SourceStatus},
    observe::{Gauge, Metrics},
};

use crate::eras::ParkedCalls;

/// Name, help text and reader of a gauge over values of type `T`.
type GaugeOf<T> = (&'static str, &'static str, fn(&T) -> f64);

const SOURCE_GAUGES: [GaugeOf<SourceStatus>; 4] = [
    (
        "toolplane_source_up",
        "1 if a source of tools is ready, 0 if not. A source is a server or the configuration.",
        |status| f64::from(u8::from(status.state == SourceState::Ready)),
    ),
    (
        "toolplane_source_state",
        "State of a source of tools: 0 not started, 1 starting, 2 ready, 3 failed, 4 stopped.",
        |status| status.state.place() as f64,
    ),
    (
        "toolplane_source_tools",
        "Tools that a source offers.",
        |status| status.n_tools as f64,
    ),
    ("toolplane_source_restarts", "Restarts of a source.", |status| {
        status.n_restarts as f64
    }),
];

const CONNECTION_GAUGES: [GaugeOf<ConnectionUse>; 4] = [
    (
        "toolplane_requests_running",
        "Requests in flight on the shared connection to a server.",
        |connections| connections.n_requests as f64,
    ),
    (
        "toolplane_own_connections",
        "Connections to a server that belong to single clients.",
        |connections| connections.n_own as f64,
    ),
    (
        "toolplane_own_connections_used",
        "Connections to a server that belong to single clients and are in use.",
        |connections| connections.n_own_used as f64,
    ),
    (
        "toolplane_own_connections_limit",
        "Maximum number of connections to a server that belong to single clients.",
        |connections| connections.max_own as f64,
    ),
];

const CACHE_GAUGES: [GaugeOf<CacheUse>; 2] = [
    (
        "toolplane_cache_bytes",
        "Approximate size of the cached results, in bytes.",
        |cache| cache.n_bytes as f64,
    ),
    (
        "toolplane_cache_fetches_running",
        "Single-flight calls that run now.",
        |cache| cache.n_fetches as f64,
    ),
];

const HTTP_GAUGES: [GaugeOf<HttpUse>; 3] = [
    (
        "toolplane_http_requests_total",
        "Requests started to HTTP APIs.",
        |http| http.n_requests as f64,
    ),
    (
        "toolplane_http_connections_total",
        "Connections opened to HTTP APIs.",
        |http| http.n_opened as f64,
    ),
    (
        "toolplane_http_connections_failed_total",
        "Connections to HTTP APIs that failed to open.",
        |http| http.n_failed as f64,
    ),
];

/// Maximum number of disabled tools that the metrics name.
const MAX_DISABLED: usize = 1000;

/// Adds the gauges to the metrics.
pub(crate) fn add_gauges(metrics: &Metrics, plane: &Toolplane, parked: Weak<ParkedCalls>) {
    metrics.add_gauge(Gauge {
        name: "toolplane_parked_calls",
        help: "Parked calls: they wait for an answer of their clients.",
        label: None,
        read: Box::new(move || {
            let parked = parked.upgrade();
            vec![(String::new(), parked.map_or(0, |parked| parked.len()) as f64)]
        }),
    });
    let add = PlaneGauges { metrics, plane };
    for (name, help, read) in SOURCE_GAUGES {
        add.gauge(name, help, Some("source"), move |plane| {
            values(plane.sources(), read)
        });
    }
    for (name, help, read) in CONNECTION_GAUGES {
        add.gauge(name, help, Some("server"), move |plane| {
            values(plane.connection_use(), read)
        });
    }
    for (name, help, read) in CACHE_GAUGES {
        add.gauge(name, help, None, move |plane| {
            vec![(String::new(), read(&plane.cache_use()))]
        });
    }
    for (name, help, read) in HTTP_GAUGES {
        add.gauge(name, help, None, move |plane| {
            vec![(String::new(), read(&plane.http_use()))]
        });
    }
    let (name, help) = (
        "toolplane_http_requests_running",
        "Requests in flight to HTTP APIs.",
    );
    add.gauge(name, help, Some("upstream"), |plane| {
        let running = plane.http_use().n_running.into_iter();
        running.map(|(upstream, n)| (upstream, n as f64)).collect()
    });
    let (name, help) = (
        "toolplane_tool_disabled",
        "1 for each tool that is disabled, by an operator or because its credentials were refused.",
    );
    add.gauge(name, help, Some("tool"), disabled_tools);
}

fn disabled_tools(plane: &Toolplane) -> Vec<(String, f64)> {
    let refused = plane.disabled().into_iter().map(|(tool, _)| tool);
    let by_hand = plane.disabled_by_operator().into_iter().map(|(tool, _)| tool);
    let names: BTreeSet<_> = by_hand.chain(refused).take(MAX_DISABLED).collect();
    names.iter().map(|tool| (tool.to_string(), 1.0)).collect()
}

/// Adds gauges that read a toolplane.
struct PlaneGauges<'a> {
    metrics: &'a Metrics,
    plane: &'a Toolplane,
}

impl PlaneGauges<'_> {
    fn gauge(
        &self,
        name: &'static str,
        help: &'static str,
        label: Option<&'static str>,
        read: impl Fn(&Toolplane) -> Vec<(String, f64)> + Send + Sync + 'static,
    ) {
        // Weak, since the metrics may be an observer that the toolplane owns.
        let weak = self.plane.downgrade();
        let read = move || weak.upgrade().map(|plane| read(&plane)).unwrap_or_default();
        self.metrics.add_gauge(Gauge {
            name,
            help,
            label,
            read: Box::new(read),
        });
    }
}

fn values<T>(all: Vec<(String, T)>, read: fn(&T) -> f64) -> Vec<(String, f64)> {
    let all = all.into_iter();
    all.map(|(name, one)| (name, read(&one))).collect()
}
