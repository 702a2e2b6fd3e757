//! Names in messages: the nearest known name, lists of names, and excerpts of the user's text.

/// Maximum number of names in a hint.
const MAX_LISTED: usize = 12;

/// Returns the known name that was probably meant.
#[must_use]
pub fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    // A long name is not a typo of a short one, and the comparison is costly.
    if written.len() > 64 {
        return None;
    }
    let plain = normal(written);
    let (near, distance) = known
        .iter()
        .map(|name| (*name, strsim::damerau_levenshtein(&plain, &normal(name))))
        .min_by_key(|(_, distance)| *distance)?;
    let allowed = (plain.chars().count() / 3).clamp(1, 3);
    (distance <= allowed).then_some(near)
}

/// Normalizes a name: the same for `inputSchema`, `input-schema` and `input_schema`.
#[must_use]
pub fn normal(name: &str) -> String {
    name.chars()
        .filter(|c| *c != '_' && *c != '-')
        .flat_map(char::to_lowercase)
        .collect()
}

/// Lists names in backticks; only the first ones if there are many.
#[must_use]
pub fn list(names: &[&str]) -> String {
    list_first(names, MAX_LISTED)
}

/// Lists at most this many names in backticks.
#[must_use]
pub fn list_first(names: &[&str], most: usize) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(most)
        .map(|name| format!("`{}`", shown(name)))
        .collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Truncates the user's text for a message.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(60).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}

/// Returns a hint with known values to use instead of an unknown one.
#[must_use]
pub fn value(written: &str, known: &[&str]) -> String {
    match nearest(written, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", list(known)),
    }
}
