//! Reload of the configuration while it is served: when its files change, and on SIGHUP.

use std::{
    fmt,
    future::{Future, pending},
    path::PathBuf,
    time::Duration,
};

use tokio::{
    signal::unix::{SignalKind, signal},
    time::{Instant, Interval, MissedTickBehavior, interval, interval_at, sleep},
};
use toolplane::{
    Toolplane,
    manifest::{Configuration, Loaded},
    runtime::{CacheCapacity, LedgerCapacity},
};
use toolplane_gateway::SharedAllowList;

use super::{file_states::FileState, itself};
use crate::{
    command::Serve,
    config,
    error::CliError,
    lock,
    output::Console,
    store::{OpenStore, add_servers},
};

/// Time between two looks at the files. Polling, unlike inotify, also works over network file systems and through
/// symbolic links that are switched to another directory.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two looks at the accepted definitions of a store.
const PIN_INTERVAL: Duration = Duration::from_secs(30);
/// Time that files must stay unchanged before they are read (debounce), so that no half-written file is read.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Settings that take effect only at the start, each with its key. A key that an option of the command line overrides
/// is left out, since it has no effect.
#[derive(PartialEq)]
struct StartupSettings(Vec<(&'static str, String)>);

impl StartupSettings {
    fn new(configuration: &Configuration, serve: &Serve) -> Self {
        let (gateway, defaults) = (&configuration.gateway, &configuration.defaults.overrides);
        let cache = defaults.get::<CacheCapacity>().copied().unwrap_or_default();
        let ledger = defaults.get::<LedgerCapacity>().copied().unwrap_or_default();
        let values: [(_, bool, &dyn fmt::Debug); 13] = [
            ("store", true, &configuration.store),
            (
                "gateway.listen",
                !serve.stdio && serve.http.is_none(),
                &gateway.listen,
            ),
            ("gateway.auth", !serve.stdio, &gateway.auth),
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
    /// Store of the start, whose servers belong to the configuration.
    store: Option<OpenStore>,
    serve: Serve,
    /// Hosts and origins that may connect over HTTP.
    allowed: SharedAllowList,
    /// Settings of the start.
    startup: StartupSettings,
    /// Last printed warning.
    last_warning: Option<String>,
    console: Console,
}

/// Times at which accepted definitions are read again, since another gateway on the store may have accepted some.
struct PinRefresh(Option<Interval>);

impl PinRefresh {
    fn new(store: Option<&OpenStore>) -> Self {
        Self(store.filter(|store| store.is_named).map(|_| {
            let mut ticks = interval_at(Instant::now() + PIN_INTERVAL, PIN_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        }))
    }

    async fn tick(&mut self) {
        match &mut self.0 {
            Some(ticks) => drop(ticks.tick().await),
            None => pending().await,
        }
    }
}

/// Watch for changes of the servers in the store.
struct ServerChanges {
    store: Option<OpenStore>,
    /// Revision of the store that was looked at last.
    seen: u64,
}

impl ServerChanges {
    async fn new(store: Option<OpenStore>) -> Self {
        let seen = match &store {
            Some(store) => store.tools.revision().await.unwrap_or_default(),
            None => 0,
        };
        Self { store, seen }
    }

    /// Reads the store. Returns `true` if a server changed since the last time.
    async fn look(&mut self) -> bool {
        let Some(store) = &self.store else {
            return false;
        };
        match store.tools.changes(self.seen).await {
            Ok(changes) => {
                self.seen = changes.revision;
                changes.servers_changed
            }
            Err(error) => {
                tracing::debug!(error = %error, "the store cannot be read");
                sleep(POLL_INTERVAL).await;
                false
            }
        }
    }

    /// Waits for a change of a server.
    ///
    /// # Cancellation
    /// Dropping the future loses nothing: the next one looks again.
    async fn changed(&mut self) {
        loop {
            match &self.store {
                Some(store) => store.tools.changed(self.seen).await,
                None => pending().await,
            }
            if self.look().await {
                return;
            }
        }
    }
}

/// Reloads the configuration when its files or the servers of its store change, or on SIGHUP, as long as the returned future is polled. An invalid
/// configuration changes nothing: the previous one stays.
///
/// # Errors
/// If SIGHUP cannot be handled.
pub(super) fn watch(
    loaded: &Loaded,
    plane: &Toolplane,
    store: Option<OpenStore>,
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
        store: store.clone(),
        serve: serve.clone(),
        allowed,
        startup: StartupSettings::new(&loaded.configuration, serve),
        last_warning: None,
        console,
    };
    let mut seen = FileState::of_all(&watched);
    let lock = vec![lock::path(loaded)];
    let mut seen_lock = FileState::of_all(&lock);
    Ok(async move {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pins = PinRefresh::new(store.as_ref());
        let mut servers = ServerChanges::new(store).await;
        loop {
            tokio::select! {
                _ = hang_up.recv() => reloader.refresh_pins().await,
                () = servers.changed(), if watches => {}
                _ = pins.tick() => {
                    reloader.refresh_pins().await;
                    continue;
                }
                _ = ticks.tick(), if watches => {
                    if FileState::of_all(&lock) != seen_lock {
                        seen_lock = debounce(&lock).await;
                        reloader.refresh_pins().await;
                    }
                    if FileState::of_all(&watched) == seen {
                        continue;
                    }
                }
            }
            seen = debounce(&watched).await;
            if let Some(loaded) = reloader.reload(&files).await {
                watched = loaded.files;
                // Files that are new in the configuration are as they were a moment ago.
                seen = FileState::of_all(&watched);
            }
        }
    })
}

/// Waits until the files stay unchanged (debounce).
async fn debounce(files: &[PathBuf]) -> Vec<Option<FileState>> {
    let mut before = FileState::of_all(files);
    loop {
        sleep(DEBOUNCE).await;
        let now = FileState::of_all(files);
        if now == before {
            return now;
        }
        before = now;
    }
}

impl Reloader {
    /// Reads the lock file again. An unusable one changes nothing.
    async fn refresh_pins(&self) {
        match self.plane.refresh_pins().await {
            Ok(false) => {}
            Ok(true) => {
                tracing::info!("the lock file was read again");
                self.console.say("the lock file was read again");
            }
            Err(error) => {
                tracing::warn!(%error, "the pins of definitions stay as they were");
                self.console
                    .warn(&format!("the pins of definitions stay as they were: {error}"));
            }
        }
    }

    async fn reload(&mut self, files: &[PathBuf]) -> Option<Loaded> {
        let console = self.console;
        let reloaded = async {
            let mut loaded = config::read(files.to_owned(), console)?;
            add_servers(&mut loaded, self.store.as_ref(), console).await;
            config::add_endpoint(&mut loaded)?;
            itself::refuse(&mut loaded.configuration, &self.serve, console);
            self.plane.reload(&loaded)?;
            config::warn(&loaded, &self.plane, console);
            self.allowed.store(super::allowed(&loaded.configuration.gateway));
            Ok::<_, CliError>(loaded)
        };
        match reloaded.await {
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
