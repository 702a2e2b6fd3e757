use bytes::{Buf as _, Bytes, BytesMut};

/// Received bytes that no parser has taken yet.
///
/// It remembers how far an end was searched for, so that bytes which arrive one at a time are each looked at once.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    bytes: BytesMut,
    /// Start of the line that is being received.
    line: usize,
    /// Number of bytes that are known to hold no further end of a line.
    searched: usize,
}

impl Arrived {
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends received bytes.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    /// The buffer, for a reader that appends to it.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// Removes and returns the first `length` bytes.
    pub(super) fn take(&mut self, length: usize) -> Bytes {
        (self.line, self.searched) = (0, 0);
        self.bytes.split_to(length).freeze()
    }

    /// Removes the first `length` bytes.
    pub(super) fn skip(&mut self, length: usize) {
        (self.line, self.searched) = (0, 0);
        self.bytes.advance(length);
    }

    /// Returns the length of the first line with its line feed, once it has arrived.
    pub(super) fn line_end(&mut self) -> Option<usize> {
        let rest = &self.bytes[self.searched..];
        let end = rest.iter().position(|byte| *byte == b'\n');
        let end = end.map(|at| self.searched + at + 1);
        if end.is_none() {
            self.searched = self.bytes.len();
        }
        end
    }

    /// Returns the length of the lines up to the first empty one, which is included, once all of them have arrived.
    pub(super) fn block_end(&mut self) -> Option<usize> {
        while let Some(end) = self.line_end() {
            let line = &self.bytes[self.line..end];
            if matches!(line, b"\n" | b"\r\n") {
                return Some(end);
            }
            (self.line, self.searched) = (end, end);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Finds the end of a block by looking at all of it.
    fn block_end(bytes: &[u8]) -> Option<usize> {
        let mut end = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            end += line.len();
            if matches!(line, b"\n" | b"\r\n") {
                return Some(end);
            }
        }
        None
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(9112), ..ProptestConfig::default() })]

        #[test]
        fn ends_are_found_however_the_bytes_arrive(text in "[a\r\n]{0,12}", sizes in prop::collection::vec(1_usize..4, 12)) {
            let mut arrived = Arrived::default();
            let (mut rest, mut sizes) = (text.as_bytes(), sizes.into_iter());
            loop {
                let end = arrived.block_end();
                prop_assert_eq!(end, block_end(arrived.as_slice()));
                let Some(size) = sizes.next().filter(|_| end.is_none() && !rest.is_empty()) else { break };
                let (piece, after) = rest.split_at(size.min(rest.len()));
                arrived.push(piece);
                rest = after;
            }
        }
    }

    #[test]
    fn each_byte_is_searched_once() {
        let mut arrived = Arrived::default();
        for _ in 0..1000 {
            arrived.push(b"a");
            assert_eq!(arrived.block_end(), None);
            assert_eq!(arrived.searched, arrived.len());
        }
        arrived.push(b"\r\n\r\nrest");
        assert_eq!(arrived.block_end(), Some(1004));
        assert_eq!(arrived.take(1004).len(), 1004);
        assert_eq!(
            (arrived.line, arrived.searched, arrived.as_slice()),
            (0, 0, &b"rest"[..])
        );
    }
}
