//! Reload of the configuration while it is served: when its files change, and on SIGHUP.

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
use toolplane_gateway::SharedAllowList;

use crate::{command::Serve, config, error::CliError, output::Console};

/// Time between two looks at the files. Polling, unlike inotify, also works over network file systems and through
/// symbolic links that are switched to another directory.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time that files must stay unchanged before they are read (debounce), so that no half-written file is read.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Inode, modification time and length of each file; `None` for a missing one.
type Fingerprints = Vec<Option<(u64, i64, i64, u64)>>;

/// Settings that take effect only at the start, each with its key. A key that an option of the command line overrides
/// is left out, since it has no effect.
#[derive(PartialEq)]
struct StartupSettings(Vec<(&'static str, String)>);

impl StartupSettings {
    fn new(configuration: &Configuration, serve: &Serve) -> Self {
        let (gateway, defaults) = (&configuration.gateway, &configuration.defaults.overrides);
        let cache = defaults.get::<CacheCapacity>().copied().unwrap_or_default();
        let ledger = defaults.get::<LedgerCapacity>().copied().unwrap_or_default();
        let values: [(_, bool, &dyn fmt::Debug); 11] = [
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
            ("gateway.mode", serve.mode.is_none(), &gateway.mode),
            ("gateway.pinned", true, &gateway.pinned),
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

    /// Returns a warning that names the changed settings. `None` if none has changed.
    fn changed(&self, now: &Self) -> Option<String> {
        let pairs = self.0.iter().zip(&now.0);
        let keys = pairs.filter(|(before, now)| before != now);
        let keys: Vec<_> = keys.map(|((key, _), _)| format!("`{key}`")).collect();
        let (last, others) = keys.split_last()?;
        let keys = match others {
            [] => last.clone(),
            _ => format!("{} and {last}", others.join(", ")),
        };
        Some(format!(
            "changes of {keys} take effect after a restart of the gateway"
        ))
    }
}

/// Reloads the configuration, and warns of changes that need a restart.
struct Reloader {
    plane: Toolplane,
    serve: Serve,
    /// Hosts and origins that may connect over HTTP.
    allowed: SharedAllowList,
    /// Settings of the start.
    startup: StartupSettings,
    /// Last printed warning.
    last_warning: Option<String>,
    console: Console,
}

/// Reloads the configuration when its files change or on SIGHUP, as long as the returned future is polled. An invalid
/// configuration changes nothing: the previous one stays.
///
/// # Errors
/// If SIGHUP cannot be handled.
pub(super) fn watch(
    loaded: &Loaded,
    plane: &Toolplane,
    allowed: SharedAllowList,
    files: Vec<PathBuf>,
    serve: &Serve,
    console: Console,
) -> Result<impl Future<Output = ()> + use<>, CliError> {
    let mut hang_up = signal(SignalKind::hangup())
        .map_err(|error| CliError::failed("signals cannot be listened to").with_source(&error))?;
    let mut watched = loaded.files.clone();
    let watches = !serve.no_reload;
    let mut reloader = Reloader {
        plane: plane.clone(),
        serve: serve.clone(),
        allowed,
        startup: StartupSettings::new(&loaded.configuration, serve),
        last_warning: None,
        console,
    };
    let mut seen = fingerprints(&watched);
    Ok(async move {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = hang_up.recv() => {}
                _ = ticks.tick(), if watches => {
                    if fingerprints(&watched) == seen {
                        continue;
                    }
                }
            }
            seen = debounce(&watched).await;
            if let Some(loaded) = reloader.reload(&files) {
                watched = loaded.files;
                // Files that are new in the configuration are as they were a moment ago.
                seen = fingerprints(&watched);
            }
        }
    })
}

/// Waits until the files stay unchanged (debounce).
async fn debounce(files: &[PathBuf]) -> Fingerprints {
    let mut before = fingerprints(files);
    loop {
        sleep(DEBOUNCE).await;
        let now = fingerprints(files);
        if now == before {
            return now;
        }
        before = now;
    }
}

impl Reloader {
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
                let now = StartupSettings::new(&loaded.configuration, &self.serve);
                let changed = self.startup.changed(&now);
                if let Some(changed) = changed.as_ref().filter(|_| changed != self.last_warning) {
                    console.warn(changed);
                }
                self.last_warning = changed;
                tracing::info!("the configuration was reloaded");
                console.say("the configuration was reloaded");
                Some(loaded)
            }
            Err(failure) => {
                console.failure(&failure);
                console.warn("the previous configuration stays in effect");
                None
            }
        }
    }
}

fn fingerprints(files: &[PathBuf]) -> Fingerprints {
    let fingerprint = |file: &PathBuf| {
        let metadata = fs::metadata(file).ok()?;
        Some((
            metadata.ino(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.len(),
        ))
    };
    files.iter().map(fingerprint).collect()
}
