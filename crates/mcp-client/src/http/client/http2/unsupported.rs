//! Replaces HTTP/2 if the feature `tls` is disabled: without TLS it is never negotiated.

use std::{convert::Infallible, io};

use http::{Request, Response};
use hyper::body::Incoming;

use super::byte_stream::{ByteStream, RequestBody};

#[derive(Clone)]
pub(super) struct Http2Sender(Infallible);

pub(super) struct Http2Error {
    pub(super) error: hyper::Error,
    pub(super) unsent: bool,
}

impl Http2Sender {
    /// Always fails.
    pub(super) async fn start(_: impl ByteStream) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) async fn send(&mut self, _: Request<RequestBody>) -> Result<Response<Incoming>, Http2Error> {
        match self.0 {}
    }

    pub(super) fn is_closed(&self) -> bool {
        match self.0 {}
    }
}
