use tool_core::AuthenticationError;

/// Returns the token in the value of a header `Authorization` (RFC 6750, section 2.1).
///
/// Credentials of another scheme count as none: the client did not know that a bearer token is needed (RFC 6750,
/// section 3).
pub(super) fn bearer_token(authorization: Option<&str>) -> Result<&str, AuthenticationError> {
    let authorization = authorization.ok_or(AuthenticationError::Missing)?.trim();
    let (scheme, rest) = authorization.split_once(' ').unwrap_or((authorization, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(AuthenticationError::Missing);
    }
    let token = rest.trim_start_matches(' ');
    if token.is_empty() {
        return Err(AuthenticationError::Malformed(
            "the token is missing after `Bearer`",
        ));
    }
    if !is_b64token(token) {
        return Err(AuthenticationError::Malformed(
            "the token has characters that no bearer token has",
        ));
    }
    Ok(token)
}

/// Returns `true` if a text is a `b64token` of RFC 6750, section 2.1.
fn is_b64token(token: &str) -> bool {
    let body = token.trim_end_matches('=');
    !body.is_empty()
        && body
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_read_as_the_rfc_says() {
        let malformed = |header| matches!(bearer_token(Some(header)), Err(AuthenticationError::Malformed(_)));
        assert_eq!(
            bearer_token(Some("Bearer abc.DEF~1+/-_==")),
            Ok("abc.DEF~1+/-_==")
        );
        assert_eq!(bearer_token(Some("bearer   abc")), Ok("abc"));
        for missing in [None, Some(""), Some("Basic YTpi"), Some("Bearerabc")] {
            assert_eq!(
                bearer_token(missing),
                Err(AuthenticationError::Missing),
                "{missing:?}"
            );
        }
        for header in [
            "Bearer",
            "Bearer ",
            "Bearer a b",
            "Bearer a=b",
            "Bearer =",
            "Bearer ä",
            "Bearer a,b",
        ] {
            assert!(malformed(header), "{header}");
        }
    }
}
