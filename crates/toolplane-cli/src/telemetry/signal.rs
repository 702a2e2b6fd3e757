use std::time::Duration;

/// A kind of telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
    Logs,
}

/// The wire protocol of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Http,
    Grpc,
}

/// The export of one signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Export {
    pub(super) signal: Signal,
    pub(super) transport: Transport,
    /// Scheme and host of the collector. The rest of its URL may hold a password or a token.
    pub(super) collector: String,
    pub(super) has_tls: bool,
    /// `true` if the exporter compresses its requests.
    pub(super) is_compressed: bool,
    /// Maximum time for one export, retries included.
    pub(super) timeout: Duration,
}

impl Signal {
    pub(super) const ALL: [Self; 3] = [Self::Traces, Self::Metrics, Self::Logs];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }

    /// Returns the signal's word in names of variables.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
            Self::Logs => "LOGS",
        }
    }

    /// Returns the variables that limit the time of an export, the most specific last.
    pub(super) fn timeouts(self) -> [String; 3] {
        let own = match self {
            Self::Traces => "OTEL_BSP_EXPORT_TIMEOUT",
            Self::Metrics => "OTEL_METRIC_EXPORT_TIMEOUT",
            Self::Logs => "OTEL_BLRP_EXPORT_TIMEOUT",
        };
        let word = self.word();
        [
            own.to_owned(),
            "OTEL_EXPORTER_OTLP_TIMEOUT".to_owned(),
            format!("OTEL_EXPORTER_OTLP_{word}_TIMEOUT"),
        ]
    }

    /// Returns the names of the signal's variable, the one of all signals last.
    pub(super) fn names(self, part: &str) -> [String; 2] {
        [
            format!("OTEL_EXPORTER_OTLP_{}_{part}", self.word()),
            format!("OTEL_EXPORTER_OTLP_{part}"),
        ]
    }
}

/// Returns scheme and host of a URL.
pub(super) fn without_secrets(endpoint: &str) -> String {
    let (scheme, rest) = match endpoint.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), endpoint),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}{host}")
}
