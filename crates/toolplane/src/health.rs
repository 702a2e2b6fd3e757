//! How well everything is, and who is told.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::time::sleep;
use tool_core::{Event, SourceState, SourceStatus};
use tool_manifest::Configuration;
use tool_observe::{AlertMonitor, HealthTracker};

use crate::{
    CheckOutcome, Toolplane, builder::alert_settings, checks::Checks, executors::left_out, required::Required,
};

/// How often alerts are looked for.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// What watches over the health of a toolplane.
pub(crate) struct HealthMonitor {
    pub(crate) book: Arc<HealthTracker>,
    pub(crate) monitor: AlertMonitor,
    pub(crate) checks: Checks,
    pub(crate) required: Required,
}

/// Whether everything is there that calls need.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Readiness {
    /// What is missing; it is ready if nothing is. Without secrets and addresses.
    pub reasons: Vec<String>,
    /// The state of each server.
    pub servers: Vec<(String, &'static str)>,
    /// The seed of the faults that are injected on purpose, if any are.
    pub chaos: Option<u64>,
}

impl HealthMonitor {
    /// Goes by this configuration from now on. The figures, and the alerts that fire, stay.
    pub(crate) fn reconfigure(&self, configuration: &Configuration) {
        self.required.reconfigure(configuration);
        self.book.set_window(configuration.health.window);
        self.monitor.reconfigure(alert_settings(configuration));
        self.checks.reconfigure(&configuration.health);
    }
}

impl Toolplane {
    /// How the attempts of the last minutes went, for each tool and each server: an observer's book, which implements
    /// the port [`tool_core::Health`] as well.
    #[must_use]
    pub fn health(&self) -> &Arc<HealthTracker> {
        &self.0.watch.book
    }

    /// Watches over the health of everything: checks servers and endpoints as configured, raises alerts, and starts the
    /// servers that are required whenever they are not there. Never ends; without it nothing is checked, no figures raise
    /// an alert, and a required server that has ended is started again when it is needed. For programs that serve for long.
    ///
    /// # Cancellation
    /// Dropping the future ends the watch.
    pub async fn watch_health(&self) {
        let raise = async {
            loop {
                sleep(POLL_INTERVAL).await;
                for alert in self.0.watch.monitor.check(&self.0.watch.book) {
                    self.0.observers.emit(&Event::Alert { alert: &alert });
                }
            }
        };
        tokio::select! {
            () = raise => {}
            () = self.0.watch.checks.run() => {}
            () = self.0.watch.required.keep() => {}
        }
    }

    /// Checks once everything that can be checked: the servers that were needed before, and the health check endpoints
    /// of tools. What it finds counts for their health.
    pub async fn check_health(&self) -> Vec<CheckOutcome> {
        self.0.watch.checks.once().await
    }

    /// Whether every server is ready that the configuration calls required, and no tool needs what was left out of this
    /// build.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.readiness_by(&self.sources())
    }

    /// Whether it is ready if its sources are like this.
    pub(crate) fn readiness_by(&self, sources: &[(String, SourceStatus)]) -> Readiness {
        let required = &self.0.watch.required;
        let mut readiness = Readiness {
            reasons: Vec::new(),
            servers: Vec::new(),
            chaos: self.0.chaos.plan().map(|plan| plan.seed),
        };
        // The first one is the configuration.
        for (name, status) in sources.iter().skip(1) {
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

    /// The tools that cannot run since their kind was left out of this build.
    fn left_out(&self) -> Vec<String> {
        let kinds: HashMap<_, _> = left_out().collect();
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
    /// Whether nothing is missing.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.reasons.is_empty()
    }
}
