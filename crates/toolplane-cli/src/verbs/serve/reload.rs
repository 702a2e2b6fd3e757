//! The configuration, loaded again while it is served: when its files change, and on SIGHUP.

use std::{fmt, fs, future::Future, os::unix::fs::MetadataExt, path::PathBuf, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    time::{MissedTickBehavior, interval, sleep},
};
use toolplane::{
    Toolplane,
    manifest::{Configuration, Loaded},
    runtime::{CacheCapacity, LedgerCapacity},
};
use toolplane_gateway::SharedAllowed;

use crate::{command::Serve, config, failure::Failure, output::Console};

/// How often the files are looked at. Looking, unlike being told, also works over networks and through links that are
/// turned to another directory.
const PERIOD: Duration = Duration::from_secs(1);
/// How long files must have stayed the same before they are read, so that one that is being written is not read by half.
const QUIET: Duration = Duration::from_millis(100);

/// What the files were like: which one, when it was written and how long it is; nothing of one that is not there.
type Prints = Vec<Option<(u64, i64, i64, u64)>>;

/// The values that count from the start of the process, each with its key. Options of the command line that stand in
/// the place of a key leave it out: it counts for nothing then.
#[derive(PartialEq)]
struct Fixed(Vec<(&'static str, String)>);

impl Fixed {
    fn of(configuration: &Configuration, serve: &Serve) -> Self {
        let (gateway, defaults) = (&configuration.gateway, &configuration.defaults.overrides);
        let cache = defaults.get::<CacheCapacity>().copied().unwrap_or_default();
        let ledger = defaults.get::<LedgerCapacity>().copied().unwrap_or_default();
        let values: [(_, bool, &dyn fmt::Debug); 9] = [
            (
                "gateway.listen",
                !serve.stdio && serve.http.is_none(),
                &gateway.listen,
            ),
            ("gateway.sse_path", !serve.stdio, &gateway.sse_path),
            ("gateway.metrics", !serve.stdio, &gateway.metrics),
            (
                "gateway.metrics_listen",
                serve.metrics.is_none(),
                &gateway.metrics_listen,
            ),
            ("gateway.list_wait", true, &gateway.list_wait),
            ("gateway.instructions", true, &gateway.instructions),
            ("defaults.cache_bytes", true, &cache),
            ("defaults.idempotency.max_entries", true, &ledger.max_entries),
            ("defaults.idempotency.max_bytes", true, &ledger.max_bytes),
        ];
        let counting = values.into_iter().filter(|(_, counts, _)| *counts);
        Self(
            counting
                .map(|(key, _, value)| (key, format!("{value:?}")))
                .collect(),
        )
    }

    /// What is told of other values that are in a configuration now; nothing if all are the same.
    fn differing(&self, now: &Self) -> Option<String> {
        let pairs = self.0.iter().zip(&now.0);
        let keys = pairs.filter(|(before, now)| before != now);
        let keys: Vec<_> = keys.map(|((key, _), _)| format!("`{key}`")).collect();
        let (last, others) = keys.split_last()?;
        let keys = match others {
            [] => last.clone(),
            _ => format!("{} and {last}", others.join(", ")),
        };
        Some(format!(
            "what has changed of {keys} takes effect when the gateway is started again"
        ))
    }
}

/// What is served, and who is told of changes that wait for another start.
struct Serving {
    plane: Toolplane,
    serve: Serve,
    /// Who may come over HTTP.
    allowed: SharedAllowed,
    /// What counts, from the start.
    fixed: Fixed,
    /// What was told last.
    told: Option<String>,
    console: Console,
}

/// Loads the configuration again whenever there is reason to, for as long as this is polled. A configuration that is not
/// usable changes nothing: the one before stays.
///
/// # Errors
/// When SIGHUP cannot be listened to.
pub(super) fn follow(
    loaded: &Loaded,
    plane: &Toolplane,
    allowed: SharedAllowed,
    files: Vec<PathBuf>,
    serve: &Serve,
    console: Console,
) -> Result<impl Future<Output = ()> + use<>, Failure> {
    let mut hang_up = signal(SignalKind::hangup())
        .map_err(|error| Failure::failed("signals cannot be listened to").with_source(&error))?;
    let mut watched = loaded.files.clone();
    let watches = !serve.no_reload;
    let mut serving = Serving {
        plane: plane.clone(),
        serve: serve.clone(),
        allowed,
        fixed: Fixed::of(&loaded.configuration, serve),
        told: None,
        console,
    };
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
            if let Some(loaded) = serving.reload(&files) {
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

impl Serving {
    fn reload(&mut self, files: &[PathBuf]) -> Option<Loaded> {
        let console = self.console;
        let reloaded = config::read(files.to_owned(), console).and_then(|loaded| {
            self.plane.reload(&loaded)?;
            config::warn(&loaded, &self.plane, console);
            self.allowed.store(super::allowed(&loaded.configuration.gateway));
            Ok(loaded)
        });
        match reloaded {
            Ok(loaded) => {
                let now = Fixed::of(&loaded.configuration, &self.serve);
                let differing = self.fixed.differing(&now);
                if let Some(differing) = differing.as_ref().filter(|_| differing != self.told) {
                    console.warn(differing);
                }
                self.told = differing;
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
