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

/// How a mock waits: the runtime's own way, so that this crate needs none.
pub type Sleep = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// Runs tools of the kind `mock`: see [`MockSettings`].
pub struct MockExecutor {
    sleep: Sleep,
}

/// A mock tool, ready to be called.
struct Mock {
    answer: Prepared,
    latency: Duration,
    sleep: Sleep,
}

enum Prepared {
    Result(RawJson),
    File(ResultFile),
    Template(Box<Template>),
    Error(ErrorKind, String),
}

/// A result in a file. It is read by the first call, since preparing a tool does no I/O, and then kept: what a tool
/// answers changes with its configuration only.
struct ResultFile {
    path: PathBuf,
    content: OnceLock<RawJson>,
}

/// How large a file with a result may be.
const MAX_FILE: u64 = 16 << 20;

impl MockExecutor {
    /// An executor that waits in this way, where a mock has a latency.
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
            Answer::Result(result) => Prepared::Result(result),
            Answer::File(path) => Prepared::File(ResultFile {
                path,
                content: OnceLock::new(),
            }),
            Answer::Template(source) => {
                let template = Template::compile(&source).map_err(|error| vec![error])?;
                Prepared::Template(Box::new(template))
            }
            Answer::Error(kind, message) => Prepared::Error(kind, message),
        };
        Ok(Arc::new(Mock {
            answer,
            latency: Duration::from_millis(latency_ms),
            sleep: self.sleep.clone(),
        }))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::from(schema_for!(MockSettings).to_value())
    }
}

impl Invoke for Mock {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let dispatch = cx.dispatch().clone();
        dispatch.sent();
        if !self.latency.is_zero() {
            (self.sleep)(self.latency).await;
        }
        let result = match &self.answer {
            Prepared::Result(result) => Ok(result.clone()),
            Prepared::File(file) => file.read(),
            Prepared::Template(template) => template.render(cx.arguments.value()),
            Prepared::Error(kind, message) => Err(ToolError::new(*kind, message.clone())),
        };
        match result.as_ref().err().map(ToolError::kind) {
            Some(kind) if is_not_taken(kind) => dispatch.not_taken(),
            Some(kind) if is_unanswered(kind) => {}
            _ => dispatch.answered(),
        }
        Ok(Reply::value(result?).into())
    }
}

impl Backend for Mock {
    /// All mocks that are written alike are the same, but for files, which may hold something else.
    fn backend_id(&self) -> Option<usize> {
        (!matches!(self.answer, Prepared::File(_))).then_some(0)
    }

    async fn preview(&self, cx: &CallContext) -> Result<Option<Preview>, ToolError> {
        let (rule, what) = match &self.answer {
            Prepared::Result(_) => ("result", "a fixed result".to_owned()),
            Prepared::File(file) => ("result_file", format!("the content of `{}`", file.path.display())),
            Prepared::Template(template) => {
                // What the call would fail with, a dry run fails with as well.
                template.render(cx.arguments.value())?;
                ("template", "a template rendered from the arguments".to_owned())
            }
            Prepared::Error(kind, _) => ("error", format!("an error of the kind `{kind}`")),
        };
        Ok(Some(Preview {
            request: RawJson::from(serde_json::json!({"answered_by": rule})),
            text: format!("nothing is sent: the mock answers with {what}"),
        }))
    }
}

/// Whether a failure stands for an answer that says that the call was not taken, such as HTTP status 401, 429 or 503.
fn is_not_taken(kind: ErrorKind) -> bool {
    use ErrorKind::{Auth, Overloaded, RateLimited, Unavailable};
    matches!(kind, Auth | Overloaded | RateLimited | Unavailable)
}

/// Whether a failure stands for an answer that never came.
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

/// Reads a regular file of a limited size: no device, and no pipe that nobody writes to.
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
