//! The one place that writes to stdout and stderr.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use serde_json::json;
use tool_scan::escape_json;

use crate::{
    command::{Color, Format, Options},
    error::CliError,
    output::{json, table::Table, text, yaml},
    process::logging,
};

/// Where a verb puts what it has to say: data on stdout, talk on stderr.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    pub(crate) format: Format,
    color: ColorChoice,
    quiet: bool,
}

impl Console {
    pub(crate) fn new(options: &Options) -> Self {
        let color = match options.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        // For what clap prints.
        color.write_global();
        Self {
            format: options.output,
            color,
            quiet: options.quiet,
        }
    }

    /// Whether talk may have colours.
    pub(crate) fn stderr_color(self) -> bool {
        match self.color {
            ColorChoice::Auto => AutoStream::choice(&io::stderr()) != ColorChoice::Never,
            choice => choice != ColorChoice::Never,
        }
    }

    pub(crate) fn stdout_color(self) -> bool {
        match self.color {
            ColorChoice::Auto => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            choice => choice != ColorChoice::Never,
        }
    }

    /// Whether someone watches stderr.
    pub(crate) fn is_interactive(self) -> bool {
        !self.quiet && self.format == Format::Table && io::stderr().is_terminal()
    }

    /// Prints data as they are, with a line break at the end.
    pub(crate) fn data(self, text: &str) -> Result<(), CliError> {
        let mut stdout = AutoStream::new(io::stdout().lock(), self.color);
        let line_break = if text.ends_with('\n') { "" } else { "\n" };
        let written = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.write_all(line_break.as_bytes()))
            .and_then(|()| stdout.flush());
        match written {
            // Whoever read us has seen enough, as with `| head`.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(CliError::failed("writing to stdout failed").with_source(&error)),
            Ok(()) => Ok(()),
        }
    }

    /// Prints a value: as JSON, as YAML, or for people as `table` says.
    pub(crate) fn value<T: Serialize + ?Sized>(
        self,
        value: &T,
        table: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        match self.format {
            Format::Table => self.data(&text::terminal(&table())),
            Format::Json => self.data(&escape_json(&json::pretty(&raw(value)?))),
            Format::Yaml => self.data(&yaml::yaml(&raw(value)?)),
        }
    }

    /// Prints a list: rows of a table, or an array of objects.
    pub(crate) fn list<T: Serialize>(
        self,
        items: &[T],
        table: impl FnOnce(Table) -> Table,
    ) -> Result<(), CliError> {
        let color = self.stdout_color();
        self.value(items, || {
            table(Table::new(color, text::terminal_width())).to_string()
        })
    }

    /// Says something to whoever watches: not to programs, which have the data and the exit code.
    pub(crate) fn say(self, text: &str) {
        if !self.quiet && self.format != Format::Json {
            self.stderr(text);
        }
    }

    /// Says that something may not be what was meant.
    pub(crate) fn warn(self, text: &str) {
        if self.quiet {
            return;
        }
        if self.format == Format::Json {
            self.stderr(&escape_json(&json!({ "warning": text }).to_string()));
        } else {
            let style = if self.stderr_color() {
                text::WARNING
            } else {
                text::PLAIN
            };
            self.stderr(&format!("{style}warning{style:#}: {text}"));
        }
    }

    /// Says why the verb failed.
    pub(crate) fn failure(self, failure: &CliError) {
        if failure.silent {
            return;
        }
        match self.format {
            Format::Json => self.stderr(&failure.to_json()),
            _ => self.stderr(&failure.render(self.stderr_color())),
        }
    }

    pub(crate) fn stderr(self, text: &str) {
        let text = logging::without_secrets(text);
        let text = text::terminal(&text);
        let mut stderr = AutoStream::new(io::stderr().lock(), self.color);
        // There is nowhere left to say that this failed.
        let _ = writeln!(stderr, "{text}");
    }
}

fn raw<T: Serialize + ?Sized>(value: &T) -> Result<raw_json::RawJson, CliError> {
    raw_json::RawJson::from_serialize(value).map_err(|error| {
        CliError::new(crate::Exit::Bug, "internal", "the data cannot be written").with_source(&error)
    })
}
