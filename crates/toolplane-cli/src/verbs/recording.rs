//! Options `--record` and `--replay`.

use std::sync::Arc;

use toolplane::{
    Builder,
    agent::{RecordingError, Replay, ReplayMode},
};

use crate::{
    command::{Recording, ReplayMatch},
    error::CliError,
    output::Console,
};

/// Maximum number of files in a report.
const MAX_FILES: usize = 5;

/// Recorder or replay of a plane, by the options of a command.
pub(super) struct Recorder<'a> {
    options: &'a Recording,
    replay: Option<Arc<Replay>>,
    console: Console,
}

impl<'a> Recorder<'a> {
    /// Opens the recording that answers calls, if any.
    pub(super) fn open(options: &'a Recording, console: Console) -> Result<Self, CliError> {
        let mode = match options.replay_match {
            ReplayMatch::Strict => ReplayMode::Strict,
            ReplayMatch::Position => ReplayMode::ByPosition,
        };
        let replay = options.replay.as_ref().map(|folder| Replay::open(folder, mode));
        let replay = replay.transpose().map_err(|error| failed(&error))?.map(Arc::new);
        Ok(Self {
            options,
            replay,
            console,
        })
    }

    /// Lets the builder record calls, or answer them from the recording.
    pub(super) fn add_to(&self, builder: Builder) -> Result<Builder, CliError> {
        if let Some(folder) = &self.options.record {
            let builder = builder.record(folder).map_err(|error| failed(&error))?;
            self.console
                .say(&format!("recording calls into `{}`", folder.display()));
            return Ok(builder);
        }
        let (Some(folder), Some(replay)) = (&self.options.replay, &self.replay) else {
            return Ok(builder);
        };
        let folder = folder.display();
        self.console
            .say(&format!("answering calls from `{folder}`: nothing is sent"));
        Ok(builder.replay(replay))
    }

    /// Returns `true` if calls are answered from a recording.
    pub(super) fn replays(&self) -> bool {
        self.replay.is_some()
    }

    /// Says which recorded calls answered nothing.
    pub(super) fn report_unused(&self) {
        let unused = self.replay.as_ref().map(|replay| replay.unused());
        let unused = unused.unwrap_or_default();
        if unused.is_empty() {
            return;
        }
        let shown: Vec<_> = unused
            .iter()
            .take(MAX_FILES)
            .map(|file| format!("`{file}`"))
            .collect();
        let more = match unused.len() > MAX_FILES {
            true => ", ..",
            false => "",
        };
        let calls = match unused.len() {
            1 => "1 recorded call was",
            n => &format!("{n} recorded calls were"),
        };
        self.console
            .warn(&format!("{calls} not made: {}{more}", shown.join(", ")));
    }
}

fn failed(error: &RecordingError) -> CliError {
    CliError::usage(error.to_string())
}
