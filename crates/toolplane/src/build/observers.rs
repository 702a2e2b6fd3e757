//! Observers that every toolplane has.

use std::{borrow::Cow, sync::Arc};

use tokio::sync::watch::Sender;
use tool_core::{AccessedResource, Clock, Event, Observe, Observers, OnUpdate, SourceState, Update};
use tool_manifest::Configuration;
use tool_observe::{
    AccessLog, AlertLog, AlertMonitor, AlertSettings, AuthoringLog, BreakerLog, DefinitionLog, HealthTracker,
    SourceLog, SwitchLog,
};
use tool_policy::Redactor;
use tool_registry::Registry;

use crate::{
    operate::checks::Checks, operate::health::HealthMonitor, operate::pins::emit_definition_changes,
    operate::required::Required, outgoing::client::Outbound,
};

/// Returns the built-in observers: the health book, and those that write the log.
pub(crate) fn own_observers(watch: &HealthMonitor) -> Vec<Arc<dyn Observe>> {
    vec![
        watch.book.clone(),
        Arc::new(AlertLog),
        Arc::new(AccessLog),
        Arc::new(SwitchLog),
        Arc::new(BreakerLog),
        Arc::new(SourceLog),
        Arc::new(DefinitionLog),
        Arc::new(AuthoringLog),
    ]
}

/// Emits an event for every change of state of a source, for every access that its sandbox decides about, and for every definition that is withheld or accepted.
pub(crate) fn emit_changes(registry: &Registry, observers: &Observers, redactor: &Redactor) {
    emit_source_changes(registry, observers, redactor);
    emit_accesses(registry, observers, redactor);
    emit_definition_changes(registry, observers, redactor);
}

fn emit_source_changes(registry: &Registry, observers: &Observers, redactor: &Redactor) {
    let (observers, redactor) = (observers.clone(), redactor.clone());
    registry.on_update(
        &(Arc::new(move |update: &Update| {
            if let Update::State(change) = update {
                let mut change = change.clone();
                for state in [&mut change.from, &mut change.to] {
                    // The output of a program may contain its secrets.
                    if let SourceState::Failed(reason) = state
                        && let Cow::Owned(hidden) = redactor.hide_in_text(reason)
                    {
                        *reason = hidden;
                    }
                }
                observers.emit(&Event::source_changed(&change));
            }
        }) as OnUpdate),
    );
}

/// Emits an event for every access that the sandbox of a source decides about.
fn emit_accesses(registry: &Registry, observers: &Observers, redactor: &Redactor) {
    let (observers, redactor) = (observers.clone(), redactor.clone());
    registry.on_update(
        &(Arc::new(move |update: &Update| {
            if let Update::Access(access) = update {
                let mut access = access.clone();
                // A program may ask for a host that contains one of its secrets.
                if let AccessedResource::Host { host, .. } = &mut access.resource
                    && let Cow::Owned(hidden) = redactor.hide_in_text(host)
                {
                    *host = hidden;
                }
                observers.emit(&Event::access_decided(&access));
            }
        }) as OnUpdate),
    );
}

/// Creates the monitor of the health of all tools and servers.
pub(crate) fn watch(
    configuration: &Configuration,
    registry: &Registry,
    outbound: &Arc<Outbound>,
    redactor: &Redactor,
    clock: &Arc<dyn Clock>,
) -> HealthMonitor {
    let book = Arc::new(HealthTracker::new(clock.clone(), configuration.health.window));
    HealthMonitor {
        book: book.clone(),
        monitor: AlertMonitor::new(alert_settings(configuration)),
        checks: Checks {
            registry: registry.clone(),
            book,
            outbound: outbound.clone(),
            redactor: redactor.clone(),
            spec: Sender::new(configuration.health.clone()),
        },
        required: Required::new(configuration, registry.clone()),
    }
}

/// Returns the thresholds of alerts.
pub(crate) fn alert_settings(configuration: &Configuration) -> AlertSettings {
    let alerts = &configuration.alerts;
    let mut settings = AlertSettings::default();
    settings.success_rate = alerts.success_rate;
    settings.mean_latency = alerts.mean_latency;
    settings.min_calls = alerts.min_calls.into();
    settings.cooldown = alerts.cooldown;
    settings
}
