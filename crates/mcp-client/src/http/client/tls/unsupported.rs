//! Replaces TLS if the feature `tls` is disabled.

use std::{convert::Infallible, io};

use http::Uri;

use super::byte_stream::CheckedSocket;
use crate::{ClientError, ClientErrorKind};

pub(super) struct TlsSettings(Infallible);

impl TlsSettings {
    /// Always fails.
    pub(super) fn for_server(_: &Uri) -> Result<Self, ClientError> {
        let detail = "this build does not support `https://` (feature `tls`)";
        Err(ClientError::new(ClientErrorKind::Invalid(detail.to_owned())))
    }

    pub(super) async fn connect(&self, _: CheckedSocket) -> io::Result<(CheckedSocket, bool)> {
        match self.0 {}
    }
}
