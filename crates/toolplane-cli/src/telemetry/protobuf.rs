//! Writer of the Protocol Buffers wire format: appends fields to a buffer.
//!
//! Source: "Encoding", <https://protobuf.dev/programming-guides/encoding/>.

/// Type of a field on the wire.
#[derive(Debug, Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Length = 2,
    Fixed32 = 5,
}

#[inline]
fn key(out: &mut Vec<u8>, field: u64, wire: Wire) {
    varint(out, field << 3 | wire as u64);
}

#[inline]
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns the number of bytes of a varint.
#[inline]
fn varint_length(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Returns the number of bytes that [`number`] appends, for a field below 16.
pub(super) fn number_length(value: u64) -> usize {
    1 + varint_length(value)
}

/// Returns the number of bytes that [`bytes`] appends for a value of this length, for a field below 16.
pub(super) fn bytes_length(length: usize) -> usize {
    number_length(length as u64) + length
}

/// Begins a field of bytes, text or a message of this length; the caller appends the content.
#[inline]
pub(super) fn begin(out: &mut Vec<u8>, field: u64, length: usize) {
    // Fast path for nearly all fields: two bytes in one step.
    if field < 16 && length < 0x80 {
        return out.extend_from_slice(&[(field << 3) as u8 | Wire::Length as u8, length as u8]);
    }
    key(out, field, Wire::Length);
    varint(out, length as u64);
}

/// Appends an integer, a boolean or an enum.
pub(super) fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    key(out, field, Wire::Varint);
    varint(out, value);
}

/// Appends eight bytes.
pub(super) fn fixed64(out: &mut Vec<u8>, field: u64, value: u64) {
    key(out, field, Wire::Fixed64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends four bytes.
pub(super) fn fixed32(out: &mut Vec<u8>, field: u64, value: u32) {
    key(out, field, Wire::Fixed32);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends bytes or a text.
pub(super) fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    begin(out, field, value.len());
    out.extend_from_slice(value);
}

/// Appends a message that `write` fills.
pub(super) fn message(out: &mut Vec<u8>, field: u64, write: impl FnOnce(&mut Vec<u8>)) {
    key(out, field, Wire::Length);
    // Most lengths take one byte; for a longer one the message moves.
    let at = out.len();
    out.push(0);
    write(out);
    let length = out.len() - at - 1;
    let width = varint_length(length as u64);
    if width > 1 {
        out.resize(out.len() + width - 1, 0);
        out.copy_within(at + 1..at + 1 + length, at + width);
    }
    let mut rest = length as u64;
    for place in 0..width {
        let more = if place + 1 < width { 0x80 } else { 0 };
        out[at + place] = (rest & 0x7f) as u8 | more;
        rest >>= 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_any_size_are_written() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 3_000_000] {
            let (mut by_message, mut by_bytes) = (vec![7], vec![7]);
            let body = vec![9; length];
            message(&mut by_message, 3, |out| out.extend_from_slice(&body));
            bytes(&mut by_bytes, 3, &body);
            assert!(by_message == by_bytes, "{length}");
        }
    }

    #[test]
    fn a_number_takes_as_many_bytes_as_it_needs() {
        for value in [0, 1, 127, 128, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            varint(&mut out, value);
            assert_eq!(out.len(), varint_length(value), "{value}");
        }
    }
}
