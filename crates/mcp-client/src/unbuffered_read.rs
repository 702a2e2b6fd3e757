//! Reading without a permanent buffer: an idle stream costs no memory.

use std::{
    io,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, ReadBuf};

/// Maximum number of bytes of one read.
const CHUNK_SIZE: usize = 16 * 1024;

/// Reads available bytes into a buffer on the stack and passes them to `take`. Returns their number, 0 at the end of
/// the stream.
pub(crate) fn read_unbuffered(
    reader: &mut (impl AsyncRead + Unpin),
    cx: &mut Context<'_>,
    take: impl FnOnce(&[u8]),
) -> Poll<io::Result<usize>> {
    let mut space = [MaybeUninit::uninit(); CHUNK_SIZE];
    let mut piece = ReadBuf::uninit(&mut space);
    Pin::new(reader).poll_read(cx, &mut piece).map_ok(|()| {
        take(piece.filled());
        piece.filled().len()
    })
}
