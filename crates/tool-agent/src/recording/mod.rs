//! Record and replay: calls of tools as readable files, and answers from them.

mod files;
mod record;
mod replay;

pub use self::{
    files::RecordingError,
    record::RecordLayer,
    replay::{Replay, ReplayExecutor, ReplayLayer, ReplayMode},
};
