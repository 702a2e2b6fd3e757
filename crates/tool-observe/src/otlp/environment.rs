use std::{fmt, time::Duration};

use tool_core::Secret;

use super::OtlpSettings;
use crate::Sampler;

/// What the environment variables of OpenTelemetry ask for.
#[derive(Debug)]
#[non_exhaustive]
pub struct OtlpEnvironment {
    /// How to export; nothing unless an endpoint is set and nothing turns the export off.
    pub settings: Option<OtlpSettings>,
    /// Which traces to record.
    pub sampler: Sampler,
    /// Variables that are not understood or not supported, and what is done instead; only what matters to whoever
    /// wants to export.
    pub problems: Vec<String>,
}

/// A list of `key=value`.
type Pairs = Vec<(String, String)>;

impl OtlpEnvironment {
    /// Reads the variables by this: a library reads no environment.
    ///
    /// These count: `OTEL_SDK_DISABLED`, `OTEL_TRACES_EXPORTER`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`,
    /// `OTEL_TRACES_SAMPLER` and its `_ARG`, `OTEL_EXPORTER_OTLP_ENDPOINT`, `_HEADERS`, `_TIMEOUT`, `_COMPRESSION` and
    /// `_PROTOCOL`, each also with `TRACES_` in it, and `OTEL_BSP_SCHEDULE_DELAY`, `_MAX_QUEUE_SIZE`,
    /// `_MAX_EXPORT_BATCH_SIZE` and `_EXPORT_TIMEOUT`.
    #[must_use]
    pub fn read(version: &str, variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut reader = Reader {
            variable: &|name| {
                variable(name)
                    .map(|value| value.trim().to_owned())
                    .filter(|value| !value.is_empty())
            },
            problems: Vec::new(),
        };
        let settings = reader.settings(version);
        let n_problems = reader.problems.len();
        let sampler = reader.sampler();
        if settings.is_none() {
            // Whoever exports nothing need not hear of samplers.
            reader.problems.truncate(n_problems);
        }
        Self {
            settings,
            sampler,
            problems: reader.problems,
        }
    }
}

