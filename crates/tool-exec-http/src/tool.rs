use std::{error::Error, fmt, sync::Arc};

use serde::Serialize;
use serde_json::Value;
use tool_core::{
    Arguments, CallContext, Descriptor, Executor, ExecutorSpec, Invoke, PrepareError, Reply, Settings,
    TargetBackend, Tool, ToolBuilder, ToolError,
};

use crate::HttpExecutor;

/// An HTTP API that the program itself calls as a tool: see [`HttpExecutor::tool`].
///
/// A call passes no layers. For retries and limits, put layers of `tool-runtime` and `tool-policy` around
/// [`TargetBackend`], and call [`HttpTool::tool`] through them.
#[derive(Debug, Clone)]
pub struct HttpTool(Arc<Tool>);

/// Error of settings that make no HTTP tool. Shows every problem on a line of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidHttpTool {
    problems: Vec<PrepareError>,
}

impl HttpExecutor {
    /// Makes a tool of these settings, which are those of a configuration under `executor`: see the
    /// [settings of a tool](crate#settings-of-a-tool). It accepts any arguments.
    ///
    /// # Errors
    /// Every problem in the settings.
    pub fn tool(&self, name: impl Into<Arc<str>>, settings: Value) -> Result<HttpTool, InvalidHttpTool> {
        let executor = ExecutorSpec::new(self.kind()).with_config(settings);
        self.tool_with(Descriptor::new(name, executor), |builder| builder)
    }

    /// Makes a tool of this descriptor. `customize` adds what is not data, such as compiled schemas, and settings of layers.
    ///
    /// # Errors
    /// Every problem in the settings of the descriptor's executor.
    ///
    /// # Examples
    /// ```
    /// use tool_core::{Descriptor, ExecutorSpec, serde_json::json};
    /// use tool_exec_http::HttpExecutor;
    ///
    /// let settings = json!({"url": "https://api.example.com/items/{id}"});
    /// let mut descriptor = Descriptor::new("item", ExecutorSpec::new("http").with_config(settings));
    /// descriptor.description = "Returns one item.".to_owned();
    /// let tool = HttpExecutor::default().tool_with(descriptor, |tool| tool.read_only(true))?;
    /// assert_eq!(&**tool.tool().name(), "item");
    /// # Ok::<(), tool_exec_http::InvalidHttpTool>(())
    /// ```
    pub fn tool_with(
        &self,
        descriptor: Descriptor,
        customize: impl FnOnce(ToolBuilder) -> ToolBuilder,
    ) -> Result<HttpTool, InvalidHttpTool> {
        let backend = self.prepare(&descriptor);
        let backend = backend.map_err(|problems| InvalidHttpTool { problems })?;
        let mut settings = Settings::default();
        settings.passes_key = self.passes_key(&descriptor);
        settings.task_support = self.task_support(&descriptor);
        let upstream = self.upstream(&descriptor).map(|name| self.upstream_state(name));
        let mut builder = ToolBuilder::from_descriptor(descriptor).settings(settings);
        if let Some(upstream) = &upstream {
            builder = builder.upstream(upstream);
        }
        Ok(HttpTool(customize(builder).run_on_dyn(backend)))
    }
}

impl HttpTool {
    /// Calls the API with arguments that serialize as an object.
    ///
    /// # Errors
    /// If the arguments do not fit the request, or the API gave no result: see
    /// [errors by status](HttpExecutor#errors-by-status).
    ///
    /// # Cancellation
    /// Dropping the future closes the connection, unless nothing was sent on it. The API may have processed the request.
    pub async fn call<T: Serialize + ?Sized>(&self, arguments: &T) -> Result<Reply, ToolError> {
        let arguments = Arguments::from_serialize(arguments)?;
        let mut cx = CallContext::local(&self.0, arguments);
        TargetBackend.invoke(&mut cx).await?.into_reply()
    }

    /// Returns the tool, for calls through layers.
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        &self.0
    }
}

impl From<HttpTool> for Arc<Tool> {
    fn from(tool: HttpTool) -> Self {
        tool.0
    }
}

impl InvalidHttpTool {
    /// Returns the problems, with their places in the settings.
    #[must_use]
    pub fn problems(&self) -> &[PrepareError] {
        &self.problems
    }
}

impl fmt::Display for InvalidHttpTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the settings of the HTTP tool are not usable:")?;
        for problem in &self.problems {
            write!(f, "\n  ")?;
            if !problem.pointer.is_empty() {
                write!(f, "{}: ", problem.pointer)?;
            }
            f.write_str(&problem.message)?;
            if let Some(hint) = &problem.hint {
                write!(f, " ({hint})")?;
            }
        }
        Ok(())
    }
}

impl Error for InvalidHttpTool {}
