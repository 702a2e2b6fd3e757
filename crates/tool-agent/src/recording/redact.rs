//! Secrets are left out of recordings.

use std::borrow::Cow;

use raw_json::{JsonKind, RawJson};
use tool_core::{HIDDEN, hide_credentials, names_secret};

/// Returns a value without secrets: members whose name denotes one, and credentials within texts. A value without any stays as it is,
/// byte for byte.
pub(super) fn redacted(value: &RawJson) -> RawJson {
    match without_secrets(value) {
        Some(changed) => changed,
        None => value.clone(),
    }
}

/// Returns the value without its secrets, or `None` if it has none.
fn without_secrets(value: &RawJson) -> Option<RawJson> {
    match value.kind() {
        JsonKind::Object => {
            let mut is_changed = false;
            let mut members: Vec<(Cow<'_, str>, RawJson)> = Vec::new();
            for (name, member) in value.members() {
                let is_secret = names_secret(&name) && member.kind() == JsonKind::String;
                let changed = match is_secret {
                    true => Some(RawJson::from(HIDDEN)),
                    false => without_secrets(&member),
                };
                is_changed |= changed.is_some();
                members.push((name, changed.unwrap_or(member)));
            }
            let members: Vec<_> = members
                .iter()
                .map(|(name, member)| (&**name, member.clone()))
                .collect();
            is_changed.then(|| RawJson::from_members(&members))
        }
        JsonKind::Array => {
            let mut is_changed = false;
            let mut items = Vec::new();
            for item in value.items() {
                let changed = without_secrets(&item);
                is_changed |= changed.is_some();
                items.push(changed.unwrap_or(item));
            }
            is_changed.then(|| RawJson::from_items(&items))
        }
        JsonKind::String => match hide_credentials(&value.string()?) {
            Cow::Borrowed(_) => None,
            Cow::Owned(hidden) => Some(RawJson::from(hidden.as_str())),
        },
        _ => None,
    }
}
