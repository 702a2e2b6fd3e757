//! Definitions that are withheld until an operator accepts them.

use std::sync::Arc;

use serde_json::{Value, json};
use tool_core::{
    DefinitionChange, DefinitionState, ErrorKind, Event, FieldChange, Observers, RawJson, ToolError, rfc3339,
};
use tool_policy::Redactor;
use tool_registry::{OnDefinitionChange, PinKey, Pins, PinsError, Registry, WithheldDefinition};

use crate::{Toolplane, build::error::NotUsable};

/// Maximum number of differences in an error.
const MAX_CHANGES: usize = 10;

/// Members of a definition that a model is told to have changed. Other names could be instructions.
const TOLD_MEMBERS: [&str; 8] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "execution",
    "version",
];

impl Toolplane {
    /// Returns the tools, prompts and resources that are not offered because their definition is new or has changed: see
    /// [`Builder::pins`](crate::Builder::pins).
    #[must_use]
    pub fn withheld(&self) -> Vec<WithheldDefinition> {
        self.0.registry.withheld()
    }

    /// Returns the withheld definitions as JSON objects, for operators: `name`, `feature`, `source`, `upstream_name`; `state`:
    /// `new` or `changed`; `digest` and `accepted_digest` in hexadecimal digits; `accepted_at` and `accepted_by`, if known;
    /// `changes`, each with `path`, `before` and `after`; and the present `definition`. Secrets are hidden.
    #[must_use]
    pub fn withheld_records(&self) -> Vec<Value> {
        self.withheld()
            .iter()
            .map(|withheld| self.withheld_record(withheld))
            .collect()
    }

    fn withheld_record(&self, withheld: &WithheldDefinition) -> Value {
        let definition = withheld.definition();
        let shown = self.0.redactor.hide_in_json(definition);
        let definition: Option<Value> = shown.as_ref().unwrap_or(definition).to().ok();
        let mut record = json!({
            "name": *withheld.name(),
            "feature": withheld.key.feature.as_str(),
            "source": *withheld.key.source,
            "upstream_name": *withheld.key.name,
            "state": withheld.state().as_str(),
            "digest": raw_json::hex(&withheld.digest()),
            "changes": changes_json(&self.changes_of(withheld)),
            "definition": definition,
        });
        if let Some(accepted) = &withheld.accepted {
            record["accepted_digest"] = raw_json::hex(accepted.digest()).into();
            if let Some(at) = accepted.accepted_at() {
                record["accepted_at"] = rfc3339(at).into();
            }
            if let Some(by) = accepted.accepted_by() {
                record["accepted_by"] = Value::from(&**by);
            }
        }
        record
    }

