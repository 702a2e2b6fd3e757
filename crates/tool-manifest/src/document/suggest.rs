pub(crate) use tool_settings::suggest::{list, nearest, shown, value};
use tool_settings::{Sections, suggest::list_first};

use crate::document::spellings::{self, Spelling};

/// Maximum number of keys in a hint: as many as the largest map of a configuration has.
const MAX_KEYS: usize = 52;

/// Returns what to try instead of an unknown key.
pub(crate) fn key(sections: &Sections, written: &str, known: &[&str]) -> String {
    match spellings::find(sections, written, known) {
        Some(Spelling::Key(key)) => return format!("did you mean `{key}`?"),
        Some(Spelling::Advice(advice)) => return advice.to_owned(),
        None => {}
    }
    match nearest(written, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known keys are {}", list_first(&preferred(known), MAX_KEYS)),
    }
}

/// Returns the known key that an unknown one means.
pub(crate) fn meant(sections: &Sections, written: &str, known: &[&'static str]) -> Option<&'static str> {
    match spellings::find(sections, written, known) {
        Some(Spelling::Key(key)) => Some(key),
        Some(Spelling::Advice(_)) => None,
        None => nearest(written, known),
    }
}

/// Removes the names in camel case: each is another spelling of one that is listed, such as `inputSchema`.
fn preferred<'a>(known: &[&'a str]) -> Vec<&'a str> {
    let is_plain = |name: &str| !name.chars().any(char::is_uppercase);
    known
        .iter()
        .filter(|name| is_plain(name) || !known.iter().any(|other| is_plain(other)))
        .copied()
        .collect()
}
