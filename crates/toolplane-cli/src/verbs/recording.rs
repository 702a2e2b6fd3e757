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

/// Lets the builder record calls, or answer them from a recording.
pub(super) fn recorded(builder: Builder, options: &Recording, console: Console) -> Result<Builder, CliError> {
    let failed = |error: RecordingError| CliError::usage(error.to_string());
    if let Some(folder) = &options.record {
        console.say(&format!("recording calls into `{}`", folder.display()));
        return builder.record(folder).map_err(failed);
    }
    let Some(folder) = &options.replay else {
        return Ok(builder);
    };
    let mode = match options.replay_match {
        ReplayMatch::Strict => ReplayMode::Strict,
        ReplayMatch::Position => ReplayMode::ByPosition,
    };
    let replay = Replay::open(folder, mode).map_err(failed)?;
    console.say(&format!(
        "answering calls from `{}`: nothing is sent",
        folder.display()
    ));
    Ok(builder.replay(&Arc::new(replay)))
}
