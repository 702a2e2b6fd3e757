//! Secrets are left out of recordings.

use raw_json::{JsonKind, RawJson};
use tool_core::{HIDDEN, hide_credentials, names_secret};

/// Returns a value without secrets: members whose name denotes one, and credentials within texts.
pub(super) fn redacted(value: &RawJson) -> RawJson {
    match value.kind() {
        JsonKind::Object => {
            let members: Vec<_> = value
                .members()
                .map(|(name, member)| {
                    let is_secret = names_secret(&name) && member.kind() == JsonKind::String;
                    let member = match is_secret {
                        true => RawJson::from(HIDDEN),
                        false => redacted(&member),
                    };
                    (name, member)
                })
                .collect();
            let members: Vec<_> = members
                .iter()
                .map(|(name, member)| (&**name, member.clone()))
                .collect();
            RawJson::from_members(&members)
        }
        JsonKind::Array => {
            let items: Vec<_> = value.items().map(|item| redacted(&item)).collect();
            RawJson::from_items(&items)
        }
        JsonKind::String => match value.string() {
            Some(text) => match hide_credentials(&text) {
                std::borrow::Cow::Borrowed(_) => value.clone(),
                std::borrow::Cow::Owned(hidden) => RawJson::from(hidden.as_str()),
            },
            None => value.clone(),
        },
        _ => value.clone(),
    }
}
