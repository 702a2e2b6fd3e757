use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};
use http::{HeaderMap, header::CONTENT_TYPE};
use raw_json::RawJson;
use serde_json::json;
use tool_core::{ErrorKind, ToolError};

/// Media type and charset of a body, from the `Content-Type` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MediaType {
    /// Type and subtype such as `application/json`, in lower case. Empty without the header.
    pub essence: String,
    charset: Option<&'static Encoding>,
}

impl MediaType {
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let text = headers
            .get(CONTENT_TYPE)
            .map(|value| String::from_utf8_lossy(value.as_bytes()));
        let mut parts = text.as_deref().unwrap_or_default().split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts
            .filter_map(|part| part.split_once('='))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
            .and_then(|(_, label)| Encoding::for_label(label.trim().trim_matches('"').as_bytes()));
        Self { essence, charset }
    }

    fn is_json(&self) -> bool {
        self.essence.ends_with("/json") || self.essence.ends_with("+json")
    }

    fn is_text(&self) -> bool {
        let named = [
            "xml",
            "yaml",
            "javascript",
            "ecmascript",
            "csv",
            "x-ndjson",
            "jsonl",
            "x-www-form-urlencoded",
            "graphql",
            "toml",
            "sql",
        ];
        self.essence.starts_with("text/")
            || self.essence.ends_with("+xml")
            || self.charset.is_some()
            || self.essence.split_once('/').is_some_and(|(_, subtype)| {
                named.contains(&subtype.trim_start_matches("x-")) || named.contains(&subtype)
            })
    }
}

/// Converts a body to a result.
///
/// JSON keeps its original bytes. Text that is a JSON object or array counts as JSON, whatever its media type. Other text
/// becomes a JSON string, and an empty body null. Any other body becomes `{"mime_type": …, "data": …}` with the bytes in
/// base64.
pub(crate) fn decode_body(body: Bytes, media: &MediaType) -> Result<RawJson, ToolError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(RawJson::null());
    }
    if media.is_json() {
        return json(body, media);
    }
    let unnamed = media.essence.is_empty() && std::str::from_utf8(&body).is_ok();
    if media.is_text() || unnamed {
        let text = decode(&body, media).0;
        if text.trim_start().starts_with(['{', '['])
            && let Ok(raw) = RawJson::parse(Bytes::from(text.clone()))
        {
            return Ok(raw);
        }
        return Ok(RawJson::from(text.as_str()));
    }
    let mime_type = if media.essence.is_empty() {
        "application/octet-stream"
    } else {
        media.essence.as_str()
    };
    Ok(RawJson::from(
        json!({"mime_type": mime_type, "data": STANDARD.encode(&body)}),
    ))
}

fn json(body: Bytes, media: &MediaType) -> Result<RawJson, ToolError> {
    let plain = media.charset.is_none_or(|charset| charset == UTF_8) && Encoding::for_bom(&body).is_none();
    let parsed = if plain {
        RawJson::parse(body)
    } else {
        let (text, faulty) = decode(&body, media);
        if faulty {
            return Err(ToolError::new(
                ErrorKind::Protocol,
                "the upstream's answer is not in the character set that it names",
            ));
        }
        RawJson::parse(text)
    };
    parsed.map_err(|error| {
        ToolError::new(
            ErrorKind::Protocol,
            format!("the upstream's answer is not usable JSON: {error}"),
        )
    })
}

/// Decodes a body as text, by its byte order mark or else by its charset (WHATWG Encoding Standard). Also returns `true` if
/// malformed bytes were replaced.
pub(crate) fn decode(body: &[u8], media: &MediaType) -> (String, bool) {
    let (text, _, faulty) = media.charset.unwrap_or(UTF_8).decode(body);
    (text.into_owned(), faulty)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
    use tool_core::ErrorKind;

    use super::{MediaType, decode_body};

    fn result(content_type: &'static str, body: &[u8]) -> Result<String, ErrorKind> {
        let mut headers = HeaderMap::new();
        if !content_type.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        decode_body(Bytes::copy_from_slice(body), &MediaType::from_headers(&headers))
            .map(|raw| raw.to_string())
            .map_err(|error| error.kind())
    }

    #[test]
    fn every_kind_of_body() {
        let latin = "{\"a\":\"\u{e9}\"}".chars().map(|c| c as u8).collect::<Vec<_>>();
        let wide: Vec<u8> = "{\"a\":1}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let wide_marked: Vec<u8> = [0xff, 0xfe].into_iter().chain(wide.clone()).collect();
        for (content_type, body, expected) in [
            ("application/json", &b" {\"n\": 1e2} "[..], Ok("{\"n\": 1e2}")),
            ("application/problem+json; charset=utf-8", b"[1]", Ok("[1]")),
            (
                "APPLICATION/JSON",
                b"123456789012345678901234567890",
                Ok("123456789012345678901234567890"),
            ),
            ("application/json", b"", Ok("null")),
            ("application/json", b" \r\n", Ok("null")),
            ("application/json", b"\xef\xbb\xbf{}", Ok("{}")),
            (
                "application/json; charset=iso-8859-1",
                &latin,
                Ok("{\"a\":\"\u{e9}\"}"),
            ),
            ("application/json; charset=\"utf-16le\"", &wide, Ok("{\"a\":1}")),
            ("application/json", &wide_marked, Ok("{\"a\":1}")),
            ("application/json", &latin, Err(ErrorKind::Protocol)),
            ("application/json; charset=nonsense", b"{}", Ok("{}")),
            ("application/json", b"{\"a\":", Err(ErrorKind::Protocol)),
            ("application/json", b"{} {}", Err(ErrorKind::Protocol)),
            ("application/json", b"<html>", Err(ErrorKind::Protocol)),
            ("text/plain", b"hi \"you\"", Ok("\"hi \\\"you\\\"\"")),
            ("text/plain", b"12", Ok("\"12\"")),
            ("text/html", b" {\"a\": 1.0}\n", Ok("{\"a\": 1.0}")),
            ("text/plain", b"[not json", Ok("\"[not json\"")),
            ("text/plain", b"\xff!", Ok("\"\u{fffd}!\"")),
            ("text/plain; charset=latin1", b"\xe9", Ok("\"\u{e9}\"")),
            ("", b"plain", Ok("\"plain\"")),
            (
                "",
                b"\xff\x00",
                Ok("{\"mime_type\":\"application/octet-stream\",\"data\":\"/wA=\"}"),
            ),
            ("application/xml", b"<a/>", Ok("\"<a/>\"")),
            ("image/svg+xml", b"<svg/>", Ok("\"<svg/>\"")),
            ("application/x-yaml", b"a: 1", Ok("\"a: 1\"")),
            (
                "image/png",
                b"\x89PNG",
                Ok("{\"mime_type\":\"image/png\",\"data\":\"iVBORw==\"}"),
            ),
        ] {
            assert_eq!(
                result(content_type, body).as_deref().map_err(|kind| *kind),
                expected,
                "{content_type} {body:?}"
            );
        }
    }
}
