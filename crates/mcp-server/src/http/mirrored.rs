use http::{HeaderMap, HeaderName};
use mcp_wire::{RpcError, header};
use raw_json::{Kind, RawJson};

use super::headers::{decode, mismatch};

/// The arguments of one tool that clients mirror in `Mcp-Param-*` headers (`x-mcp-header` in its schema), so that what
/// stands in front of the server can decide by them without reading bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredParams(Vec<Mirrored>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mirrored {
    header: HeaderName,
    /// The keys that lead to the argument.
    path: Vec<String>,
}

/// What marks an argument in a schema.
const ANNOTATION: &str = "x-mcp-header";

impl MirroredParams {
    /// Reads a tool's `inputSchema`; nothing when no argument is mirrored.
    ///
    /// Only arguments that `properties` alone lead to can be. Clients leave out a tool whose marks are not valid, so
    /// marks elsewhere, or that name no header, are passed over here.
    ///
    /// ```
    /// use mcp_server::MirroredParams;
    /// use raw_json::RawJson;
    ///
    /// let schema = r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
    /// assert!(MirroredParams::in_schema(&RawJson::parse(schema)?).is_some());
    /// assert!(MirroredParams::in_schema(&RawJson::object()).is_none());
    /// # Ok::<(), raw_json::Error>(())
    /// ```
    #[must_use]
    pub fn in_schema(schema: &RawJson) -> Option<Self> {
        let mut found = Vec::new();
        find(schema, &mut Vec::new(), &mut found);
        (!found.is_empty()).then_some(Self(found))
    }
}

/// Looks through a schema, whose depth is bounded by that of a message.
fn find(schema: &RawJson, path: &mut Vec<String>, found: &mut Vec<Mirrored>) {
    if let Some(header) = schema.get(ANNOTATION).and_then(|name| name.string())
        && !header.is_empty()
        && !path.is_empty()
        && let Ok(header) = HeaderName::try_from(format!("{}{header}", header::PARAM_PREFIX))
    {
        found.push(Mirrored {
            header,
            path: path.clone(),
        });
    }
    let Some(properties) = schema.get("properties") else {
        return;
    };
    for (name, property) in properties.members() {
        path.push(name.into_owned());
        find(&property, path, found);
        path.pop();
    }
}

/// Checks that the headers say what the arguments say, and say it of those that are there.
pub(super) fn check(
    params: &MirroredParams,
    headers: &HeaderMap,
    arguments: Option<&RawJson>,
) -> Result<(), RpcError> {
    for Mirrored { header, path } in &params.0 {
        let start = arguments.cloned();
        let value = path.iter().fold(start, |value, key| value?.get(key));
        let mut values = headers.get_all(header).iter();
        let said = values.next();
        if values.next().is_some() {
            return Err(mismatch(format!("the header `{header}` stands there twice")));
        }
        let said = match said {
            None => None,
            Some(said) => {
                let text = said.to_str().ok().and_then(decode);
                let invalid = || mismatch(format!("the header `{header}` has invalid characters or base64"));
                Some(text.ok_or_else(invalid)?)
            }
        };
        if value.as_ref().and_then(text_of).as_deref() != said.as_deref() {
            let message = format!(
                "the header `{header}` does not say what the argument `{}` says",
                path.join(".")
            );
            return Err(mismatch(message));
        }
    }
    Ok(())
}

/// A value as a header says it; nothing for one that is not mirrored.
fn text_of(value: &RawJson) -> Option<String> {
    match value.kind() {
        Kind::String => value.string(),
        Kind::Bool => Some(value.as_str().to_owned()),
        Kind::Number => Some(decimal(value.as_str())),
        Kind::Null | Kind::Array | Kind::Object => None,
    }
}

/// An integer in decimal, however it was written.
fn decimal(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return text.to_owned();
    }
    let whole = text.parse().ok().filter(|double: &f64| double.fract() == 0.0);
    whole.map_or_else(|| text.to_owned(), |double| format!("{double:.0}"))
}
