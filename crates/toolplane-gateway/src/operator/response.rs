use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use raw_json::RawJson;

/// Result of a request: an object, or the status and the body of an error.
pub(super) type ApiResult = Result<RawJson, (StatusCode, RawJson)>;

/// Returns a result as an HTTP response.
pub(super) fn response(result: ApiResult) -> Response<Full<Bytes>> {
    let (status, body) = match result {
        Ok(body) => (StatusCode::OK, body),
        Err(failure) => failure,
    };
    let mut response = Response::new(Full::new(body.as_bytes().clone()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Returns the error for a known path that does not support the method.
pub(super) fn method_not_allowed() -> (StatusCode, RawJson) {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    api_error(status, "usage", "this path does not support the method")
}

/// Returns an error with its status and its body.
pub(super) fn api_error(status: StatusCode, kind: &str, message: &str) -> (StatusCode, RawJson) {
    let error = RawJson::from_members(&[("kind", RawJson::from(kind)), ("message", RawJson::from(message))]);
    (status, RawJson::from_members(&[("error", error)]))
}
