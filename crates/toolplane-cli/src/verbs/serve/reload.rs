//! The configuration, loaded again while it is served: when its files change, and on SIGHUP.

use std::{fmt, fs, future::Future, os::unix::fs::MetadataExt, path::PathBuf, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    time::{MissedTickBehavior, interval, sleep},
};
use toolplane::{
    Toolplane,
    manifest::{Configuration, Loaded},
};
use toolplane_gateway::SharedAllowed;

use crate::{command::Serve, config, error::CliError, output::Console};

/// How often the files are looked at. Looking, unlike being last_warning, also works over networks and through links that are
/// turned to another directory.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long files must have stayed the same before they are read, so that one that is being written is not read by half.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// What the files were like: which one, when it was written and how long it is; nothing of one that is not there.
type Fingerprints = Vec<Option<(u64, i64, i64, u64)>>;

/// The values that count from the start of the process, each with its key. Options of the command line that stand in
/// the place of a key leave it out: it counts for nothing then.
#[derive(PartialEq)]
struct StartupSettings(Vec<(&'static str, String)>);

impl StartupSettings {
    fn new(configuration: &Configuration, serve: &Serve) -> Self {
        let (gateway, defaults) = (&configuration.gateway, &configuration.defaults);
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
            ("defaults.cache_bytes", true, &defaults.cache_bytes),
            ("defaults.idempotency.max_entries", true, &defaults.max_keys),
            ("defaults.idempotency.max_bytes", true, &defaults.max_key_bytes),
        ];
        let counting = values.into_iter().filter(|(_, counts, _)| *counts);
        Self(
            counting
                .map(|(key, _, value)| (key, format!("{value:?}")))
                .collect(),
        )
    }

    /// What is last_warning of other values that are in a configuration now; nothing if all are the same.
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
            "what has changed of {keys} takes effect when the gateway is started again"
        ))
    }
}

/// What is served, and who is last_warning of changes that wait for another start.
struct Reloader {
    plane: Toolplane,
    serve: Serve,
    /// Who may come over HTTP.
    allowed: SharedAllowed,
    /// What counts, from the start.
    startup: StartupSettings,
    /// What was last_warning last.
    last_warning: Option<String>,
    console: Console,
}

/// Loads the configuration again whenever there is reason to, for as long as this is polled. A configuration that is not
/// usable changes nothing: the one before stays.
///
/// # Errors
/// When SIGHUP cannot be listened to.
pub(super) fn watch(
    loaded: &Loaded,
    plane: &Toolplane,
    allowed: SharedAllowed,
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
                // Files that are read for the first time are as they were just now, or a little later.
                seen = fingerprints(&watched);
            }
        }
    })
}

/// Waits until the files stay as they are.
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
