use std::{borrow::Cow, fmt};

use mcp_wire::Request;
use raw_json::{JsonKind, RawJson};
use serde::de::DeserializeOwned;

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
///         call.progress(done, 10);
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

    /// Reads one argument into a type. An argument that is missing is read as `null`, so that an `Option` may be missing.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_server::ToolCall;
    ///
    /// async fn add(call: ToolCall) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    ///     let (a, b): (f64, Option<f64>) = (call.argument("a")?, call.argument("b")?);
    ///     Ok((a + b.unwrap_or(1.0)).to_string())
    /// }
    /// ```
    ///
    /// # Errors
    /// Fails if it is missing or does not fit the type, as [`arguments`](Self::arguments).
    pub fn argument<T: DeserializeOwned>(&self, name: &str) -> Result<T, ArgumentsError> {
        match self.raw_arguments().get(name) {
            Some(argument) => argument
                .to()
                .map_err(|error| ArgumentsError::locate(&argument, &error).in_member(name)),
            None => RawJson::default().to().map_err(|_| ArgumentsError::missing(name)),
        }
    }

    /// Reports progress to a client that asked for it: two numbers of any type.
    ///
    /// Never blocks, and sends only what moves forward: see [`ProgressReporter`](crate::ProgressReporter), which also takes a
    /// message.
    pub fn progress(&self, progress: impl Into<serde_json::Value>, total: impl Into<serde_json::Value>) {
        let progress = RawJson::from(progress.into());
        let total = RawJson::from(total.into());
        let report = RawJson::from_members(&[("progress", progress), ("total", total)]);
        self.cx.progress().report(&report);
    }

    /// Returns the arguments in the client's bytes: an empty object if there are none. No key is in them twice, at any depth.
    #[must_use]
    pub fn raw_arguments(&self) -> RawJson {
        let arguments = self.cx.arguments().cloned();
        // Some clients write `null` instead of leaving the member out.
        let arguments = arguments.filter(|arguments| arguments.kind() != JsonKind::Null);
        arguments.unwrap_or(RawJson::object())
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
