//! Health of tools and servers, readiness, and alerts.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::time::sleep;
use tool_core::{Event, SourceState, SourceStatus};
use tool_manifest::Configuration;
use tool_observe::{AlertMonitor, HealthTracker};

use crate::{
    CheckOutcome, Toolplane, build::features::missing_kinds, build::observers::alert_settings,
    operate::checks::Checks, operate::required::Required,
};

/// Interval at which alerts are evaluated.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Monitor of the health of a toolplane.
pub(crate) struct HealthMonitor {
    pub(crate) book: Arc<HealthTracker>,
    pub(crate) monitor: AlertMonitor,
    pub(crate) checks: Checks,
    pub(crate) required: Required,
}

/// Readiness: the state of everything that calls need.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Readiness {
    /// Reasons for not being ready; empty if ready. Without secrets and addresses.
    pub reasons: Vec<String>,
    /// State of each server.
    pub servers: Vec<(String, &'static str)>,
    /// Seed of the faults that are injected on purpose, if any.
    pub chaos: Option<u64>,
}

impl HealthMonitor {
    /// Applies a new configuration. Figures and firing alerts stay.
    pub(crate) fn reconfigure(&self, configuration: &Configuration) {
        self.required.reconfigure(configuration);
        self.book.set_window(configuration.health.window);
        self.monitor.reconfigure(alert_settings(configuration));
        self.checks.reconfigure(&configuration.health);
    }
}

impl Toolplane {
    /// Returns the figures of recent attempts, for each tool and each server. The book also implements the port
    /// [`tool_core::Health`].
    #[must_use]
    pub fn health(&self) -> &Arc<HealthTracker> {
        &self.0.watch.book
    }

    /// Monitors the health of everything: checks servers and endpoints as configured, raises alerts, and restarts
    /// required servers. Never completes. Without it nothing is checked, no figures raise an alert, and a required
    /// server is restarted on its next use. For long-running programs.
    ///
    /// # Cancellation
    /// Dropping the future ends the monitoring.
    pub async fn watch_health(&self) {
        self.0.start_background();
        let raise = async {
            loop {
                sleep(POLL_INTERVAL).await;
                for alert in self.0.watch.monitor.check(&self.0.watch.book) {
                    self.0.observers.emit(&Event::alert(&alert));
                }
            }
        };
        tokio::select! {
            () = raise => {}
            () = self.0.watch.checks.run() => {}
            () = self.0.watch.required.keep() => {}
        }
    }

    /// Checks once everything that can be checked: the servers in use, and the health check endpoints of tools. The
    /// results count for their health.
    ///
    /// # Cancellation
    /// Dropping the future ends the checks. Those that ended before count.
    pub async fn check_health(&self) -> Vec<CheckOutcome> {
        self.0.start_background();
        self.0.watch.checks.once().await
    }

    /// Returns the readiness: every required server must be ready, and no tool may need an executor that this build
    /// lacks.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.readiness_by(&self.server_sources())
    }

    /// Returns the readiness for these states of its servers.
    pub(crate) fn readiness_by(&self, servers: &[(String, SourceStatus)]) -> Readiness {
        let required = &self.0.watch.required;
        let mut readiness = Readiness {
            reasons: Vec::new(),
            servers: Vec::new(),
            chaos: self.0.chaos.plan().map(|plan| plan.seed),
        };
        for (name, status) in servers {
            let state = status.state.as_str();
            readiness.servers.push((name.clone(), state));
            if required.contains(name) && status.state != SourceState::Ready {
                readiness
                    .reasons
                    .push(format!("the server `{name}` is required and {state}"));
            }
        }
        readiness.reasons.extend(self.left_out());
        readiness
    }

    /// Returns the tools whose executor this build lacks.
    fn left_out(&self) -> Vec<String> {
        let kinds: HashMap<_, _> = missing_kinds().collect();
        if kinds.is_empty() {
            return Vec::new();
        }
        let snapshot = self.0.registry.snapshot();
        let refused = snapshot.refused().iter();
        let reasons = refused.filter_map(|refused| {
            let (kind, feature) = kinds.get_key_value(refused.missing_kind.as_deref()?)?;
            Some(format!(
                "the tool `{}` needs the kind `{kind}`, which was left out of this build (feature `{feature}`)",
                refused.name
            ))
        });
        reasons.collect()
    }
}

impl Readiness {
    /// Returns `true` if nothing is missing.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.reasons.is_empty()
    }
}
