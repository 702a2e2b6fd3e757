use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use raw_json::RawJson;
use schemars::schema_for;
use tool_core::{
    Backend, BoxFuture, CallContext, Descriptor, DynBackend, ErrorKind, Executor, Invoke, Outcome,
    PrepareError, Preview, Reply, ToolError,
};

use crate::{
    settings::{Answer, MockSettings},
    template::Template,
};

/// Sleep function of the runtime. It is passed in, so that this crate depends on no runtime.
pub type Sleep = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// Executor of kind `mock`: see [`MockSettings`].
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use tool_exec_mock::MockExecutor;
///
/// let executor = MockExecutor::new(Arc::new(|latency| Box::pin(tokio::time::sleep(latency))));
/// # let _ = executor;
/// ```
pub struct MockExecutor {
    sleep: Sleep,
}

/// Mock tool, ready to be called.
struct MockBackend {
    answer: MockAnswer,
    latency: Duration,
    sleep: Sleep,
}

enum MockAnswer {
    Result(RawJson),
    File(ResultFile),
    Template(Box<Template>),
    Error(ErrorKind, String),
}

/// Result in a file. The first call reads it, since preparing a tool does no I/O. It is then kept, so that a tool's results
/// change only with its configuration.
struct ResultFile {
    path: PathBuf,
    content: OnceLock<RawJson>,
}

/// Maximum size of a result file, in bytes.
const MAX_FILE: u64 = 16 << 20;

impl MockExecutor {
    /// Creates an executor that waits with `sleep` if a mock has a latency.
    #[must_use]
    pub fn new(sleep: Sleep) -> Self {
        Self { sleep }
    }
}

impl Executor for MockExecutor {
    fn kind(&self) -> &str {
        "mock"
    }

    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        let (answer, latency_ms) = MockSettings::read(&descriptor.executor.config)?;
        let answer = match answer {
            Answer::Result(result) => MockAnswer::Result(result),
            Answer::File(path) => MockAnswer::File(ResultFile {
                path,
                content: OnceLock::new(),
            }),
            Answer::Template(source) => {
                let template = Template::compile(&source).map_err(|error| vec![error])?;
                MockAnswer::Template(Box::new(template))
            }
            Answer::Error(kind, message) => MockAnswer::Error(kind, message),
        };
        Ok(Arc::new(MockBackend {
            answer,
            latency: Duration::from_millis(latency_ms),
            sleep: self.sleep.clone(),
        }))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::from(schema_for!(MockSettings).to_value())
    }
}

impl Invoke for MockBackend {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let dispatch = cx.dispatch().clone();
        dispatch.sent();
        if !self.latency.is_zero() {
            (self.sleep)(self.latency).await;
        }
        let result = match &self.answer {
            MockAnswer::Result(result) => Ok(result.clone()),
            MockAnswer::File(file) => file.read(),
            MockAnswer::Template(template) => template.render(cx.arguments.value()),
            MockAnswer::Error(kind, message) => Err(ToolError::new(*kind, message.clone())),
        };
        match result.as_ref().err().map(ToolError::kind) {
            Some(kind) if is_not_taken(kind) => dispatch.not_taken(),
            Some(kind) if is_unanswered(kind) => {}
            _ => dispatch.answered(),
        }
        Ok(Reply::value(result?).into())
    }
}

impl Backend for MockBackend {
    /// Returns 0, since mocks with equal settings are equal. Returns `None` for result files, whose content may differ.
    fn backend_id(&self) -> Option<usize> {
        (!matches!(self.answer, MockAnswer::File(_))).then_some(0)
    }

    async fn preview(&self, cx: &CallContext) -> Result<Option<Preview>, ToolError> {
        let (rule, what) = match &self.answer {
            MockAnswer::Result(_) => ("result", "a fixed result".to_owned()),
            MockAnswer::File(file) => ("result_file", format!("the content of `{}`", file.path.display())),
            MockAnswer::Template(template) => {
                // A dry run fails with the error of the call.
                template.render(cx.arguments.value())?;
                ("template", "a template rendered from the arguments".to_owned())
            }
            MockAnswer::Error(kind, _) => ("error", format!("an error of the kind `{kind}`")),
        };
        Ok(Some(Preview::new(
            RawJson::from(serde_json::json!({"answered_by": rule})),
            format!("nothing is sent: the mock answers with {what}"),
        )))
    }
}

/// Returns `true` if an error represents a response that the request was not processed, such as HTTP status 401, 429 or 503.
fn is_not_taken(kind: ErrorKind) -> bool {
    use ErrorKind::{Auth, Overloaded, RateLimited, Unavailable};
    matches!(kind, Auth | Overloaded | RateLimited | Unavailable)
}

/// Returns `true` if an error represents a missing response.
fn is_unanswered(kind: ErrorKind) -> bool {
    use ErrorKind::{Cancelled, OutcomeUnknown, Timeout};
    matches!(kind, Timeout | Cancelled | OutcomeUnknown)
}

impl ResultFile {
    fn read(&self) -> Result<RawJson, ToolError> {
        if let Some(content) = self.content.get() {
            return Ok(content.clone());
        }
        let text = read_file(&self.path).map_err(|error| {
            ToolError::new(ErrorKind::Unavailable, "the mock's result file cannot be read").with_source(error)
        })?;
        let content = RawJson::parse(text).map_err(|error| {
            ToolError::new(
                ErrorKind::Protocol,
                format!("the mock's result file is not JSON: {error}"),
            )
        })?;
        Ok(self.content.get_or_init(|| content).clone())
    }
}

/// Reads a regular file with a size limit. Refuses devices, and pipes, which might block forever.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = Vec::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 16 MiB"));
    }
    Ok(text)
}

impl fmt::Debug for MockExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockExecutor").finish_non_exhaustive()
    }
}
