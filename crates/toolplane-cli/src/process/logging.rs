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
    error::CliError,
    output::{Console, text},
    telemetry::ExportLayer,
};

/// All secrets used so far, which logs hide.
static SECRETS: LazyLock<Redactor> = LazyLock::new(Redactor::default);

/// Returns the redactor that learns every used secret.
pub(crate) fn redactor() -> Redactor {
    SECRETS.clone()
}

/// Hides secrets in a text for people.
pub(crate) fn without_secrets(text: &str) -> Cow<'_, str> {
    SECRETS.hide_known(text)
}

/// Writer of one event to stderr, as one line without secrets and hidden characters.
struct StderrLine {
    is_json: bool,
    /// `true` if unknown credentials are hidden as well, since the event may contain untrusted text.
    hides_credentials: bool,
}

impl Write for StderrLine {
    /// Writes one event. The formatter passes each event as a whole.
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

/// Creates a [`StderrLine`] for each event.
struct StderrWriter {
    is_json: bool,
}

impl<'a> MakeWriter<'a> for StderrWriter {
    type Writer = StderrLine;

    fn make_writer(&'a self) -> StderrLine {
        StderrLine {
            is_json: self.is_json,
            hides_credentials: false,
        }
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> StderrLine {
        StderrLine {
            is_json: self.is_json,
            hides_credentials: *event.level() > Level::INFO && !is_masked(event.target()),
        }
    }
}

/// Returns `true` if events of this target have already masked their arguments, with marks that must remain.
fn is_masked(target: &str) -> bool {
    ["tool_observe", "tool_exec_http"]
        .iter()
        .any(|own| target.starts_with(own))
}

fn hidden(text: &str, hides_credentials: bool) -> Cow<'_, str> {
    match hides_credentials {
        true => SECRETS.hide_in_text(text),
        false => SECRETS.hide_known(text),
    }
}

/// Hides secrets in a part of a log line, as in the lines on stderr. `is_verbose` is for levels below `info`.
pub(crate) fn line_without_secrets<'a>(text: &'a str, target: &str, is_verbose: bool) -> Cow<'a, str> {
    hidden(text, is_verbose && !is_masked(target))
}

/// Starts logging to stderr, which never carries protocol messages or data.
pub(crate) fn start(options: &Options, default_level: &str, console: Console) -> Result<(), CliError> {
    let filter = filter(options, default_level)?;
    let json = match options.log_format {
        LogFormat::Auto => options.output == Format::Json,
        LogFormat::Pretty => false,
        LogFormat::Json => true,
    };
    let builder = fmt()
        .with_env_filter(filter)
        .with_writer(StderrWriter { is_json: json })
        .with_ansi(console.stderr_color());
    let started = if json {
        let lines = builder.json().flatten_event(true).finish();
        lines.with(ExportLayer).with(filter_fn(is_logged)).try_init()
    } else {
        let lines = builder.compact().finish();
        lines.with(ExportLayer).with(filter_fn(is_logged)).try_init()
    };
    started.map_err(|error| CliError::failed("logging could not be started").with_source(&error))
}

/// Returns `false` for events of the OpenTelemetry libraries, except for lost telemetry. The export driver logs failed
/// exports once.
fn is_logged(metadata: &Metadata<'_>) -> bool {
    let is_of_export = metadata.target().starts_with("opentelemetry");
    let is_lost = ["DroppingStarted", "Dropped", "PartialSuccess"]
        .iter()
        .any(|end| metadata.name().ends_with(end));
    !is_of_export || is_lost
}

fn filter(options: &Options, default_level: &str) -> Result<EnvFilter, CliError> {
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
        CliError::usage(format!("invalid log level `{directives}` in `{from}`"))
            .with_source(&error)
            .with_hint("write `error`, `warn`, `info`, `debug`, `trace` or `off`, or `target=level` with commas between")
    })
}
