//! The verbs of the command line.

pub(crate) mod add;
pub(crate) mod agent;
pub(crate) mod call;
pub(crate) mod catalog;
pub(crate) mod clients;
pub(crate) mod configuration;
pub(crate) mod endpoint;
pub(crate) mod export;
pub(crate) mod flow;
pub(crate) mod import;
pub(crate) mod lock;
pub(crate) mod mock_server;
pub(crate) mod operator;
mod recording;
pub(crate) mod reference;
pub(crate) mod registry;
mod requirements;
pub(crate) mod route;
pub(crate) mod sandbox;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod tools;
pub(crate) mod usage;

use std::{path::Path, time::Duration};

use toolplane::{
    Builder, Toolplane, chaos_plan,
    faults::ChaosLayer,
    manifest::{Loaded, load_chaos},
};

use crate::{
    command::Options,
    config,
    error::CliError,
    exit::Exit,
    output::Console,
    process::runtime::{Signals, block_on},
    store::OpenStore,
    telemetry::Telemetry,
};

/// Time limit for the last export of spans. The user waits for it.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs a verb on the toolplane of the configuration and ends the servers afterwards, also after a signal.
fn on_plane<V>(options: &Options, console: Console, verb: V) -> Result<Exit, CliError>
where
    V: AsyncFnOnce(&Loaded, &Toolplane) -> Result<Exit, CliError>,
{
    on_plane_with(ChaosLayer::default(), options, console, verb)
}

/// Runs a verb as [`on_plane`] does, with injected faults.
fn on_plane_with<V>(chaos: ChaosLayer, options: &Options, console: Console, verb: V) -> Result<Exit, CliError>
where
    V: AsyncFnOnce(&Loaded, &Toolplane) -> Result<Exit, CliError>,
{
    let open = async |telemetry: &Telemetry| config::open(options, chaos, telemetry, console).await;
    on_opened_plane(console, open, verb)
}

/// Runs a verb as [`on_plane`] does, on a toolplane with what `complete` adds instead of the pins of the lock file.
fn on_built_plane<B, V>(options: &Options, console: Console, complete: B, verb: V) -> Result<Exit, CliError>
where
    B: FnOnce(Builder, &Loaded) -> Result<Builder, CliError>,
    V: AsyncFnOnce(&Loaded, &Toolplane) -> Result<Exit, CliError>,
{
    let complete = async |builder: Builder, loaded: &Loaded, _: Option<&OpenStore>| complete(builder, loaded);
    let open = async |telemetry: &Telemetry| config::open_with(options, telemetry, console, complete).await;
    on_opened_plane(console, open, verb)
}

fn on_opened_plane<O, V>(console: Console, open: O, verb: V) -> Result<Exit, CliError>
where
    O: AsyncFnOnce(&Telemetry) -> Result<(Loaded, Toolplane), CliError>,
    V: AsyncFnOnce(&Loaded, &Toolplane) -> Result<Exit, CliError>,
{
    block_on(async {
        let telemetry = Telemetry::start(console);
        let (loaded, plane) = open(&telemetry).await?;
        let mut signals = Signals::listen()?;
        let result = tokio::select! {
            result = verb(&loaded, &plane) => result,
            exit = signals.next() => Err(CliError::silent(exit)),
        };
        let ended = async {
            plane.shutdown().await;
            telemetry.shutdown(EXPORT_TIMEOUT).await;
        };
        tokio::select! {
            () = ended => result,
            // A second signal skips the shutdown.
            exit = signals.next() => Err(CliError::silent(exit)),
        }
    })
}

/// Loads the chaos file. Warns on the terminal and in the log, so that injected faults are never mistaken for real
/// ones.
fn chaos(file: Option<&Path>, console: Console) -> Result<ChaosLayer, CliError> {
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
