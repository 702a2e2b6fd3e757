use std::{collections::HashMap, error::Error, fmt, future::Future, pin::Pin, sync::Arc};

use mcp_wire::MirroredParams;
use raw_json::RawJson;

use super::{AddToolError, ToolCall, ToolDefinition, ToolOutput, definition::ListedTool};
use crate::ServerIdentity;

/// A [`Service`](crate::Service) made of tools: definitions, and closures that run them.
///
/// It lists the tools in pages, calls them in both eras, and answers everything else as the protocol says. An error of a
/// closure becomes a result with `isError`, whose text is the error and its sources, since the model can react to it. An
/// [`RpcError`](mcp_wire::RpcError), and the [`NotDeclared`](crate::ClientRequestError::NotDeclared) of a question to the
/// client, become the error of the request. The tools are the same for all clients; a server that offers resources or prompts
/// as well implements [`Service`](crate::Service) and passes the requests for tools on to this one.
///
/// # Examples
///
/// A complete server:
///
/// ```no_run
/// use std::{error::Error, future::pending, time::Duration};
///
/// use mcp_server::{ServerIdentity, ToolCall, ToolDefinition, Tools};
/// use tokio::{net::TcpListener, time::sleep};
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn Error>> {
///     let numbers = r#"{"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}"#;
///     let add = ToolDefinition::new("add").description("Adds two numbers.");
///     let wait = ToolDefinition::new("wait").description("Waits for three seconds, with progress.");
///     let tools = Tools::new(ServerIdentity::new("two-tools", "1.0.0"))
///         .tool(add.input_schema(numbers), async |call: ToolCall| {
///             Ok((call.argument::<f64>("a")? + call.argument::<f64>("b")?).to_string())
///         })?
///         .tool(wait, async |call: ToolCall| {
///             for second in 1..=3 {
///                 sleep(Duration::from_secs(1)).await;
///                 call.progress(second, 3);
///             }
///             Ok("done")
///         })?;
///     let Some(address) = std::env::args().nth(1) else {
///         return Ok(tools.serve_stdio().await?);
///     };
///     let listener = TcpListener::bind(address).await?;
///     Ok(tools.serve_http(listener, pending()).await?)
/// }
/// ```
pub struct Tools {
    pub(super) identity: ServerIdentity,
    pub(super) tools: Vec<Tool>,
    pub(super) position: HashMap<String, usize>,
    pub(super) page_size: usize,
    compile: Option<CompileSchema>,
}

/// Tool with everything that is computed once.
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) definition: RawJson,
    pub(super) mirrored: Option<Arc<MirroredParams>>,
    pub(super) check: Option<CheckArguments>,
    pub(super) run: RunTool,
    input_schema: RawJson,
}

/// Error of a closure.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;
type CompileSchema = Box<dyn Fn(&RawJson) -> Result<CheckArguments, BoxError> + Send + Sync>;
type CheckArguments = Box<dyn Fn(&RawJson) -> Result<(), BoxError> + Send + Sync>;
type RunTool = Box<dyn Fn(ToolCall) -> RunningTool + Send + Sync>;
type RunningTool = Pin<Box<dyn Future<Output = Result<ToolOutput, BoxError>> + Send>>;

/// Number of tools on a page, unless another one is set.
const PAGE_SIZE: usize = 1000;

impl Tools {
    /// Creates a service without tools.
    #[must_use]
    pub fn new(identity: ServerIdentity) -> Self {
        Self {
            identity,
            tools: Vec::new(),
            position: HashMap::new(),
            page_size: PAGE_SIZE,
            compile: None,
        }
    }

    /// Adds a tool: its definition, and a closure that runs it.
    ///
    /// The closure's future must not borrow from the closure, as that of `async move |call| ..` with a captured variable
    /// would: clone what it needs, as in `move |call| { let shared = shared.clone(); async move { .. } }`.
    ///
    /// # Errors
    /// Fails if there is a tool of this name already, or the definition is invalid.
    pub fn tool<F, R, O>(mut self, definition: ToolDefinition, run: F) -> Result<Self, AddToolError>
    where
        F: Fn(ToolCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, Box<dyn Error + Send + Sync>>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        let ListedTool {
            name,
            definition,
            input_schema,
        } = definition.build()?;
        if self.position.contains_key(&name) {
            return Err(AddToolError::DuplicateName(name));
        }
        let mirrored = mirrored_params(&name, &input_schema)?;
        let mut tool = Tool {
            name: name.clone(),
            definition,
            mirrored,
            check: None,
            run: Box::new(move |call| {
                let running = run(call);
                Box::pin(async move { running.await.map(Into::into) })
            }),
            input_schema,
        };
        if let Some(compile) = &self.compile {
            tool.compile(compile)?;
        }
        self.position.insert(name, self.tools.len());
        self.tools.push(tool);
        Ok(self)
    }

    /// Sets the number of tools on a page of `tools/list`: 1,000.
    #[must_use]
    pub fn page_size(mut self, page_size: usize) -> Self {
        self.page_size = page_size.max(1);
        self
    }

    /// Has the arguments of all tools checked against their own input schemas before their closures run. A violation becomes a
    /// result with `isError`.
    ///
    /// `compile` makes the check of one schema; it is called once for each tool. Without it, arguments are checked only as
    /// far as [`ToolCall::arguments`] reads them.
    ///
    /// # Examples
    ///
    /// With the crate `tool-schema`; any other JSON Schema validator fits as well:
    ///
    /// ```
    /// use mcp_server::{ServerIdentity, Tools};
    /// use raw_json::RawJson;
    /// use tool_schema::Schema;
    ///
    /// let tools = Tools::new(ServerIdentity::new("checked", "1.0.0")).validator(|schema: &RawJson| {
    ///     let schema = Schema::compile(schema)?;
    ///     Ok(move |arguments: &RawJson| Ok(schema.check_text(arguments.as_str())?))
    /// })?;
    /// # Ok::<(), mcp_server::AddToolError>(())
    /// ```
    ///
    /// # Errors
    /// Fails if `compile` refuses the schema of a tool that was added before. [`tool`](Self::tool) reports that of others.
    pub fn validator<V, C>(mut self, compile: V) -> Result<Self, AddToolError>
    where
        V: Fn(&RawJson) -> Result<C, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
        C: Fn(&RawJson) -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    {
        let compile: CompileSchema =
            Box::new(move |schema| compile(schema).map(|check| Box::new(check) as CheckArguments));
        for tool in &mut self.tools {
            tool.compile(&compile)?;
        }
        self.compile = Some(compile);
        Ok(self)
    }
}

impl Tool {
    fn compile(&mut self, compile: &CompileSchema) -> Result<(), AddToolError> {
        let check = compile(&self.input_schema).map_err(|source| AddToolError::InvalidSchema {
            tool: self.name.clone(),
            source,
        })?;
        self.check = Some(check);
        Ok(())
    }
}

/// Reads the arguments that clients mirror in headers.
fn mirrored_params(tool: &str, input_schema: &RawJson) -> Result<Option<Arc<MirroredParams>>, AddToolError> {
    let mirrored = MirroredParams::from_schema(input_schema);
    if let Some(problem) = mirrored.problem() {
        return Err(AddToolError::InvalidDefinition {
            tool: tool.to_owned(),
            part: "inputSchema".to_owned(),
            problem: format!("has an invalid annotation: {problem}"),
        });
    }
    Ok((!mirrored.params().is_empty()).then(|| Arc::new(mirrored)))
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
        f.debug_struct("Tools")
            .field("identity", &self.identity)
            .field("tools", &names)
            .finish_non_exhaustive()
    }
}
