//! Callback URLs: APIs send the result of their work to them.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use mcp_server::RequestBody;
use toolplane::{CallbackDelivery, Toolplane};

use super::metrics::plain;

/// Path in front of the token.
pub(crate) const PATH: &str = "/callbacks/";
/// Maximum size of a body, in bytes: that of results by default.
const MAX_BODY: usize = 16 << 20;

/// Answers a request to a callback URL. Its token, which nobody can guess, is all that it needs: the API has no other
/// credentials.
pub(super) async fn answer(plane: &Toolplane, request: Request<RequestBody>) -> Response<Full<Bytes>> {
    if request.method() != Method::POST {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed: use POST\n");
    }
    let (head, body) = request.into_parts();
    let token = head.uri.path().strip_prefix(PATH).unwrap_or_default();
    // Nobody else makes the gateway read a large body.
    if !plane.awaits_callback(token) {
        return unknown();
    }
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        return plain(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is too large, or it was cut off\n",
        );
    };
    match plane.deliver_callback(token, body.to_bytes().into()) {
        CallbackDelivery::Delivered => plain(StatusCode::NO_CONTENT, ""),
        CallbackDelivery::NotJson => plain(StatusCode::BAD_REQUEST, "the body is not JSON\n"),
        _ => unknown(),
    }
}

fn unknown() -> Response<Full<Bytes>> {
    plain(
        StatusCode::NOT_FOUND,
        "there is no such callback, or it was used already, or it has expired\n",
    )
}
