use std::{borrow::Cow, fmt};

use mcp_wire::Request;
use raw_json::{JsonKind, RawJson};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ArgumentsError;
use crate::RequestContext;

/// Call of a tool, as its closure receives it.
///
/// # Cancellation
/// The closure's future is dropped when the client cancels the call or is gone: see [`Service`](crate::Service).
///
/// # Examples
///
/// ```
/// use mcp_server::{ServerIdentity, ToolCall, ToolDefinition, ToolOutput, Tools, serde_json::json};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Resize {
///     image: String,
///     #[serde(default)]
///     width: u32,
/// }
///
/// let definition = ToolDefinition::new("resize").input_schema(json!({
///     "type": "object",
///     "properties": {"image": {"type": "string"}, "width": {"type": "integer", "minimum": 1}},
///     "required": ["image"],
/// }));
/// let tools = Tools::new(ServerIdentity::new("images", "1.0.0")).tool(definition, async |call: ToolCall| {
///     let Resize { image, width } = call.arguments()?;
///     for done in 1..=10 {
///         call.report_progress(done, 10);
///         // .. a tenth of the work; the future is dropped here if the client cancels ..
///     }
///     ToolOutput::json(&json!({"image": image, "width": width}))
/// })?;
/// # Ok::<(), mcp_server::AddToolError>(())
/// ```
pub struct ToolCall {
    request: Request,
    cx: RequestContext,
}

impl ToolCall {
    pub(super) fn new(request: Request, cx: RequestContext) -> Self {
        Self { request, cx }
    }

    /// Returns the name of the tool.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        self.cx.name().unwrap_or_default()
    }

    /// Reads the arguments into a type.
    ///
    /// # Errors
    /// Fails if they do not fit the type. The error names the argument; a closure that returns it tells the model.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, ArgumentsError> {
        let arguments = self.raw_arguments();
        arguments
            .to()
            .map_err(|error| ArgumentsError::locate(&arguments, &error))
    }

    /// Reads one argument. An argument that is absent is read like `null`, so it may be an [`Option`].
    ///
    /// # Errors
    /// Fails if the argument is missing or does not fit the type.
    pub fn argument<T: DeserializeOwned>(&self, name: &str) -> Result<T, ArgumentsError> {
        match self.raw_arguments().get(name) {
            Some(argument) => argument
                .to()
                .map_err(|error| ArgumentsError::locate_in(name, &argument, &error)),
            None => serde_json::from_value(Value::Null).map_err(|_| ArgumentsError::missing(name)),
        }
    }

    /// Returns the arguments in the client's bytes: an empty object if there are none. No key is in them twice, at any depth.
    #[must_use]
    pub fn raw_arguments(&self) -> RawJson {
        let arguments = self.cx.arguments().cloned();
        // Some clients write `null` instead of leaving the member out.
        let arguments = arguments.filter(|arguments| arguments.kind() != JsonKind::Null);
        arguments.unwrap_or(RawJson::object())
    }

    /// Reports progress to the client if it asked for it: `done` of `total`, both numbers. A report that does not move
    /// forward is dropped.
    pub fn report_progress(&self, done: impl Into<Value>, total: impl Into<Value>) {
        let progress = self.cx.progress();
        if progress.is_wanted() {
            progress.report(&RawJson::from(
                json!({"progress": done.into(), "total": total.into()}),
            ));
        }
    }

    /// Returns the context of the request: the principal, progress, log messages, and questions to the client.
    #[must_use]
    pub fn context(&self) -> &RequestContext {
        &self.cx
    }

    /// Returns the request, for [`InputRequired::answer`](crate::InputRequired::answer) and
    /// [`StateSeal`](crate::StateSeal).
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
