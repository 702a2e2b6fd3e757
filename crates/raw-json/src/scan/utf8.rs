use bytes::Bytes;
use bytestring::ByteString;

use crate::{JsonError, JsonErrorKind};

/// Minimum length of text beyond ASCII that is worth a copy, in bytes.
const LONG: usize = 4 * 1024;

/// Converts bytes into text.
///
/// The standard library checks ASCII word by word and everything else byte by byte, which took a quarter of the time
/// spent on a large message. SIMD checks non-ASCII text ten times as fast, but to take the checked bytes over as text
/// would need `unsafe`. So the text is copied, which costs a small part of the saved time.
pub(crate) fn text_of(bytes: Bytes) -> Result<ByteString, JsonError> {
    if bytes.len() >= LONG
        && !bytes.is_ascii()
        && let Ok(text) = simdutf8::basic::from_utf8(&bytes)
    {
        return Ok(text.into());
    }
    // The standard library locates the first invalid byte.
    ByteString::try_from(bytes).map_err(|error| JsonError::new(JsonErrorKind::Utf8, error.valid_up_to()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_short_texts_are_judged_alike() {
        for length in [0, 10, LONG - 1, LONG, LONG + 1, 3 * LONG] {
            for filling in ["a", "ä", "漢", "🦀"] {
                let text = filling.repeat(length / filling.len());
                let bytes = Bytes::from(text.clone());
                assert_eq!(text_of(bytes).as_deref(), Ok(&*text));
            }
            for bad in [
                &b"\xff"[..],
                b"\xc3",
                b"\xed\xa0\x80",
                b"\xc0\xaf",
                b"\xf4\x90\x80\x80",
            ] {
                for before in ["a", "ä"] {
                    let before = before.repeat(length / before.len());
                    let bytes = [before.as_bytes(), bad, b" and on"].concat();
                    let expected = std::str::from_utf8(&bytes).map_err(|error| error.valid_up_to());
                    let error = text_of(bytes.clone().into()).expect_err("it is no UTF-8");
                    assert_eq!(
                        (error.kind(), Err(error.offset())),
                        (&JsonErrorKind::Utf8, expected)
                    );
                }
            }
        }
    }
}
