//! Withheld definitions, and their acceptance by operators.

use std::{collections::HashMap, sync::Arc};

use tool_core::{Clock, DefinitionState, SystemClock, Tool};

use super::{Registry, ResolveReason, Shared};
use crate::{PinKey, PinsError, Snapshot, WithheldDefinition, pins::upstream_name};

/// Callback for definitions that are withheld or accepted, with their new state. Must not block.
pub type OnDefinitionChange = Arc<dyn Fn(&WithheldDefinition, &DefinitionState) + Send + Sync>;

impl Registry {
    /// Registers a receiver of definitions that are withheld from now on, and of those that are accepted. Definitions that are
    /// withheld already are reported at once.
    pub fn on_definition_change(&self, listener: &OnDefinitionChange) {
        let mut listeners = self.0.definition_listeners.lock();
        listeners.push(Arc::clone(listener));
        for withheld in self.snapshot().withheld() {
            listener(withheld, &withheld.state());
        }
    }

    /// Returns the definitions that are withheld: those of the shared lists, then those that only lists of single clients have.
    #[must_use]
    pub fn withheld(&self) -> Vec<WithheldDefinition> {
        let mut all: Vec<WithheldDefinition> = self.snapshot().withheld().to_vec();
        for withheld in self.0.clients.withheld() {
            if !all.iter().any(|known| known.is_same(&withheld)) {
                all.push(withheld);
            }
        }
        all
    }

    /// Accepts definitions that are withheld, in the name of `by`, and offers them. Each is accepted as it is here: one that its
    /// source has changed again in the meantime stays withheld.
    ///
    /// # Cancellation
    /// If the future is dropped, the definitions may be accepted without being offered: call [`Registry::pins_changed`].
    ///
    /// # Errors
    /// If the storage of the pins does not work. No definition is accepted then.
    pub async fn accept(&self, definitions: &[WithheldDefinition], by: &str) -> Result<(), PinsError> {
        let store = self.0.parts.load().pins.store().clone();
        let now = SystemClock::new().wall();
        let pins = definitions
            .iter()
            .map(|withheld| withheld.pin().accepted(now, by));
        store.accept(pins.collect()).await?;
        self.pins_changed();
        let by: Arc<str> = by.into();
        for withheld in definitions {
            let state = DefinitionState::Accepted { by: by.clone() };
            self.0.report(withheld, &state);
        }
        Ok(())
    }

    /// Returns the key of the pin of a tool, prompt or resource that a source lists now.
    #[must_use]
    pub fn pin_key(&self, tool: &Tool) -> Option<PinKey> {
        let source = self.find_source(tool)?;
        let descriptor = tool.descriptor();
        Some(PinKey::new(
            source.name(),
            descriptor.feature,
            upstream_name(descriptor),
        ))
    }

    /// Compares all definitions with the present pins, after a storage of pins has changed.
    pub fn pins_changed(&self) {
        self.resolve(ResolveReason::Pins);
    }

    /// Reads the pins that others have stored, and compares all definitions with them if there are any. Returns `true` if the
    /// pins have changed.
    ///
    /// # Cancellation
    /// Dropping the future leaves the pins as they were.
    ///
    /// # Errors
    /// If the storage cannot be read. The pins stay as they were.
    pub async fn refresh_pins(&self) -> Result<bool, PinsError> {
        let store = self.0.parts.load().pins.store().clone();
        let is_changed = store.refresh().await?;
        if is_changed {
            self.pins_changed();
        }
        Ok(is_changed)
    }
}

impl Shared {
    /// Reports the definitions that are withheld now and were not in any of the other snapshots.
    pub(crate) fn report_withheld(&self, others: &[&Snapshot], now: &Snapshot) {
        // Without the pins, everything is withheld, and the failure is reported once by whoever reads them.
        if now.withheld().is_empty() || now.pins.is_unknown() {
            return;
        }
        let mut known = HashMap::<_, Vec<_>>::new();
        for withheld in others.iter().flat_map(|other| other.withheld()) {
            known.entry(&withheld.key).or_default().push(withheld);
        }
        for withheld in now.withheld() {
            let known = known.get(&withheld.key);
            if !known.is_some_and(|known| known.iter().any(|known| known.is_same(withheld))) {
                self.report(withheld, &withheld.state());
            }
        }
    }

    fn report(&self, definition: &WithheldDefinition, state: &DefinitionState) {
        // The lock is not held while listeners run.
        let listeners = self.definition_listeners.lock().clone();
        for listener in listeners {
            listener(definition, state);
        }
    }
}
