//! Reads the signals that the environment asks to export, and reports values that the libraries would ignore silently.
//!
//! The libraries read the variables themselves. Their warnings do not reach an operator, and they accept some senseless
//! numbers; this module handles both.

use std::{fmt, time::Duration};

use super::signal::{Export, Signal, Transport, without_secrets};

/// Replacements for values of the environment that the SDK would accept although they make no sense.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Corrections {
    /// Sizes of the queues, in spans and log records.
    pub(super) span_queue: Option<usize>,
    pub(super) log_queue: Option<usize>,
    pub(super) span_batch: Option<usize>,
    pub(super) log_batch: Option<usize>,
    pub(super) span_delay: Option<Duration>,
    pub(super) log_delay: Option<Duration>,
    pub(super) metric_interval: Option<Duration>,
    /// Set if the argument of the sampler is no ratio: all traces that begin here are sampled.
    pub(super) sample_all: Option<FollowsCallers>,
}

/// Sampling decision of callers: `true` if it applies to their traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FollowsCallers(pub(super) bool);

/// The exports that the variables of OpenTelemetry ask for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ExportSettings {
    pub(super) exports: Vec<Export>,
    pub(super) corrections: Corrections,
    /// Unknown or unsupported variables, and what is done instead. Empty if nothing is exported for other reasons.
    pub(super) problems: Vec<String>,
}

/// Maximum size of a queue, in items: the SDK allocates the whole queue at the start.
const MAX_QUEUE: u64 = 1 << 20;
const DEFAULT_QUEUE: usize = 2048;
const DEFAULT_BATCH: usize = 512;

impl ExportSettings {
    /// Reads the variables through `variable`.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut reader = VariableReader {
            variable: &|name| {
                variable(name)
                    .map(|value| value.trim().to_owned())
                    .filter(|value| !value.is_empty())
            },
            problems: Vec::new(),
        };
        let exports = reader.exports();
        let corrections = if exports.is_empty() {
            Corrections::default()
        } else {
            reader.check_shared();
            reader.corrections(&exports)
        };
        Self {
            exports,
            corrections,
            problems: reader.problems,
        }
    }
}

struct VariableReader<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
}

