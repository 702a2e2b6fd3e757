use std::{
    borrow::Cow,
    io::{self, Write},
    sync::LazyLock,
};

use tool_scan::escape_json;
use toolplane::policy::Redactor;
use tracing::{Level, Metadata};
use tracing_subscriber::{
    EnvFilter, filter::filter_fn, fmt, fmt::MakeWriter, layer::SubscriberExt, util::SubscriberInitExt,
};

use crate::{
    command::{Format, LogFormat, Options},
    config::variable,
    failure::Failure,
    output::Console,
    telemetry::ExportLayer,
    text,
};

/// The secrets that were used so far: no log tells them, whoever writes it.
static SECRETS: LazyLock<Redactor> = LazyLock::new(Redactor::default);

/// What is to know every secret that is used.
pub(crate) fn redactor() -> Redactor {
    SECRETS.clone()
}

/// A text for people.
pub(crate) fn without_secrets(text: &str) -> Cow<'_, str> {
    SECRETS.hide_known(text)
}

/// The standard error, without secrets and hidden characters: each event is one line.
struct Stderr {
    is_json: bool,
    /// Hides credentials as well that nobody has named: the event may hold words of others.
    hides_credentials: bool,
}

impl Write for Stderr {
    /// Writes a whole event, which is how they come.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = hidden(&text, self.hides_credentials);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = if self.is_json {
            escape_json(line).into_owned()
        } else {
            text::terminal(line).replace('\n', "\\n")
        };
        io::stderr().write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Makes the [`Stderr`] of each event.
struct Lines {
    is_json: bool,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Stderr;

    fn make_writer(&'a self) -> Stderr {
        Stderr {
            is_json: self.is_json,
            hides_credentials: false,
        }
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> Stderr {
        Stderr {
            is_json: self.is_json,
            hides_credentials: *event.level() > Level::INFO && !is_masked(event.target()),
        }
    }
}

/// Returns `true` if lines of this target have masked their arguments already, and say so in words that must stay.
fn is_masked(target: &str) -> bool {
    ["tool_observe", "tool_exec_http"]
        .iter()
        .any(|own| target.starts_with(own))
}

fn hidden(text: &str, hides_credentials: bool) -> Cow<'_, str> {
    match hides_credentials {
        true => SECRETS.text(text),
        false => SECRETS.hide_known(text),
    }
}

/// Hides secrets in a part of a log line, as they are hidden in the lines on stderr. `is_verbose` is for levels below
/// `info`.
pub(crate) fn line_without_secrets<'a>(text: &'a str, target: &str, is_verbose: bool) -> Cow<'a, str> {
    hidden(text, is_verbose && !is_masked(target))
}

/// Sends logs to stderr, which is never protocol or data.
pub(crate) fn start(options: &Options, default_level: &str, console: Console) -> Result<(), Failure> {
    let filter = filter(options, default_level)?;
    let json = match options.log_format {
        LogFormat::Auto => options.output == Format::Json,
        LogFormat::Pretty => false,
        LogFormat::Json => true,
    };
    let builder = fmt()
        .with_env_filter(filter)
        .with_writer(Lines { is_json: json })
        .with_ansi(console.stderr_color());
    let started = if json {
        let lines = builder.json().flatten_event(true).finish();
        lines.with(ExportLayer).with(filter_fn(is_told)).try_init()
    } else {
        let lines = builder.compact().finish();
        lines.with(ExportLayer).with(filter_fn(is_told)).try_init()
    };
    started.map_err(|error| Failure::failed("logging could not be started").with_source(&error))
}

/// Returns `false` for what the libraries of OpenTelemetry say of themselves, but for telemetry that is lost: failures of
/// exports are told once, by the driver of the exports.
fn is_told(metadata: &Metadata<'_>) -> bool {
    let is_of_export = metadata.target().starts_with("opentelemetry");
    let is_lost = ["DroppingStarted", "Dropped", "PartialSuccess"]
        .iter()
        .any(|end| metadata.name().ends_with(end));
    !is_of_export || is_lost
}

fn filter(options: &Options, default_level: &str) -> Result<EnvFilter, Failure> {
    let (directives, from) = match (&options.log, options.verbose, options.quiet) {
        (Some(directives), _, _) => (directives.clone(), "--log"),
        (None, _, true) => ("error".to_owned(), "--quiet"),
        (None, 1, _) => ("info".to_owned(), "-v"),
        (None, 2, _) => ("debug".to_owned(), "-vv"),
        (None, 3.., _) => ("trace".to_owned(), "-vvv"),
        (None, 0, false) => ["TOOLPLANE_LOG", "RUST_LOG"]
            .into_iter()
            .find_map(|name| Some((variable(name)?, name)))
            .unwrap_or_else(|| (default_level.to_owned(), "default")),
    };
    EnvFilter::builder().parse(&directives).map_err(|error| {
        Failure::usage(format!("`{directives}` of `{from}` is no log level"))
            .with_source(&error)
            .with_hint("write `error`, `warn`, `info`, `debug`, `trace` or `off`, or `target=level` with commas between")
    })
}
