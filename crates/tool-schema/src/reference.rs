use std::borrow::Cow;

use serde_json::Value;

use crate::document::each_subschema;

/// Target of a `$ref`, resolved without URIs.
pub(crate) enum Target<'a> {
    /// Part of the same document.
    Part(&'a Value),
    /// Target that only a URI resolver finds: an embedded resource, or a draft's own schema.
    Elsewhere,
}

/// Resolves a reference within one document with these anchors.
pub(crate) fn resolve<'a>(root: &'a Value, anchors: &[(&'a str, &'a Value)], reference: &str) -> Target<'a> {
    let Some(fragment) = reference.strip_prefix('#') else {
        return Target::Elsewhere;
    };
    if fragment.is_empty() {
        return Target::Part(root);
    }
    let fragment = percent_decode(fragment);
    let found = if fragment.starts_with('/') {
        root.pointer(&fragment)
    } else {
        anchors
            .iter()
            .find(|(name, _)| *name == fragment)
            .map(|(_, schema)| *schema)
    };
    found.map_or(Target::Elsewhere, Target::Part)
}

/// Decodes the escapes of a URI fragment. Returns the text as it is if that is not UTF-8.
pub(crate) fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text
            .get(at + 1..at + 3)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Returns the anchors of a document by their names.
pub(crate) fn anchors(root: &Value) -> Vec<(&str, &Value)> {
    let mut anchors = Vec::new();
    each_subschema(root, &mut |_, schema| {
        let names = ["$anchor", "$dynamicAnchor", "$id", "id"].map(|keyword| {
            let name = schema.get(keyword)?.as_str()?;
            // Older drafts write an anchor as an identifier.
            let is_identifier = keyword.ends_with("id");
            if is_identifier {
                name.strip_prefix('#')
            } else {
                Some(name)
            }
        });
        anchors.extend(names.into_iter().flatten().map(|name| (name, schema)));
    });
    anchors
}