impl VariableReader<'_> {
    fn exports(&mut self) -> Vec<Export> {
        let is_disabled = (self.variable)("OTEL_SDK_DISABLED");
        if is_disabled.is_some_and(|word| word.eq_ignore_ascii_case("true")) {
            return Vec::new();
        }
        let exports = Signal::ALL.map(|signal| self.export(signal));
        exports.into_iter().flatten().collect()
    }

    fn export(&mut self, signal: Signal) -> Option<Export> {
        let (name, endpoint) = self.signal_variable(signal, "ENDPOINT")?;
        if self.is_off(signal) {
            return None;
        }
        let transport = self.transport(signal);
        let is_insecure = self
            .signal_variable(signal, "INSECURE")
            .is_some_and(|(_, word)| word.eq_ignore_ascii_case("true"));
        let has_tls = match endpoint.split_once("://") {
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => false,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => true,
            // gRPC also accepts targets without a scheme.
            None if transport == Transport::Grpc && !endpoint.contains('@') => !is_insecure,
            _ => {
                // Without the value, which may hold a password.
                self.problem(format_args!(
                    "`{name}` is not an `http` or `https` URL: nothing is exported to it"
                ));
                return None;
            }
        };
        let is_compressed = self.compresses(signal);
        if let Some((name, headers)) = self.signal_variable(signal, "HEADERS") {
            self.check_pairs(&name, &headers);
        }
        for part in ["CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE"] {
            if let Some((name, _)) = self.signal_variable(signal, part) {
                self.problem(format_args!(
                    "`{name}` is not supported: the certificates of the system count, and the client has none"
                ));
            }
        }
        let mut timeout = Duration::from_secs(10);
        for name in signal.timeouts() {
            if let Some(milliseconds) = self.number(&name).valid() {
                timeout = Duration::from_millis(milliseconds);
            }
        }
        Some(Export {
            signal,
            transport,
            collector: without_secrets(&endpoint),
            has_tls,
            is_compressed,
            timeout,
        })
    }

    /// Returns `true` if the signal's own variable disables it: by `none`, or by unknown exporters.
    fn is_off(&mut self, signal: Signal) -> bool {
        let name = format!("OTEL_{}_EXPORTER", signal.word());
        let Some(names) = (self.variable)(&name) else {
            return false;
        };
        if names.split(',').any(|name| name.trim() == "otlp") {
            return false;
        }
        if names != "none" {
            let signal = signal.as_str();
            self.problem(format_args!(
                "`{name}={names}` is not supported: no {signal} are exported"
            ));
        }
        true
    }

    /// Returns the first known protocol, as the library does.
    fn transport(&mut self, signal: Signal) -> Transport {
        for name in signal.names("PROTOCOL") {
            match (self.variable)(&name).map(|word| (word.to_ascii_lowercase(), word)) {
                None => {}
                Some((known, _)) if known == "http/protobuf" => return Transport::Http,
                Some((known, _)) if known == "grpc" => return Transport::Grpc,
                Some((_, other)) => self.problem(format_args!(
                    "`{name}={other}` is not supported: write `http/protobuf` or `grpc`"
                )),
            }
        }
        Transport::Http
    }

    /// Returns `true` if the first known word asks for compression, as the library does.
    fn compresses(&mut self, signal: Signal) -> bool {
        for name in signal.names("COMPRESSION") {
            match (self.variable)(&name) {
                Some(word) if word.eq_ignore_ascii_case("gzip") => return true,
                Some(word) if word.eq_ignore_ascii_case("none") => return false,
                Some(other) => self.problem(format_args!(
                    "`{name}={other}` is not supported: write `gzip` or `none`"
                )),
                None => {}
            }
        }
        false
    }

    /// Checks the variables that apply to all signals.
    fn check_shared(&mut self) {
        if let Some(text) = (self.variable)("OTEL_RESOURCE_ATTRIBUTES") {
            self.check_pairs("OTEL_RESOURCE_ATTRIBUTES", &text);
        }
        let Some(names) = (self.variable)("OTEL_PROPAGATORS") else {
            return;
        };
        let mut known = names.split(',').map(str::trim);
        let is_ours = |name: &str| matches!(name, "tracecontext" | "baggage");
        if !known.clone().any(|name| name == "tracecontext") || !known.all(is_ours) {
            self.problem(format_args!(
                "`OTEL_PROPAGATORS={names}` is not supported: traces are propagated by `tracecontext` only"
            ));
        }
    }

    fn corrections(&mut self, exports: &[Export]) -> Corrections {
        let mut corrections = Corrections::default();
        let milliseconds = |default| move |_| Duration::from_millis(default);
        for export in exports {
            match export.signal {
                Signal::Traces => {
                    corrections.span_queue = self.queue("OTEL_BSP_MAX_QUEUE_SIZE");
                    corrections.span_batch = self
                        .number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE")
                        .invalid(|_| DEFAULT_BATCH);
                    corrections.span_delay =
                        self.number("OTEL_BSP_SCHEDULE_DELAY").invalid(milliseconds(5000));
                    corrections.sample_all = self.invalid_sampler();
                }
                Signal::Logs => {
                    corrections.log_queue = self.queue("OTEL_BLRP_MAX_QUEUE_SIZE");
                    corrections.log_batch = self
                        .number("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE")
                        .invalid(|_| DEFAULT_BATCH);
                    corrections.log_delay = self
                        .number("OTEL_BLRP_SCHEDULE_DELAY")
                        .invalid(milliseconds(1000));
                }
                Signal::Metrics => {
                    corrections.metric_interval = self
                        .number("OTEL_METRIC_EXPORT_INTERVAL")
                        .invalid(milliseconds(60_000));
                }
            }
        }
        corrections
    }

    /// Returns the size of a queue if the SDK must not use the variable's value.
    fn queue(&mut self, name: &str) -> Option<usize> {
        match self.number(name) {
            NumberVariable::Valid(size) => (size > MAX_QUEUE).then_some(MAX_QUEUE as usize),
            other => other.invalid(|_| DEFAULT_QUEUE),
        }
    }

    /// Checks the sampler. Returns its kind if its argument is no ratio.
    fn invalid_sampler(&mut self) -> Option<FollowsCallers> {
        let name = (self.variable)("OTEL_TRACES_SAMPLER")?;
        let root = name.strip_prefix("parentbased_");
        match root.unwrap_or(&name) {
            "always_on" | "always_off" => return None,
            "traceidratio" => {}
            _ => {
                self.problem(format_args!(
                    "`OTEL_TRACES_SAMPLER={name}` is not supported: `parentbased_always_on` is used"
                ));
                return None;
            }
        }
        let text = (self.variable)("OTEL_TRACES_SAMPLER_ARG")?;
        if text.parse().is_ok_and(|ratio: f64| (0.0..=1.0).contains(&ratio)) {
            return None;
        }
        self.problem(format_args!(
            "`OTEL_TRACES_SAMPLER_ARG={text}` is not a number from 0 to 1: 1 is used"
        ));
        Some(FollowsCallers(root.is_some()))
    }

    fn number(&mut self, name: &str) -> NumberVariable {
        let Some(text) = (self.variable)(name) else {
            return NumberVariable::Unset;
        };
        match text.parse() {
            Ok(number) if number > 0 => NumberVariable::Valid(number),
            _ => {
                self.problem(format_args!(
                    "`{name}={text}` is not a number above 0: the default is used"
                ));
                NumberVariable::Invalid
            }
        }
    }

    /// Checks a list of `key=value`.
    fn check_pairs(&mut self, name: &str, text: &str) {
        let mut parts = text.split(',').filter(|part| !part.trim().is_empty());
        let has_key = |part: &str| {
            part.split_once('=')
                .is_some_and(|(key, _)| !key.trim().is_empty())
        };
        if !parts.all(has_key) {
            // Without the text, which may be a secret.
            self.problem(format_args!(
                "`{name}` has a part without `key=`, which is left out"
            ));
        }
    }

    /// Returns the variable of a signal, else that of all signals, with its name.
    fn signal_variable(&self, signal: Signal, part: &str) -> Option<(String, String)> {
        signal
            .names(part)
            .into_iter()
            .find_map(|name| Some(((self.variable)(&name)?, name)))
            .map(|(value, name)| (name, value))
    }

    /// Adds a problem once: signals share variables.
    fn problem(&mut self, problem: fmt::Arguments<'_>) {
        let problem = problem.to_string();
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// Value of a variable that must be a positive number.
enum NumberVariable {
    Unset,
    Valid(u64),
    Invalid,
}

impl NumberVariable {
    fn valid(self) -> Option<u64> {
        match self {
            Self::Valid(number) => Some(number),
            Self::Unset | Self::Invalid => None,
        }
    }

    /// Returns the default if the value is invalid.
    fn invalid<T>(self, default: impl Fn(()) -> T) -> Option<T> {
        matches!(self, Self::Invalid).then(|| default(()))
    }
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
