use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tool_core::{Alert, AlertKind, AlertPhase};

use crate::alerts::KINDS;

/// Firing alerts of one subject, for the kinds that also resolve. Alerts about a disabled tool have a metric elsewhere, and
/// failures of single calls do not resolve.
#[derive(Debug, Default)]
pub(super) struct FiringAlerts {
    /// Number of firing alerts of each kind. It exceeds one only where several subjects are counted together.
    now: [AtomicU64; KINDS.len()],
    has_fired: [AtomicBool; KINDS.len()],
}

impl FiringAlerts {
    /// Returns `true` if alerts of this kind are counted here.
    pub(super) fn has_kind(kind: AlertKind) -> bool {
        KINDS.contains(&kind)
    }

    pub(super) fn count(&self, alert: &Alert) {
        let Some(index) = KINDS.iter().position(|kind| *kind == alert.kind) else {
            return;
        };
        let now = &self.now[index];
        match alert.phase {
            AlertPhase::Firing => {
                now.fetch_add(1, Ordering::Relaxed);
                self.has_fired[index].store(true, Ordering::Relaxed);
            }
            // Never below zero: the alert may have begun before this process counted.
            AlertPhase::Resolved => {
                let less = |count: u64| count.checked_sub(1);
                let _ = now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
        }
    }

    /// Returns each kind that has ever fired, with the number of alerts that fire now.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kinds = KINDS.iter().zip(&self.now).zip(&self.has_fired);
        kinds
            .filter(|(_, has_fired)| has_fired.load(Ordering::Relaxed))
            .map(|((kind, now), _)| (kind.as_str(), now.load(Ordering::Relaxed)))
    }
}