struct Reader<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn settings(&mut self, version: &str) -> Option<OtlpSettings> {
        let endpoint = self.given_endpoint()?;
        if self.is_off() {
            return None;
        }
        let endpoint = self.usable(endpoint)?;
        self.unsupported();
        let mut settings = OtlpSettings::new(endpoint);
        if let Some(protocol) = self
            .of_traces("PROTOCOL")
            .filter(|protocol| protocol != "http/protobuf")
        {
            self.problem(format_args!(
                "`OTEL_EXPORTER_OTLP_PROTOCOL={protocol}` is not known here: traces are sent as `http/protobuf`"
            ));
        }
        match self.of_traces("COMPRESSION").as_deref() {
            None | Some("none") => {}
            Some("gzip") => settings.gzip = true,
            Some(other) => self.problem(format_args!(
                "`OTEL_EXPORTER_OTLP_COMPRESSION={other}` is not known here: nothing is compressed"
            )),
        }
        if let Some(headers) = self.of_traces("HEADERS") {
            let pairs = self.pairs("OTEL_EXPORTER_OTLP_HEADERS", &headers);
            let secret = |(name, value): (String, String)| (name, Secret::new(value));
            settings.headers = pairs.into_iter().map(secret).collect();
        }
        // The one that says most is read last.
        for name in [
            "OTEL_BSP_EXPORT_TIMEOUT",
            "OTEL_EXPORTER_OTLP_TIMEOUT",
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
        ] {
            if let Some(milliseconds) = self.number(name) {
                settings.timeout = Duration::from_millis(milliseconds);
            }
        }
        if let Some(milliseconds) = self.number("OTEL_BSP_SCHEDULE_DELAY") {
            settings.delay = Duration::from_millis(milliseconds);
        }
        for (name, size) in [
            ("OTEL_BSP_MAX_QUEUE_SIZE", &mut settings.max_queue),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", &mut settings.max_batch),
        ] {
            if let Some(number) = self.number(name) {
                *size = usize::try_from(number).unwrap_or(usize::MAX).min(MAX_SPANS);
            }
        }
        settings.resource = self.resource(version);
        Some(settings)
    }

    /// Where traces go: a collector's own address for them, or what is under its address for everything.
    fn given_endpoint(&self) -> Option<String> {
        let own = (self.variable)("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        own.or_else(|| {
            let all = (self.variable)("OTEL_EXPORTER_OTLP_ENDPOINT")?;
            Some(format!("{}/v1/traces", all.trim_end_matches('/')))
        })
    }

    fn usable(&mut self, endpoint: String) -> Option<String> {
        if endpoint.starts_with("http://") || endpoint.starts_with("https://") {
            return Some(endpoint);
        }
        // Not the value, which may hold a password.
        self.problem(format_args!(
            "the endpoint of OpenTelemetry is no `http` or `https` URL: nothing is exported"
        ));
        None
    }

    /// Tells of variables that are set and change nothing, though they are meant to.
    fn unsupported(&mut self) {
        for name in ["CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE"] {
            for prefix in ["OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"] {
                if (self.variable)(&format!("{prefix}{name}")).is_some() {
                    self.problem(format_args!(
                        "`{prefix}{name}` is not supported: the certificates of the system count, and the client has none"
                    ));
                }
            }
        }
        let Some(names) = (self.variable)("OTEL_PROPAGATORS") else {
            return;
        };
        let mut known = names.split(',').map(str::trim);
        let is_ours = |name: &str| matches!(name, "tracecontext" | "baggage");
        if !known.clone().any(|name| name == "tracecontext") || !known.all(is_ours) {
            self.problem(format_args!(
                "`OTEL_PROPAGATORS={names}` is not known here: traces go on by `tracecontext` alone"
            ));
        }
    }

    fn is_off(&mut self) -> bool {
        if (self.variable)("OTEL_SDK_DISABLED").is_some_and(|word| word.eq_ignore_ascii_case("true")) {
            return true;
        }
        match (self.variable)("OTEL_TRACES_EXPORTER") {
            None => false,
            Some(names) if names.split(',').any(|name| name.trim() == "otlp") => false,
            Some(names) => {
                if names != "none" {
                    self.problem(format_args!(
                        "`OTEL_TRACES_EXPORTER={names}` is not known here: nothing is exported"
                    ));
                }
                true
            }
        }
    }

    fn sampler(&mut self) -> Sampler {
        let Some(name) = (self.variable)("OTEL_TRACES_SAMPLER") else {
            return Sampler::DEFAULT;
        };
        let (follows_caller, root) = match name.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, &*name),
        };
        let ratio = match root {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => self.ratio(),
            _ => {
                self.problem(format_args!(
                    "`OTEL_TRACES_SAMPLER={name}` is not known here: `parentbased_always_on` is taken"
                ));
                return Sampler::DEFAULT;
            }
        };
        Sampler {
            follows_caller,
            ratio,
        }
    }

    fn ratio(&mut self) -> f64 {
        let Some(text) = (self.variable)("OTEL_TRACES_SAMPLER_ARG") else {
            return 1.0;
        };
        match text.parse() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
            _ => {
                self.problem(format_args!(
                    "`OTEL_TRACES_SAMPLER_ARG={text}` is no number from 0 to 1: 1 is taken"
                ));
                1.0
            }
        }
    }

    fn resource(&mut self, version: &str) -> Pairs {
        let given = (self.variable)("OTEL_RESOURCE_ATTRIBUTES");
        let mut pairs = given.map_or(Vec::new(), |text| self.pairs("OTEL_RESOURCE_ATTRIBUTES", &text));
        let name = (self.variable)("OTEL_SERVICE_NAME");
        if let Some(name) = name {
            pairs.retain(|(key, _)| key != "service.name");
            pairs.push(("service.name".to_owned(), name));
        }
        for (key, value) in [("service.name", "toolplane"), ("service.version", version)] {
            if !pairs.iter().any(|(known, _)| known == key) {
                pairs.push((key.to_owned(), value.to_owned()));
            }
        }
        pairs
    }

    /// The variable of the exporter of traces, or that of all exporters.
    fn of_traces(&self, name: &str) -> Option<String> {
        let own = (self.variable)(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"));
        own.or_else(|| (self.variable)(&format!("OTEL_EXPORTER_OTLP_{name}")))
    }

    fn number(&mut self, name: &str) -> Option<u64> {
        let text = (self.variable)(name)?;
        match text.parse() {
            Ok(number) if number > 0 => Some(number),
            _ => {
                self.problem(format_args!(
                    "`{name}={text}` is no number above 0: the default is taken"
                ));
                None
            }
        }
    }

    /// Reads `key=value,key=value`, with percent signs in the values.
    fn pairs(&mut self, name: &str, text: &str) -> Pairs {
        let mut pairs = Vec::new();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            match part.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    pairs.push((key.trim().to_owned(), decoded(value.trim())));
                }
                // Not its text, which may be a secret.
                _ => self.problem(format_args!(
                    "`{name}` has a part without `key=`, which is left out"
                )),
            }
        }
        pairs
    }

    fn problem(&mut self, problem: fmt::Arguments<'_>) {
        self.problems.push(problem.to_string());
    }
}

/// More spans than this are not kept, whatever is asked for.
const MAX_SPANS: usize = 1 << 20;

/// A text without its percent signs; as it is if it is none then.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let digits = more.get(..2).filter(|_| *first == b'%');
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        rest = match code {
            Some(byte) => {
                bytes.push(byte);
                &more[2..]
            }
            None => {
                bytes.push(*first);
                more
            }
        };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
