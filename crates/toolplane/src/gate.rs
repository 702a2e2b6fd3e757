//! The way from the stack back to its entrance: calls that a layer makes go through all of it.

use std::sync::{Arc, OnceLock};

use tool_core::{BoxFuture, CallContext, ErrorKind, Outcome, Reentry, Tool, ToolError};

use crate::{Toolplane, plane::WeakToolplane, request::Address};

/// The gate of a toolplane, which is there before the toolplane is.
#[derive(Debug, Default)]
pub(crate) struct LateToolplane(OnceLock<WeakToolplane>);

impl LateToolplane {
    /// Lets calls through to this.
    pub(crate) fn open(&self, plane: Toolplane) -> Toolplane {
        // Nobody opens it twice.
        let _ = self.0.set(plane.downgrade());
        plane
    }

    fn plane(&self) -> Result<Toolplane, ToolError> {
        let plane = self.0.get().and_then(WeakToolplane::upgrade);
        plane.ok_or_else(|| ToolError::new(ErrorKind::Unavailable, "the gateway has ended"))
    }
}

impl Reentry for LateToolplane {
    fn find<'a>(&'a self, tool: &'a str, cx: &'a CallContext) -> BoxFuture<'a, Result<Arc<Tool>, ToolError>> {
        Box::pin(async move {
            let plane = self.plane()?;
            let address = Address::Tool(tool.into());
            let found = plane
                .find(&address, &cx.origin.caller, &cx.client_identity(), None)
                .await?;
            Ok(found.tool().clone())
        })
    }

    fn call<'a>(&'a self, cx: &'a mut CallContext) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let plane = self.plane()?;
            plane.0.stack.invoke_boxed(cx).await
        })
    }
}
