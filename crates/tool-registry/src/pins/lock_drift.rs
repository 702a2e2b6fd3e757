use std::sync::Arc;

use raw_json::RawJson;
use tool_core::FieldChange;

use super::{LockFile, Pin, PinKey, definition_changes};

/// Differences between a lock file and the present definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockDrift {
    /// Definitions that are not in the lock file.
    pub new: Vec<PinKey>,
    /// Definitions of the lock file that no source has any more.
    pub missing: Vec<PinKey>,
    /// Definitions that differ from the lock file, with the differences.
    pub changed: Vec<(PinKey, Vec<FieldChange>)>,
    /// Servers whose command or URL differs from the lock file, with the differences.
    pub servers: Vec<(Arc<str>, Vec<FieldChange>)>,
}

impl LockDrift {
    /// Returns `true` if nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.missing.is_empty() && self.changed.is_empty() && self.servers.is_empty()
    }
}

impl LockFile {
    /// Compares this lock file with the present definitions.
    #[must_use]
    pub fn drift(&self, present: &Self) -> LockDrift {
        let mut drift = LockDrift::default();
        for pin in present.iter() {
            match self.get(pin.key()) {
                None => drift.new.push(pin.key().clone()),
                Some(locked) if locked == pin => {}
                Some(locked) => drift.changed.push((pin.key().clone(), pin_changes(locked, pin))),
            }
        }
        let missing = self.iter().filter(|locked| present.get(locked.key()).is_none());
        drift.missing.extend(missing.map(|locked| locked.key().clone()));
        for source in self.sources() {
            let (locked, now) = (self.server(source), present.server(source));
            if let Some(changes) = server_changes(locked, now) {
                drift.servers.push((source.clone(), changes));
            }
        }
        drift
    }
}

/// Returns the differences of two identities of a server; `None` if there are none or one is not known.
fn server_changes(locked: Option<&RawJson>, now: Option<&RawJson>) -> Option<Vec<FieldChange>> {
    let changes = definition_changes(locked?, now?);
    (!changes.is_empty()).then_some(changes)
}

fn pin_changes(locked: &Pin, now: &Pin) -> Vec<FieldChange> {
    let mut changes = match (locked.definition(), now.definition()) {
        (Some(before), Some(after)) => definition_changes(before, after),
        _ => Vec::new(),
    };
    if locked.version() != now.version() {
        let shown = |pin: &Pin| pin.version().map(|version| format!("\"{version}\""));
        changes.push(FieldChange::new("/version", shown(locked), shown(now)));
    }
    changes
}
