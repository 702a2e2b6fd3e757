//! Batches: several messages in one array (JSON-RPC 2.0, section 6).

use bytes::Bytes;
use raw_json::{IndexedJson, JsonKind, JsonLimits};

use super::{ParseError, ParseErrorKind};

/// Maximum number of messages in a batch.
pub const MAX_BATCH: usize = 64;

/// Splits a batch of a client into the texts of its messages, for [`Message::from_client`](crate::Message::from_client) to
/// read. Only revision 2025-03-26 lets both sides send batches. Needs the feature `strict`.
///
/// # Errors
/// Fails if the bytes are not an array of 1 to [`MAX_BATCH`] values, or contain anything that the strict reader refuses at
/// any depth, such as a duplicate key.
#[cfg(feature = "strict")]
pub fn split_batch(bytes: impl Into<Bytes>) -> Result<Vec<Bytes>, ParseError> {
    split(bytes.into(), JsonLimits::STRICT)
}

/// Splits a batch of a server into the texts of its messages, for [`Message::from_server`](crate::Message::from_server)
/// to read.
///
/// # Errors
/// Fails if the bytes are not an array of 1 to [`MAX_BATCH`] values, or are nested too deep.
pub fn split_server_batch(bytes: impl Into<Bytes>) -> Result<Vec<Bytes>, ParseError> {
    split(bytes.into(), JsonLimits::RELAY)
}

fn split(bytes: Bytes, limits: JsonLimits) -> Result<Vec<Bytes>, ParseError> {
    let text = IndexedJson::parse(bytes, limits).map_err(ParseError::json)?;
    let text = text.raw();
    if text.kind() != JsonKind::Array {
        return Err(ParseError::new(ParseErrorKind::NotAnObject));
    }
    let messages: Vec<Bytes> = text
        .items()
        .take(MAX_BATCH + 1)
        .map(|message| message.as_bytes().clone())
        .collect();
    match messages.len() {
        1..=MAX_BATCH => Ok(messages),
        _ => Err(ParseError::new(ParseErrorKind::BatchLength)),
    }
}
