/// How many names a hint lists at most.
const MAX_LISTED: usize = 12;

/// What to try in place of an unknown key.
pub(crate) fn key(written: &str, known: &[&str]) -> String {
    match nearest(written, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known keys are {}", list(known)),
    }
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
fn normal(name: &str) -> String {
    name.chars()
        .filter(|c| *c != '_' && *c != '-')
        .flat_map(char::to_lowercase)
        .collect()
}

/// Names in backticks, the first ones if there are many.
pub(crate) fn list(names: &[&str]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(MAX_LISTED)
        .map(|name| format!("`{}`", shown(name)))
        .collect();
    let more = if names.len() > MAX_LISTED {
        " and others"
    } else {
        ""
    };
    format!("{}{more}", shown.join(", "))
}

/// A text of the user for a message: its beginning.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(60).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}
