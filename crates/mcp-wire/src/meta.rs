//! A shallow look at `_meta`, and changes to it that leave every other byte of the parameters alone.

use raw_json::{JsonKind, RawJson};

use crate::meta_key;

/// The `_meta` of parameters or of a result, if it has one that is an object.
#[must_use]
pub fn meta(value: &RawJson) -> Option<RawJson> {
    value.get("_meta").filter(|meta| meta.kind() == JsonKind::Object)
}

/// The token under which the sender of these parameters wants progress, as it was written.
#[must_use]
pub fn progress_token(params: &RawJson) -> Option<RawJson> {
    let token = meta(params)?.get(meta_key::PROGRESS_TOKEN)?;
    matches!(token.kind(), JsonKind::String | JsonKind::Number).then_some(token)
}

/// These parameters with members added to `_meta`, or replaced there.
///
/// Parameters that are no object count as none: the protocol knows no others.
#[must_use]
pub fn with_meta(params: Option<&RawJson>, members: &[(&str, RawJson)]) -> RawJson {
    let none = RawJson::object();
    let params = params
        .filter(|params| params.kind() == JsonKind::Object)
        .unwrap_or(&none);
    params
        .with_members_in("_meta", members)
        .expect("parameters are an object")
}

/// These parameters without a progress token, for a hop on which nobody listens.
#[must_use]
pub fn without_progress_token(params: &RawJson) -> RawJson {
    let Some(old) = meta(params).filter(|meta| meta.get(meta_key::PROGRESS_TOKEN).is_some()) else {
        return params.clone();
    };
    let new = old
        .without_members(&[meta_key::PROGRESS_TOKEN])
        .expect("`_meta` is an object");
    params
        .with_members(&[("_meta", new)])
        .expect("parameters with `_meta` are an object")
}

/// The parameters of `notifications/cancelled`.
#[must_use]
pub fn cancelled_params(request: &RawJson, reason: Option<&str>) -> RawJson {
    let mut members = vec![("requestId", request.clone())];
    members.extend(reason.map(|reason| ("reason", RawJson::from(reason))));
    RawJson::from_members(&members)
}
