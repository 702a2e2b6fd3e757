//! HTTP responses, whose bodies are read by the caller.

use std::{future::poll_fn, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Response, header::CONTENT_TYPE};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use super::{
    http1::{Connection, Http1Error},
    pool::{Pool, innermost},
};
use crate::ClientError;

/// Response whose body was not read yet.
pub(crate) struct HttpResponse {
    response: Response<Incoming>,
    /// Connection that carries the body, and its pool. `None` over HTTP/2, where a task reads it.
    source: Option<(Box<Connection>, Arc<Pool>)>,
}

impl HttpResponse {
    /// Creates a response over an HTTP/1.1 connection.
    pub(super) fn from_http1(
        connection: Box<Connection>,
        response: Response<Incoming>,
        pool: Arc<Pool>,
    ) -> Self {
        Self {
            response,
            source: Some((connection, pool)),
        }
    }

    /// Creates a response over an HTTP/2 connection.
    pub(super) fn from_http2(response: Response<Incoming>) -> Self {
        Self {
            response,
            source: None,
        }
    }

    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    pub(crate) fn header_value(&self, name: &str) -> Option<HeaderValue> {
        self.response.headers().get(name).cloned()
    }

    /// `true` if the body is an event stream.
    pub(crate) fn is_event_stream(&self) -> bool {
        const ESSENCE: &[u8] = b"text/event-stream";
        let content_type = self.header(CONTENT_TYPE.as_str()).unwrap_or_default();
        let start = content_type.as_bytes().get(..ESSENCE.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(ESSENCE))
    }

    /// Number of remaining bytes of the body, if known.
    pub(crate) fn remaining(&self) -> Option<u64> {
        self.response.body().size_hint().exact()
    }

    /// Reads the next chunk of the body. Returns `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        let body = self.response.body_mut();
        if let Some((connection, _)) = &mut self.source {
            let chunk = poll_fn(|cx| connection.poll_chunk(body, cx)).await;
            return chunk.map_err(|fault| ClientError::from(fault).with_sent(true));
        }
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| ClientError::closed(innermost(&error)).with_sent(true))?;
            // Other frames are trailers, which are ignored.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Waits until the whole request was sent, for a response that only acknowledges it. Such a response may arrive
    /// early, and its body is ignored.
    pub(crate) async fn wait_until_sent(&mut self) -> Result<(), ClientError> {
        let body = self.response.body_mut();
        match &mut self.source {
            Some((connection, _)) => poll_fn(|cx| connection.poll_sent(body, cx))
                .await
                .map_err(|fault| ClientError::from(fault).with_sent(true)),
            // The task of the HTTP/2 connection sends the rest.
            None => Ok(()),
        }
    }

    /// Reads the whole body into one buffer. Returns `None` if its length is unknown.
    pub(crate) async fn read_whole(&mut self) -> Result<Option<Bytes>, ClientError> {
        let length = self.remaining().and_then(|length| usize::try_from(length).ok());
        let (Some(length), Some((connection, _))) = (length, &mut self.source) else {
            return Ok(None);
        };
        let whole = connection.whole(self.response.body_mut(), length).await;
        whole
            .map(Some)
            .map_err(|fault| ClientError::from(fault).with_sent(true))
    }
}

impl Drop for HttpResponse {
    /// Returns the connection to the pool if the body is complete, and closes it otherwise.
    fn drop(&mut self) {
        if let Some((mut connection, pool)) = self.source.take()
            && connection.finish_exchange(self.response.body_mut())
        {
            pool.put_back(connection);
        }
    }
}

/// `true` if a refusal is permanent: not too early, not rate limited, and not a fault that may pass.
pub(crate) fn is_permanent_refusal(status: u16) -> bool {
    (400..500).contains(&status) && !matches!(status, 408 | 425 | 429)
}

impl From<Http1Error> for ClientError {
    fn from(fault: Http1Error) -> Self {
        match fault {
            Http1Error::Malformed(_) => Self::protocol(fault.to_string()),
            Http1Error::Io(error) => Self::closed(error.to_string()).with_quoted_source(error),
            Http1Error::Ended(_) => Self::closed(fault.to_string()),
        }
    }
}
