//! Texts with placeholders, and URI templates.

use raw_json::{JsonKind, RawJson};

/// Replaces each `{{ path }}` by its value; an unknown path becomes empty.
pub(crate) fn fill(text: &str, value: impl Fn(&str) -> Option<RawJson>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((path, after)) = behind.split_once("}}") else {
            break;
        };
        out.push_str(before);
        if let Some(value) = value(path.trim()) {
            match value.string() {
                Some(text) => out.push_str(&text),
                None => out.push_str(value.as_str()),
            }
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the value at a path such as `place.city` or `list.0`.
pub(crate) fn at(root: &RawJson, path: &str) -> Option<RawJson> {
    path.split('.')
        .try_fold(root.clone(), |value, part| match value.kind() {
            JsonKind::Array => value.items().nth(part.parse().ok()?),
            _ => value.get(part),
        })
}

/// Returns the values of a template's parts in braces for a URI that it matches.
pub(crate) fn matches(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
    let Some((before, behind)) = template.split_once('{') else {
        return (template == uri).then(Vec::new);
    };
    let (name, after) = behind.split_once('}')?;
    let rest = uri.strip_prefix(before)?;
    // Tries the shortest value first. A part matches at least one character.
    let ends = rest
        .char_indices()
        .skip(1)
        .map(|(at, _)| at)
        .chain((!rest.is_empty()).then_some(rest.len()));
    for end in ends {
        if let Some(mut values) = matches(after, &rest[end..]) {
            let name = name.trim_start_matches(['+', '/', '#', '?', '&', '.', ';']);
            values.insert(0, (name.to_owned(), rest[..end].to_owned()));
            return Some(values);
        }
    }
    None
}
