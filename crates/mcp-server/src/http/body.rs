use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::timeout;

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFault {
    TooLarge,
    TooSlow,
    /// The connection broke; nobody will read the answer.
    Broken,
}

/// Reads a whole body of at most `limit` bytes, in no more than `time`.
pub(super) async fn read<B>(body: B, limit: usize, time: Duration) -> Result<Bytes, BodyFault>
where
    B: Body<Data = Bytes>,
{
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyFault::TooLarge);
    }
    let mut reading = pin!(collect(body, limit));
    // Mostly the whole body is there already, and no timer is needed.
    let first = poll_fn(|cx| match reading.as_mut().poll(cx) {
        Poll::Ready(read) => Poll::Ready(Some(read)),
        Poll::Pending => Poll::Ready(None),
    });
    match first.await {
        Some(read) => read,
        // Boxed, so that bodies that are there need not have room for a timer.
        None => Box::pin(timeout(time, reading))
            .await
            .unwrap_or(Err(BodyFault::TooSlow)),
    }
}

async fn collect<B: Body<Data = Bytes>>(body: B, limit: usize) -> Result<Bytes, BodyFault> {
    let mut body = pin!(body);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyFault::Broken)?.into_data() else {
            continue;
        };
        if first.len() + rest.len() + data.len() > limit {
            return Err(BodyFault::TooLarge);
        }
        // A body in one piece is taken as it is; the others are put together.
        if first.is_empty() && rest.is_empty() {
            first = data;
            if body.is_end_stream() {
                break;
            }
        } else {
            if rest.is_empty() {
                let expected = first.len() + data.len() + body.size_hint().lower() as usize;
                rest.reserve(expected.min(limit));
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}
