//! The configuration, loaded again while it is served: when its files change, and on SIGHUP.

use std::{fs, future::Future, os::unix::fs::MetadataExt, path::PathBuf, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    time::{MissedTickBehavior, interval, sleep},
};
use toolplane::{
    Toolplane,
    manifest::{AlertsSpec, GatewaySpec, HealthSpec, Loaded},
};

use crate::{config, failure::Failure, output::Console};

/// How often the files are looked at. Looking, unlike being told, also works over networks and through links that are
/// turned to another directory.
const PERIOD: Duration = Duration::from_secs(1);
/// How long files must have stayed the same before they are read, so that one that is being written is not read by half.
const QUIET: Duration = Duration::from_millis(100);

/// What the files were like: which one, when it was written and how long it is; nothing of one that is not there.
type Prints = Vec<Option<(u64, i64, i64, u64)>>;

/// The sections that count from the start of the process.
#[derive(PartialEq)]
struct Fixed(GatewaySpec, HealthSpec, AlertsSpec);

impl Fixed {
    fn of(loaded: &Loaded) -> Self {
        let configuration = &loaded.configuration;
        Self(
            configuration.gateway.clone(),
            configuration.health.clone(),
            configuration.alerts.clone(),
        )
    }
}

/// Loads the configuration again whenever there is reason to, for as long as this is polled. A configuration that is not
/// usable changes nothing: the one before stays.
///
/// # Errors
/// When SIGHUP cannot be listened to.
pub(super) fn follow(
    loaded: &Loaded,
    plane: &Toolplane,
    files: Vec<PathBuf>,
    watches: bool,
    console: Console,
) -> Result<impl Future<Output = ()> + use<>, Failure> {
    let mut hang_up = signal(SignalKind::hangup())
        .map_err(|error| Failure::failed("signals cannot be listened to").with_source(&error))?;
    let mut watched = loaded.files.clone();
    let mut fixed = Fixed::of(loaded);
    let plane = plane.clone();
    let mut seen = prints(&watched);
    Ok(async move {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = hang_up.recv() => {}
                _ = ticks.tick(), if watches => {
                    if prints(&watched) == seen {
                        continue;
                    }
                }
            }
            seen = settled(&watched).await;
            if let Some(loaded) = reload(&plane, &files, &mut fixed, console) {
                watched = loaded.files;
                // Files that are read for the first time are as they were just now, or a little later.
                seen = prints(&watched);
            }
        }
    })
}

/// Waits until the files stay as they are.
async fn settled(files: &[PathBuf]) -> Prints {
    let mut before = prints(files);
    loop {
        sleep(QUIET).await;
        let now = prints(files);
        if now == before {
            return now;
        }
        before = now;
    }
}

fn reload(plane: &Toolplane, files: &[PathBuf], fixed: &mut Fixed, console: Console) -> Option<Loaded> {
    let reloaded = config::read(files.to_owned(), console).and_then(|loaded| {
        plane.reload(&loaded)?;
        Ok(loaded)
    });
    match reloaded {
        Ok(loaded) => {
            let now = Fixed::of(&loaded);
            if now != *fixed {
                console.warn(
                    "changes of `gateway`, `health` and `alerts` take effect when the gateway is started again",
                );
                *fixed = now;
            }
            tracing::info!("the configuration was loaded again");
            console.say("the configuration was loaded again");
            Some(loaded)
        }
        Err(failure) => {
            console.failure(&failure);
            console.warn("the configuration stays as it was");
            None
        }
    }
}

fn prints(files: &[PathBuf]) -> Prints {
    let print = |file: &PathBuf| {
        let metadata = fs::metadata(file).ok()?;
        Some((
            metadata.ino(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.len(),
        ))
    };
    files.iter().map(print).collect()
}
