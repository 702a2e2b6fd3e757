//! Re-entry of the stack: calls that a layer makes pass all layers.

use std::sync::{Arc, OnceLock};

use tool_core::{BoxFuture, CallContext, ErrorKind, Outcome, Reentry, Tool, ToolError};

use crate::{Toolplane, calls::request::Address, plane::WeakToolplane};

/// Late-bound handle to the toolplane, set once it is built.
#[derive(Debug, Default)]
pub(crate) struct LateToolplane(OnceLock<WeakToolplane>);

impl LateToolplane {
    /// Sets the toolplane.
    pub(crate) fn open(&self, plane: Toolplane) -> Toolplane {
        // Set once.
        let _ = self.0.set(plane.downgrade());
        plane
    }

    pub(crate) fn plane(&self) -> Result<Toolplane, ToolError> {
        let plane = self.0.get().and_then(WeakToolplane::upgrade);
        plane.ok_or_else(|| ToolError::new(ErrorKind::Unavailable, "the gateway has ended"))
    }
}

impl Reentry for LateToolplane {
    fn find<'a>(&'a self, tool: &'a str, cx: &'a CallContext) -> BoxFuture<'a, Result<Arc<Tool>, ToolError>> {
        Box::pin(async move {
            let plane = self.plane()?;
            // A tool's name never has an `@`.
            if let Some((name, version)) = tool.split_once('@') {
                return plane.0.registry.find_version(name, version).await;
            }
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
