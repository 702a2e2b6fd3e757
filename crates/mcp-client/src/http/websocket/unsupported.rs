//! Replaces the WebSocket transport if the feature `websocket` is disabled.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};

use tokio::{io::DuplexStream, sync::watch};

use super::HttpEndpoint;
use crate::{ClientError, ClientErrorKind, ConnectionOptions};

pub(crate) struct Bridge(Infallible);

impl Bridge {
    pub(crate) async fn run(self, _: watch::Receiver<bool>, _: Arc<OnceLock<ClientError>>) {
        match self.0 {}
    }
}

/// Always fails.
pub(crate) async fn open(
    _: &HttpEndpoint,
    _: &ConnectionOptions,
) -> Result<(DuplexStream, Bridge), ClientError> {
    let detail = "this build does not support WebSocket (feature `websocket`)";
    Err(ClientError::new(ClientErrorKind::Invalid(detail.to_owned())))
}
