use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::OpenApiError;

/// Maximum size of a document, after decompression.
const MAX_BYTES: usize = 32 << 20;
/// Bytes with which a gzip file begins (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Parses a document from JSON or YAML, which may be compressed with gzip.
pub(super) fn read(bytes: &[u8]) -> Result<Value, OpenApiError> {
    let mut unpacked = Vec::new();
    let bytes = if bytes.starts_with(&GZIP) {
        let limited = GzDecoder::new(bytes).take(MAX_BYTES as u64 + 1);
        let mut limited = limited;
        limited
            .read_to_end(&mut unpacked)
            .map_err(|error| OpenApiError::new(format!("the file is not valid gzip: {error}")))?;
        &unpacked
    } else {
        bytes
    };
    if bytes.len() > MAX_BYTES {
        return Err(OpenApiError::new(format!(
            "the document is larger than {MAX_BYTES} bytes"
        )));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| OpenApiError::new(format!("the document is not UTF-8 text: {error}")))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = parse(text)?;
    if root.is_object() {
        Ok(root)
    } else {
        Err(not_openapi())
    }
}

fn parse(text: &str) -> Result<Value, OpenApiError> {
    let json = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|yaml| {
        let is_json = text.trim_start().starts_with(['{', '[']);
        let (syntax, reason) = if is_json {
            ("JSON", json.to_string())
        } else {
            ("YAML", yaml.to_string())
        };
        let reason: String = reason
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(300)
            .collect();
        OpenApiError::new(format!("the document is not valid {syntax}: {reason}"))
    })
}

pub(super) fn not_openapi() -> OpenApiError {
    OpenApiError::new("the file is no OpenAPI document").with_hint(
        "an OpenAPI document is a map with `openapi: 3.x.y` or `swagger: \"2.0\"` at its top, in JSON or YAML",
    )
}
