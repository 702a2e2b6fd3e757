//! Capabilities that a client declared.

use mcp_wire::{RpcError, code, method};
use raw_json::{JsonKind, RawJson};

/// Returns `true` if a client with these capabilities accepts any requests of a server.
pub(crate) fn is_askable(capabilities: &RawJson) -> bool {
    let mut declared = capabilities.parts();
    declared.any(|(key, _)| matches!(&*key, "elicitation" | "sampling" | "roots"))
}

/// Checks that the client declared the capability for this request to it.
pub(crate) fn check(
    capabilities: Option<&RawJson>,
    method: &str,
    params: Option<&RawJson>,
) -> Result<(), RpcError> {
    let Some((capability, feature)) = needed(method, params) else {
        let message = format!("a client cannot be asked `{method}`");
        return Err(RpcError::new(code::INTERNAL_ERROR, message));
    };
    let declared = capabilities
        .and_then(|capabilities| capabilities.get(capability))
        .filter(|declared| declared.kind() == JsonKind::Object);
    let has_feature = |declared: &RawJson| match feature {
        None => true,
        // A client that names no mode of elicitation supports the first one.
        Some("form") => declared.members().next().is_none() || declared.get("form").is_some(),
        Some(feature) => declared.get(feature).is_some(),
    };
    if declared.as_ref().is_some_and(has_feature) {
        return Ok(());
    }
    let inner = match feature {
        Some(feature) if feature != "form" => RawJson::from_members(&[(feature, RawJson::object())]),
        _ => RawJson::object(),
    };
    let required = RawJson::from_members(&[(
        "requiredCapabilities",
        RawJson::from_members(&[(capability, inner)]),
    )]);
    let name = match feature {
        Some(feature) => format!("{capability}.{feature}"),
        None => capability.to_owned(),
    };
    let message = format!("this needs the capability `{name}`, which the client did not declare");
    Err(RpcError::new(code::MISSING_CLIENT_CAPABILITY, message).with_data(required))
}

/// Returns `true` if the client declared an extension.
pub(crate) fn has_extension(capabilities: Option<&RawJson>, name: &str) -> bool {
    let extensions = capabilities.and_then(|capabilities| capabilities.get("extensions"));
    extensions.is_some_and(|extensions| extensions.get(name).is_some())
}

/// Checks that the client declared an extension.
pub(crate) fn check_extension(capabilities: Option<&RawJson>, name: &str) -> Result<(), RpcError> {
    if has_extension(capabilities, name) {
        return Ok(());
    }
    let required =
        RawJson::from_members(&[("extensions", RawJson::from_members(&[(name, RawJson::object())]))]);
    let message = format!("this needs the extension `{name}`, which the client did not declare");
    Err(RpcError::new(code::MISSING_CLIENT_CAPABILITY, message)
        .with_data(RawJson::from_members(&[("requiredCapabilities", required)])))
}

/// Returns the capability that a request to the client needs, and the part of it.
fn needed(method: &str, params: Option<&RawJson>) -> Option<(&'static str, Option<&'static str>)> {
    let has = |key: &str| params.is_some_and(|params| params.get(key).is_some());
    match method {
        method::ROOTS_LIST => Some(("roots", None)),
        method::SAMPLING_CREATE_MESSAGE if has("tools") || has("toolChoice") => {
            Some(("sampling", Some("tools")))
        }
        method::SAMPLING_CREATE_MESSAGE => Some(("sampling", None)),
        method::ELICITATION_CREATE => {
            let mode = params.and_then(|params| params.get("mode")?.string());
            match mode.as_deref() {
                None | Some("form") => Some(("elicitation", Some("form"))),
                Some("url") => Some(("elicitation", Some("url"))),
                Some(_) => None,
            }
        }
        _ => None,
    }
}
