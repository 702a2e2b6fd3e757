//! Replacement for outgoing requests in a build without them.

use std::{sync::Arc, time::Duration};

use tool_core::{Secrets, Template, ToolError};
use tool_manifest::WebhookSpec;
use tool_observe::WebhookTransport;

use crate::BuildError;

pub(crate) struct Outbound;

impl Outbound {
    pub(crate) fn new(_: Arc<dyn Secrets>) -> Self {
        Self
    }

    #[expect(clippy::unused_async, reason = "the other one waits")]
    pub(crate) async fn ask(&self, _: &Template, _: Duration) -> Option<Result<(), ToolError>> {
        None
    }
}

pub(crate) fn hook(_: Arc<Outbound>, _: &WebhookSpec) -> Result<Arc<dyn WebhookTransport>, BuildError> {
    Err(BuildError::LeftOut {
        feature: "outbound",
        needed_by: vec!["the webhooks".to_owned()],
    })
}
