use std::sync::Arc;

use raw_json::RawJson;
use tool_core::{Clock, DefinitionChange, DefinitionState, FieldChange, SystemClock, Tool, Trust};

use super::{Pin, PinKey, PinMode, PinPolicy, PinSet, definition_changes, policy::upstream_name};
use crate::snapshot;

/// Name of who accepted a definition that was accepted by its first use.
const FIRST_USE: &str = "first use";

/// Tool, prompt, resource or resource template that is not offered because its definition was not accepted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WithheldDefinition {
    /// Entry as it would be offered.
    pub tool: Arc<Tool>,
    /// Key of its pin.
    pub key: PinKey,
    /// Accepted definition; `None` if none was accepted under its key.
    pub accepted: Option<Arc<Pin>>,
}

impl WithheldDefinition {
    /// Returns the present definition, as the source has it.
    #[must_use]
    pub fn definition(&self) -> &RawJson {
        pinned_definition(&self.tool)
    }

    /// Returns the SHA-256 of the present definition's canonical form.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        raw_json::digest(self.definition())
    }

    /// Returns `true` if no definition was accepted under its key.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.accepted.is_none()
    }

    /// Returns the state of the definition: new or changed.
    #[must_use]
    pub fn state(&self) -> DefinitionState {
        match self.is_new() {
            true => DefinitionState::New,
            false => DefinitionState::Changed,
        }
    }

    /// Returns the differences from the accepted definition, shortened and escaped. Empty if nothing was accepted, or only the
    /// digest of the accepted definition is known.
    #[must_use]
    pub fn changes(&self) -> Vec<FieldChange> {
        self.changes_without(|_| None)
    }

    /// Returns [`WithheldDefinition::changes`] without secrets. `redact` replaces the secrets in a definition, and returns `None`
    /// if there are none.
    #[must_use]
    pub fn changes_without(&self, redact: impl Fn(&RawJson) -> Option<RawJson>) -> Vec<FieldChange> {
        let Some(accepted) = &self.accepted else {
            return Vec::new();
        };
        let shown = |definition: &RawJson| redact(definition).unwrap_or_else(|| definition.clone());
        let before = accepted.definition().map(shown);
        let after = shown(self.definition());
        let mut changes = before.map_or_else(Vec::new, |before| definition_changes(&before, &after));
        let version = pinned_version(&self.tool);
        let accepted_version = accepted.version().map(|version| &**version);
        if accepted_version != version {
            let shown = |version: Option<&str>| version.map(|version| format!("\"{version}\""));
            changes.push(FieldChange::new(
                "/version",
                shown(accepted_version),
                shown(version),
            ));
        }
        changes
    }

    /// Returns the name by which agents know the entry: the URI of a resource or template.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        snapshot::key(self.tool.descriptor())
    }

    /// Returns the pin that accepts the present definition.
    #[must_use]
    pub fn pin(&self) -> Pin {
        pin(self.key.clone(), &self.tool)
    }

    /// Returns the change of its definition to this state, for observers.
    #[must_use]
    pub fn change_to(&self, state: DefinitionState) -> DefinitionChange {
        let (source, feature) = (self.key.source.clone(), self.key.feature);
        DefinitionChange::new(source, feature, self.name(), self.digest(), state)
    }

    /// Returns `true` if both are the same definition of the same entry, compared with the same pin.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.key == other.key
            && self.is_new() == other.is_new()
            && self.name() == other.name()
            && (Arc::ptr_eq(&self.tool, &other.tool) || self.digest() == other.digest())
    }
}

/// Result of the comparison of a tool with its pin.
pub(crate) enum PinCheck {
    /// It is offered.
    Offered,
    /// It is offered, and accepted by its first use.
    FirstUse(Box<Pin>),
    /// It is withheld.
    Withheld(Box<WithheldDefinition>),
}

/// Compares a tool with its pin. A kept list of an earlier run is no first use.
pub(crate) fn check_pin(
    policy: &PinPolicy,
    pins: &PinSet,
    source: &str,
    tool: &Arc<Tool>,
    is_kept: bool,
) -> PinCheck {
    let descriptor = tool.descriptor();
    let mode = policy.mode_of(source, descriptor.origin.trust);
    if mode == PinMode::Off {
        return PinCheck::Offered;
    }
    let name = upstream_name(descriptor);
    let accepted = pins.get(source, descriptor.feature, &name);
    let key = || PinKey::new(source, descriptor.feature, name.clone());
    match (accepted, mode) {
        (Some(pin), _) if pin.matches(pinned_definition(tool), pinned_version(tool)) => PinCheck::Offered,
        (None, PinMode::FirstUse) if is_kept && !pins.is_unknown() => PinCheck::Offered,
        (None, PinMode::FirstUse) if !pins.is_unknown() => {
            let now = SystemClock::new().wall();
            PinCheck::FirstUse(Box::new(pin(key(), tool).accepted(now, FIRST_USE)))
        }
        (accepted, _) => PinCheck::Withheld(Box::new(WithheldDefinition {
            tool: tool.clone(),
            key: key(),
            accepted: accepted.cloned(),
        })),
    }
}

/// Returns the pin of a tool's present definition.
pub(crate) fn pin(key: PinKey, tool: &Tool) -> Pin {
    Pin::new(key, pinned_definition(tool).clone()).with_version(pinned_version(tool))
}

/// Returns the definition that is pinned: that of the server, whatever name an operator gives it, or the one that agents see.
fn pinned_definition(tool: &Tool) -> &RawJson {
    let definition = tool.descriptor().definition.as_ref();
    definition.unwrap_or_else(|| tool.definition())
}

/// Returns the version of a tool that no server lists.
fn pinned_version(tool: &Tool) -> Option<&str> {
    let descriptor = tool.descriptor();
    match descriptor.origin.trust {
        Trust::Upstream => None,
        _ => descriptor.version.as_deref(),
    }
}
