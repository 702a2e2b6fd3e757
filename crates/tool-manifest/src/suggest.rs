use crate::spellings::{self, Spelling};

/// How many names a hint lists at most.
const MAX_LISTED: usize = 12;

/// Maximum number of keys in a hint: as many as the largest map of a configuration has.
const MAX_KEYS: usize = 48;

/// Tells what to try in place of an unknown key.
pub(crate) fn key(written: &str, known: &[&str]) -> String {
    match spellings::of(written, known) {
        Some(Spelling::Key(key)) => return format!("did you mean `{key}`?"),
        Some(Spelling::Advice(advice)) => return advice.to_owned(),
        None => {}
    }
    match nearest(written, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known keys are {}", first(&preferred(known), MAX_KEYS)),
    }
}

/// The known key that an unknown one stands for.
pub(crate) fn meant(written: &str, known: &[&'static str]) -> Option<&'static str> {
    match spellings::of(written, known) {
        Some(Spelling::Key(key)) => Some(key),
        Some(Spelling::Advice(_)) => None,
        None => nearest(written, known),
    }
}

/// The names without those in camel case: each is another spelling of one that is listed, such as `inputSchema`.
fn preferred<'a>(known: &[&'a str]) -> Vec<&'a str> {
    let is_plain = |name: &str| !name.chars().any(char::is_uppercase);
    known
        .iter()
        .filter(|name| is_plain(name) || !known.iter().any(|other| is_plain(other)))
        .copied()
        .collect()
}

/// What to try in place of an unknown value.
pub(crate) fn value(written: &str, known: &[&str]) -> String {
    match nearest(written, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", list(known)),
    }
}

/// The known name that was probably meant.
pub(crate) fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    // Nobody means a short name by a long one, and comparing takes time.
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

/// The same name for `inputSchema`, `input-schema` and `input_schema`.
pub(crate) fn normal(name: &str) -> String {
    name.chars()
        .filter(|c| *c != '_' && *c != '-')
        .flat_map(char::to_lowercase)
        .collect()
}

/// Names in backticks, the first ones if there are many.
pub(crate) fn list(names: &[&str]) -> String {
    first(names, MAX_LISTED)
}

fn first(names: &[&str], most: usize) -> String {
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

/// A text of the user for a message: its beginning.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(60).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}
