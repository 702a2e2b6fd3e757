//! What each verb does, one file for each.

pub(crate) mod approvals;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod docs;
pub(crate) mod doctor;
mod gateways;
pub(crate) mod health;
pub(crate) mod init;
pub(crate) mod ledger;
pub(crate) mod mock_server;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod tools;
pub(crate) mod version;

use std::{path::Path, time::Duration};

use toolplane::{
    Toolplane, chaos_plan,
    faults::ChaosLayer,
    manifest::{Loaded, load_chaos},
};

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
    on_plane_with(ChaosLayer::default(), options, console, verb)
}

/// The same, on one that has these faults on purpose.
fn on_plane_with<V>(chaos: ChaosLayer, options: &Options, console: Console, verb: V) -> Result<Exit, Failure>
where
    V: AsyncFnOnce(&Loaded, &Toolplane) -> Result<Exit, Failure>,
{
    block_on(async {
        let telemetry = Telemetry::start(console);
        let (loaded, plane) = config::open(options, chaos, &telemetry, console)?;
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

/// The faults that there are to be on purpose, by this file. Whoever reads the terminal or the log must not miss that there
/// are.
fn chaos(file: Option<&Path>, console: Console) -> Result<ChaosLayer, Failure> {
    let Some(file) = file else {
        return Ok(ChaosLayer::default());
    };
    let plan = chaos_plan(&load_chaos(file)?);
    console.warn(&format!(
        "CHAOS: calls fail on purpose, by `{}` with seed {}",
        file.display(),
        plan.seed
    ));
    tracing::warn!(
        seed = plan.seed,
        n_rules = plan.rules.len(),
        "chaos: calls fail on purpose"
    );
    Ok(ChaosLayer::new(plan))
}
