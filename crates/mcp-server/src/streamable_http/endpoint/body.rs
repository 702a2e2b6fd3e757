use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::timeout;

/// Reason why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::streamable_http) enum BodyError {
    TooLarge,
    TooSlow,
    /// The connection broke; nobody will read the response.
    Broken,
}

/// Reads a whole body of at most `limit` bytes, within `time`.
pub(in crate::streamable_http) async fn read_body<B>(
    body: B,
    limit: usize,
    time: Duration,
) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
{
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut reading = pin!(collect(body, limit));
    // Usually the whole body has arrived already, and no timer is needed.
    let first = poll_fn(|cx| match reading.as_mut().poll(cx) {
        Poll::Ready(read) => Poll::Ready(Some(read)),
        Poll::Pending => Poll::Ready(None),
    });
    match first.await {
        Some(read) => read,
        // Boxed, so that the futures of other bodies have no room for a timer.
        None => Box::pin(timeout(time, reading))
            .await
            .unwrap_or(Err(BodyError::TooSlow)),
    }
}

async fn collect<B: Body<Data = Bytes>>(body: B, limit: usize) -> Result<Bytes, BodyError> {
    let mut body = pin!(body);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else {
            continue;
        };
        if first.len() + rest.len() + data.len() > limit {
            return Err(BodyError::TooLarge);
        }
        // A body in one piece is not copied; others are joined.
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
