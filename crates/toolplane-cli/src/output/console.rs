//! The only place that writes to stdout and stderr.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use serde_json::json;
use tool_scan::escape_json;

use crate::{
    command::{Color, Format, Options},
    error::CliError,
    output::{table::Table, text, yaml},
    process::logging,
};

/// Output of a verb: data on stdout, messages on stderr.
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
        // Clap prints by the global choice.
        color.write_global();
        Self {
            format: options.output,
            color,
            quiet: options.quiet,
        }
    }

    /// `true` if messages on stderr may have colors.
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

    /// `true` if a person watches stderr.
    pub(crate) fn is_interactive(self) -> bool {
        !self.quiet && self.format == Format::Table && io::stderr().is_terminal()
    }

    /// Prints text to stdout, with a line break at its end.
    pub(crate) fn data(self, text: &str) -> Result<(), CliError> {
        let mut stdout = AutoStream::new(io::stdout().lock(), self.color);
        let line_break = if text.ends_with('\n') { "" } else { "\n" };
        let written = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.write_all(line_break.as_bytes()))
            .and_then(|()| stdout.flush());
        match written {
            // The reader has closed the pipe, as `| head` does.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(CliError::failed("writing to stdout failed").with_source(&error)),
            Ok(()) => Ok(()),
        }
    }

    /// Prints a value: as JSON, as YAML, or as the text that `table` returns.
    pub(crate) fn value<T: Serialize + ?Sized>(
        self,
        value: &T,
        table: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        match self.format {
            Format::Table => self.data(&text::terminal(&table())),
            Format::Json => self.data(&escape_json(&raw(value)?.indented())),
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

    /// Prints a message for people. Programs have the data and the exit code.
    pub(crate) fn say(self, text: &str) {
        if !self.quiet && self.format != Format::Json {
            self.stderr(text);
        }
    }

    /// Prints a warning.
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

    /// Prints the error of the verb.
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
        // A failure to print an error cannot be reported.
        let _ = writeln!(stderr, "{text}");
    }
}

fn raw<T: Serialize + ?Sized>(value: &T) -> Result<raw_json::RawJson, CliError> {
    raw_json::RawJson::from_serialize(value).map_err(|error| {
        CliError::new(crate::Exit::Bug, "internal", "the data cannot be written").with_source(&error)
    })
}
