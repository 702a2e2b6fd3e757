use bytes::Bytes;
use bytestring::ByteString;

use crate::{JsonError, JsonErrorKind};

/// From which length on a text beyond ASCII is worth a copy.
const LONG: usize = 4 * 1024;

/// The text that bytes are.
///
/// The standard library checks ASCII by the word and everything else by the byte, which was a quarter of what a large message
/// costs. Vectors check the latter ten times as fast, but cannot hand the bytes over unchecked, so the text is copied: still
/// a small part of that.
pub(crate) fn text_of(bytes: Bytes) -> Result<ByteString, JsonError> {
    if bytes.len() >= LONG
        && !bytes.is_ascii()
        && let Ok(text) = simdutf8::basic::from_utf8(&bytes)
    {
        return Ok(text.into());
    }
    // What is wrong is told from here: where the first bad byte stands.
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
