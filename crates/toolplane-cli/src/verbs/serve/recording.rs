//! `serve --record` and `serve --replay`.

use std::sync::Arc;

use toolplane::{
    Builder,
    agent::{RecordingError, Replay, ReplayMode},
};

use crate::{
    command::{ReplayMatch, Serve},
    error::CliError,
    output::Console,
};

/// Lets the builder record calls, or answer them from a recording.
pub(super) fn recorded(builder: Builder, serve: &Serve, console: Console) -> Result<Builder, CliError> {
    let failed = |error: RecordingError| CliError::usage(error.to_string());
    if let Some(folder) = &serve.record {
        console.say(&format!("recording calls into `{}`", folder.display()));
        return builder.record(folder).map_err(failed);
    }
    let Some(folder) = &serve.replay else {
        return Ok(builder);
    };
    let mode = match serve.replay_match {
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