    /// Accepts the withheld definitions that are `selected`, in the name of `by`, and offers them. Returns them. Each is accepted
    /// as it is at the moment; one that changes later is withheld again.
    ///
    /// # Cancellation
    /// If the future is dropped, the definitions may be accepted without being offered yet: call [`Toolplane::refresh_pins`].
    ///
    /// # Errors
    /// If the storage of pins does not work. No definition is accepted then.
    ///
    /// # Examples
    /// ```
    /// # use toolplane::Toolplane;
    /// # async fn run(plane: Toolplane) -> Result<(), Box<dyn std::error::Error>> {
    /// let accepted = plane.accept("ann", |withheld| &*withheld.key.source == "files").await?;
    /// println!("{} definitions of `files` were accepted", accepted.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn accept(
        &self,
        by: &str,
        selected: impl Fn(&WithheldDefinition) -> bool,
    ) -> Result<Vec<WithheldDefinition>, PinsError> {
        let mut accepted = self.withheld();
        accepted.retain(selected);
        if !accepted.is_empty() {
            self.registry().accept(&accepted, by).await?;
        }
        Ok(accepted)
    }

    /// Reads pins that others have stored, such as those of a lock file that has changed, and offers and withholds definitions
    /// accordingly. Returns `true` if pins have changed.
    ///
    /// # Cancellation
    /// Dropping the future leaves the pins as they were.
    ///
    /// # Errors
    /// If the storage of pins cannot be read. The pins stay as they were.
    pub async fn refresh_pins(&self) -> Result<bool, PinsError> {
        self.registry().refresh_pins().await
    }

    /// Returns the key of the pin of a tool, by the name that agents see.
    #[must_use]
    pub fn pin_key_of(&self, tool: &str) -> Option<PinKey> {
        let registry = &self.0.registry;
        let tool = registry.get(tool)?;
        registry.pin_key(&tool)
    }

    /// Returns the storage of pins.
    #[must_use]
    pub fn pins(&self) -> Arc<dyn Pins> {
        self.0.reload.pins()
    }

    /// Returns the spelling `{server}_{tool}` of a tool's name, as in `files_read` for `files__read`, if calls find the tool under
    /// it. Lists never show it, and rules refer to the tool by its name.
    #[must_use]
    pub fn short_spelling(&self, name: &str) -> Option<String> {
        self.0.registry.short_spelling(name)
    }

    /// Returns the error of a call of a withheld tool. A model learns which members have changed, but not the new texts: they
    /// may be instructions. Programs and operators see the differences.
    pub(crate) fn tool_changed(&self, withheld: &WithheldDefinition) -> ToolError {
        let (kind, name) = (withheld.key.feature.as_str(), withheld.name());
        let hint =
            format!("`toolplane tools diff {name}` shows it, `toolplane tools accept {name}` accepts it");
        let changes = self.changes_of(withheld);
        let detail = json!({
            "state": withheld.state().as_str(),
            "digest": raw_json::hex(&withheld.digest()),
            "changes": changes_json(&changes[..changes.len().min(MAX_CHANGES)]),
        });
        let (message, cause) = if withheld.is_new() {
            (
                format!("the {kind} `{name}` is not offered: an operator has to accept its definition first"),
                hint,
            )
        } else {
            let message = format!(
                "the {kind} `{name}` is not offered: its definition has changed since it was accepted{}; an operator has to \
                 accept the new one first",
                told(&changes)
            );
            let shown: Vec<_> = changes
                .iter()
                .take(MAX_CHANGES)
                .map(ToString::to_string)
                .collect();
            (message, format!("{}; {hint}", shown.join("; ")))
        };
        ToolError::new(ErrorKind::ToolChanged, message)
            .with_detail(RawJson::from(detail))
            .with_source(NotUsable(cause))
    }

    fn changes_of(&self, withheld: &WithheldDefinition) -> Vec<FieldChange> {
        withheld.changes_without(|definition| self.0.redactor.hide_in_json(definition))
    }
}

/// Returns the names of the changed members, in parentheses.
fn told(changes: &[FieldChange]) -> String {
    let mut members: Vec<&str> = Vec::new();
    for change in changes {
        let member = change.path.split('/').nth(1).unwrap_or_default();
        let member = TOLD_MEMBERS
            .iter()
            .find(|known| **known == member)
            .map_or("other members", |known| known);
        if !members.contains(&member) {
            members.push(member);
        }
    }
    match members.is_empty() {
        true => String::new(),
        false => format!(" ({})", members.join(", ")),
    }
}

fn changes_json(changes: &[FieldChange]) -> Vec<Value> {
    let changes = changes.iter();
    changes
        .map(|change| json!({"path": change.path, "before": change.before, "after": change.after}))
        .collect()
}

/// Emits an event for every definition that is withheld or accepted, without secrets.
pub(crate) fn emit_definition_changes(registry: &Registry, observers: &Observers, redactor: &Redactor) {
    let (observers, redactor) = (observers.clone(), redactor.clone());
    let listener: OnDefinitionChange =
        Arc::new(move |withheld: &WithheldDefinition, state: &DefinitionState| {
            let changes = withheld.changes_without(|definition| redactor.hide_in_json(definition));
            let change: DefinitionChange = withheld.change_to(state.clone()).with_changes(changes);
            observers.emit(&Event::definition_changed(&change));
        });
    registry.on_definition_change(&listener);
}
