//! What each verb does, one file for each.

pub(crate) mod approvals;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod health;
pub(crate) mod init;
pub(crate) mod mock_server;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod tools;
pub(crate) mod version;

use std::time::Duration;

use toolplane::{Toolplane, manifest::Loaded};

use crate::{
    command::Options,
    config,
    exit::Exit,
    failure::Failure,
    output::Console,
    runtime::{Signals, block_on},
    telemetry::Telemetry,
};

/// How long the export of the last spans may take: whoever waits for a command waits for that too.
const LAST_SPANS: Duration = Duration::from_secs(1);

/// Runs a verb on the toolplane of the configuration and ends its servers afterwards, also when a signal cuts the
/// verb short.
fn on_plane<V>(options: &Options, console: Console, verb: V) -> Result<Exit, Failure>
where
    V: AsyncFnOnce(&Loaded, &Toolplane) -> Result<Exit, Failure>,
{
    block_on(async {
        let telemetry = Telemetry::start(console);
        let (loaded, plane) = config::open(options, &telemetry, console)?;
        let mut signals = Signals::listen()?;
        let result = tokio::select! {
            result = verb(&loaded, &plane) => result,
            exit = signals.next() => Err(Failure::silent(exit)),
        };
        let ended = async {
            plane.shutdown().await;
            telemetry.shutdown(LAST_SPANS).await;
        };
        tokio::select! {
            () = ended => result,
            // Someone does not want to wait for it.
            exit = signals.next() => Err(Failure::silent(exit)),
        }
    })
}
