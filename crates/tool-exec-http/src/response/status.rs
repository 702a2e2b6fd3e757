use http::StatusCode;
use serde_json::Value;
use tool_core::ErrorKind;

/// Ranges of statuses that are a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedStatus(Vec<(u16, u16)>);

impl ExpectedStatus {
    /// Returns all 2xx statuses.
    pub(crate) fn success() -> Self {
        Self(vec![(200, 299)])
    }

    /// Adds `200`, `"200"` or `"2xx"`.
    pub(crate) fn add(&mut self, value: &Value) -> Result<(), String> {
        let text = match value {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.to_ascii_lowercase(),
            _ => String::new(),
        };
        let range = match text.strip_suffix("xx").map(str::parse::<u16>) {
            Some(Ok(class)) if (2..=5).contains(&class) => Some((class * 100, class * 100 + 99)),
            Some(_) => None,
            None => text
                .parse()
                .ok()
                .filter(|code| (200..600).contains(code))
                .map(|code| (code, code)),
        };
        self.0
            .push(range.ok_or("must be a status such as 200 or a class such as \"2xx\"")?);
        Ok(())
    }

    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn contains(&self, status: StatusCode) -> bool {
        self.0
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&status.as_u16()))
    }
}

/// Returns the error kind of an unexpected status, as in the table at [`HttpExecutor`](crate::HttpExecutor).
pub(crate) fn error_kind(status: StatusCode) -> ErrorKind {
    match status.as_u16() {
        401 | 403 | 407 => ErrorKind::Auth,
        408 | 421 | 425 | 502..=504 => ErrorKind::Unavailable,
        429 => ErrorKind::RateLimited,
        400..=499 => ErrorKind::InvalidArguments,
        500..=599 => ErrorKind::UpstreamError,
        _ => ErrorKind::Protocol,
    }
}

/// Returns `true` if the status is that of a gateway which got no valid response from the server behind it. That server may
/// have processed the request, or may still do so (RFC 9110, sections 15.6.3 and 15.6.5).
pub(crate) fn is_gateway_error(status: StatusCode) -> bool {
    matches!(status.as_u16(), 502 | 504)
}

/// Returns `true` if other credentials may help. That excludes 403, which often concerns a single resource while the tool
/// works for others.
pub(crate) fn refuses_credentials(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 407)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::json;

    use super::{ExpectedStatus, error_kind};

    #[test]
    fn expected() {
        let mut expected = ExpectedStatus::none();
        for value in [json!(201), json!("204"), json!("3XX")] {
            expected.add(&value).unwrap();
        }
        for (status, contains) in [
            (200, false),
            (201, true),
            (204, true),
            (299, false),
            (302, true),
            (404, false),
        ] {
            assert_eq!(
                expected.contains(StatusCode::from_u16(status).unwrap()),
                contains,
                "{status}"
            );
        }
        for value in [
            json!("1xx"),
            json!(99),
            json!(600),
            json!("abc"),
            json!(200.5),
            json!(null),
            json!("xx"),
        ] {
            assert!(ExpectedStatus::none().add(&value).is_err(), "{value}");
        }
    }

    #[test]
    fn kinds() {
        for (status, kind) in [
            (400, "invalid_arguments"),
            (401, "auth"),
            (403, "auth"),
            (404, "invalid_arguments"),
            (408, "unavailable"),
            (422, "invalid_arguments"),
            (429, "rate_limited"),
            (500, "upstream_error"),
            (501, "upstream_error"),
            (502, "unavailable"),
            (503, "unavailable"),
            (504, "unavailable"),
            (302, "protocol"),
            (204, "protocol"),
        ] {
            assert_eq!(
                error_kind(StatusCode::from_u16(status).unwrap()).as_str(),
                kind,
                "{status}"
            );
        }
    }
}
