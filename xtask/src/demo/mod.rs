//! Demonstrates the main use case on the shipped example: tools of four kinds are checked, listed, called and served.

mod processes;
mod programs;
mod tour;

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use crate::peers;
use crate::support::console::say;
use crate::support::repository::Repository;

use self::processes::Processes;
use self::programs::Programs;
use self::tour::Tour;

/// Options of the demo.
#[derive(Clone, Copy, Debug, Default)]
pub struct DemoOptions {
    /// `true` if the gateway keeps serving at the end, until it is interrupted.
    pub keep: bool,
}

/// Installs and builds what the example needs, shows every step of the main use case, and stops all started
/// processes.
///
/// # Errors
/// Returns an error if a program cannot be installed, built or started, or if a step does not end as expected.
pub fn demo(repository: &Repository, options: DemoOptions) -> Result<()> {
    let peers = peers::install_demo(repository)?;
    let programs = Programs::build(repository, peers)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start a runtime")?
        .block_on(show(repository, programs, options))
}

/// Runs the tour. Started processes are stopped in every case, also after an error.
async fn show(repository: &Repository, programs: Programs, options: DemoOptions) -> Result<()> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let mut processes = Processes::default();
    let mut tour = Tour::new(repository, programs)?;
    let ended = tokio::select! {
        ended = tour.walk(&mut processes) => ended,
        _ = interrupts.recv() => interrupted(),
        _ = terminations.recv() => interrupted(),
    };
    if ended.is_ok() && options.keep {
        say(format_args!(
            "demo: serving at {} until Ctrl-C",
            tour.gateway_url()
        ));
        tokio::select! {
            _ = interrupts.recv() => {}
            _ = terminations.recv() => {}
        }
    }
    say("demo: stopping everything that was started ...");
    processes.stop().await;
    ended?;
    say("demo: done");
    Ok(())
}

fn interrupted() -> Result<()> {
    bail!("the demo was interrupted")
}
