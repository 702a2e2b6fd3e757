use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use reqwest::Response;
use tokio::time::{error::Elapsed, timeout};
use tool_core::{Dispatch, ErrorKind, ToolError};

use super::{Failure, broken};

/// Limits of a body.
#[derive(Clone, Copy)]
pub(crate) struct BodyLimits {
    /// Maximum size after decompression, in bytes.
    pub n_bytes: usize,
    /// Configuration key that sets this size.
    pub key: &'static str,
    /// Maximum time without data.
    pub silence: Option<Duration>,
}

/// Body of a response, chunk by chunk.
pub(crate) struct BodyChunks<'a> {
    response: Response,
    limits: BodyLimits,
    dispatch: &'a Dispatch,
    n_read: usize,
}

impl<'a> BodyChunks<'a> {
    /// Begins to read a body, unless its head says that it cannot be read.
    pub(crate) fn open(
        response: Response,
        limits: BodyLimits,
        dispatch: &'a Dispatch,
    ) -> Result<Self, Failure> {
        if let Some(coding) = response.headers().get(CONTENT_ENCODING)
            && coding != "identity"
        {
            let message = "the upstream's answer has a content encoding that was not requested";
            return Err(ToolError::new(ErrorKind::Protocol, message).into());
        }
        let chunks = Self {
            response,
            limits,
            dispatch,
            n_read: 0,
        };
        match chunks.announced() > limits.n_bytes as u64 {
            true => Err(chunks.too_large()),
            false => Ok(chunks),
        }
    }

    fn announced(&self) -> u64 {
        self.response.content_length().unwrap_or(0)
    }

    /// Returns the next chunk; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let chunk = match within(self.limits.silence, self.response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return Ok(None),
            Ok(Err(error)) => return Err(broken(&error)),
            Err(_) => return Err(silent()),
        };
        if chunk.len() > self.limits.n_bytes - self.n_read {
            return Err(self.too_large());
        }
        self.n_read += chunk.len();
        Ok(Some(chunk))
    }

    /// Returns the whole body.
    pub(crate) async fn collect(mut self) -> Result<Bytes, Failure> {
        // Most answers come in one chunk, which then needs no copy.
        let Some(first) = self.next().await? else {
            return Ok(Bytes::new());
        };
        let Some(second) = self.next().await? else {
            return Ok(first);
        };
        let announced = usize::try_from(self.announced()).unwrap_or(0);
        let mut body = Vec::with_capacity(announced.max(first.len() + second.len()));
        body.extend_from_slice(&first);
        body.extend_from_slice(&second);
        while let Some(chunk) = self.next().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(body.into())
    }

    fn too_large(&self) -> Failure {
        self.dispatch.answered();
        let BodyLimits { n_bytes, key, .. } = self.limits;
        let message = format!("the upstream's answer is larger than the allowed {n_bytes} bytes of `{key}`");
        ToolError::new(ErrorKind::ResultTooLarge, message).into()
    }
}

/// Awaits a future, with a timeout if there is one.
pub(crate) async fn within<F: Future>(limit: Option<Duration>, future: F) -> Result<F::Output, Elapsed> {
    match limit {
        Some(limit) => timeout(limit, future).await,
        None => Ok(future.await),
    }
}

/// Failure of an upstream that sent nothing for too long.
pub(crate) fn silent() -> Failure {
    let message = "the upstream sent no data within `read_timeout_ms`".to_owned();
    Failure::Unanswered(ErrorKind::Timeout, message, None)
}
