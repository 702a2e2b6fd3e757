//! Credentials that are written out in settings.

use serde_json::Value;

use super::{Template, hide_credentials, names_secret};

/// Finds credentials that are written out in settings: whoever reads them has them. A text counts that looks like a credential,
/// or that stands under a name such as `api_key`, unless it is a reference `${…}` or an argument `{…}`. Returns their JSON pointers
/// (RFC 6901).
///
/// # Examples
/// ```
/// use tool_core::{serde_json::json, written_credentials};
///
/// let settings = json!({"headers": {"X-Api-Key": "abc", "Authorization": "Bearer ${TOKEN}", "X-Token": "{token}"}});
/// assert_eq!(written_credentials(&settings), ["/headers/X-Api-Key"]);
/// ```
#[must_use]
pub fn written_credentials(settings: &Value) -> Vec<String> {
    let mut found = Vec::new();
    find(settings, "", "", &mut found);
    found
}

fn find(value: &Value, key: &str, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            // Without its references, which name a credential and hold none.
            let literal: String = match Template::parse(text) {
                Ok(template) => template.parts().filter_map(Result::ok).collect(),
                Err(_) => text.clone(),
            };
            let is_whole = !text.is_empty() && literal == *text && !text.contains('{');
            if (is_whole && names_secret(key)) || hide_credentials(&literal) != literal {
                found.push(pointer.to_owned());
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find(item, "", &format!("{pointer}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let segment = key.replace('~', "~0").replace('/', "~1");
                find(member, key, &format!("{pointer}/{segment}"), found);
            }
        }
        _ => {}
    }
}
