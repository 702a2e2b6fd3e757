//! Shallow reads of `_meta`, and changes to it that leave every other byte of the parameters as it is.

use raw_json::{JsonKind, RawJson};

use crate::{meta_key, param_key};

/// Returns the `_meta` of parameters or of a result, if it is an object.
#[must_use]
pub fn meta(value: &RawJson) -> Option<RawJson> {
    value
        .get(param_key::META)
        .filter(|meta| meta.kind() == JsonKind::Object)
}

/// Returns the token under which the sender of these parameters wants progress, as it was written.
#[must_use]
pub fn progress_token(params: &RawJson) -> Option<RawJson> {
    let token = meta(params)?.get(meta_key::PROGRESS_TOKEN)?;
    matches!(token.kind(), JsonKind::String | JsonKind::Number).then_some(token)
}

/// Returns these parameters with members added to `_meta`, or replaced there.
///
/// Parameters that are not an object are treated as absent: the protocol knows no others.
#[must_use]
pub fn with_meta(params: Option<&RawJson>, members: &[(&str, RawJson)]) -> RawJson {
    let none = RawJson::object();
    let params = params
        .filter(|params| params.kind() == JsonKind::Object)
        .unwrap_or(&none);
    params
        .with_members_in(param_key::META, members)
        .expect("parameters are an object")
}

/// Returns these parameters without a progress token, for a hop on which nobody listens for progress.
#[must_use]
pub fn without_progress_token(params: &RawJson) -> RawJson {
    let Some(old) = meta(params).filter(|meta| meta.get(meta_key::PROGRESS_TOKEN).is_some()) else {
        return params.clone();
    };
    let new = old
        .without_members(&[meta_key::PROGRESS_TOKEN])
        .expect("`_meta` is an object");
    params
        .with_members(&[(param_key::META, new)])
        .expect("parameters with `_meta` are an object")
}

/// Builds the parameters of `notifications/cancelled`.
#[must_use]
pub fn cancelled_params(request: &RawJson, reason: Option<&str>) -> RawJson {
    let mut members = vec![("requestId", request.clone())];
    members.extend(reason.map(|reason| ("reason", RawJson::from(reason))));
    RawJson::from_members(&members)
}
