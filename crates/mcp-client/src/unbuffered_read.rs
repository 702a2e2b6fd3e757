//! Reading without a buffer of its own: a stream on which nothing comes costs no memory for it.

use std::{
    io,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, ReadBuf};

/// How much is read at once.
const CHUNK_SIZE: usize = 16 * 1024;

/// Reads what is there into space on the stack and hands it on; returns how much it was, 0 at the end of the stream.
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
