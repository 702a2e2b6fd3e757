//! A server for tests, and the ports that an executor needs.

use std::{
    fs, future,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tempfile::TempDir;
use tool_core::{
    Backend, BoxFuture, CallContext, Clock, Descriptor, DynBackend, Executor as _, Instant, Invoke, Outcome,
    Progress, Reference, Refresh, Reply, Secret, SecretError, Secrets, Settings, Target, Template, Tool,
    ToolError,
};
use tool_exec_mcp::{EraChoice, McpExecutor, McpServer, ServerSettings, StdioTarget};
use tool_testkit::TestTool;

/// Time after which a test counts as hung.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Folder that controls a server and in which the server records what happens.
pub(crate) struct Fixture {
    folder: TempDir,
}

impl Fixture {
    /// A server with these tools on its list: names, or whole definitions.
    pub(crate) fn new(tools: &[Value]) -> Self {
        let fixture = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fixture.lists(tools);
        fixture
    }

    /// Replaces the tools on the server's list.
    pub(crate) fn lists(&self, tools: &[Value]) {
        let tools: Vec<Value> = tools
            .iter()
            .map(|tool| match tool {
                Value::String(name) => json!({"name": name, "inputSchema": {"type": "object"}}),
                definition => definition.clone(),
            })
            .collect();
        self.has("tools", &Value::from(tools).to_string());
    }

    /// Replaces the list under a key of the protocol, such as `prompts`.
    pub(crate) fn has(&self, key: &str, list: &str) {
        // A server that reads it meanwhile never sees it half written.
        let next = self.path("next");
        fs::write(&next, list).unwrap();
        fs::rename(next, self.path(&format!("{key}.json"))).unwrap();
    }

    /// Sets the capabilities that the server declares when it is started.
    pub(crate) fn offers(&self, capabilities: &Value) {
        fs::write(self.path("capabilities.json"), capabilities.to_string()).unwrap();
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Returns the lines that the server has written to a file.
    pub(crate) fn notes(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the server has written this to a file.
    pub(crate) async fn noted(&self, file: &str, line: &str) {
        let noted = async {
            while !self.notes(file).iter().any(|note| note == line) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LIMIT, noted)
            .await
            .unwrap_or_else(|_| panic!("`{line}` is not in `{file}`"));
    }

    pub(crate) fn settings(&self, mode: &str) -> ServerSettings {
        let target = StdioTarget::new(program("tool-exec-mcp-fixture"))
            .args([text(self.folder.path().to_str().unwrap()), text(mode)]);
        ServerSettings::new("box", target)
    }

    pub(crate) fn server(&self, mode: &str) -> Arc<McpServer> {
        let mut settings = self.settings(mode);
        if mode == "modern" {
            settings.era = EraChoice::Modern;
        }
        McpServer::new(settings, Arc::new(NoSecrets))
    }
}

/// A text without references.
pub(crate) fn text(text: &str) -> Template {
    Template::parse(text).unwrap()
}

/// A tool with this name at the server.
pub(crate) fn tool(name: &str) -> Value {
    json!(name)
}

/// Loads the lists, and returns the tools that the server offers.
pub(crate) async fn load(server: &Arc<McpServer>) -> Arc<tool_core::Catalogue> {
    let source = server.source();
    tokio::time::timeout(LIMIT, source.load()).await.unwrap();
    source.snapshot()
}

/// Call of a server's tool, ready to be made.
pub(crate) struct Call {
    pub(crate) cx: CallContext,
}

impl Call {
    /// A call of a tool as the operator's manifest names it.
    pub(crate) fn new(server: &Arc<McpServer>, tool: &str, arguments: Value) -> Self {
        let mut test_tool = TestTool::new("outward");
        test_tool.descriptor.executor.kind = McpExecutor::KIND.to_owned();
        test_tool.descriptor.executor.config = json!({"server": "box", "tool": tool});
        Self::for_tool(server, test_tool.descriptor, arguments)
    }

    /// A call of a tool on the server's list.
    pub(crate) fn for_tool(server: &Arc<McpServer>, descriptor: Descriptor, arguments: Value) -> Self {
        let servers = McpExecutor::new([server.clone()]);
        let executor = servers.prepare(&descriptor).unwrap();
        let settings = Settings::default();
        let tool = TestTool {
            provenance: servers.provenance(&descriptor),
            descriptor,
            settings,
            upstream: None,
            state: None,
        }
        .build_on(Prepared(executor));
        Self {
            cx: tool_testkit::call(tool, arguments, Arc::new(StoppedClock)),
        }
    }

    /// Changes the target, for example to the tool's completion.
    pub(crate) fn to(mut self, target: impl FnOnce(Arc<Tool>) -> Target) -> Self {
        self.cx.target = target(self.cx.tool().clone());
        self
    }

    /// Sets the time limit of the call.
    pub(crate) fn within(mut self, limit: Duration) -> Self {
        self.cx.tighten_deadline(limit);
        self
    }

    pub(crate) async fn make(&mut self) -> Result<Reply, ToolError> {
        match self.come().await? {
            Outcome::Reply(reply) => Ok(reply),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the outcome, finished or not.
    pub(crate) async fn come(&mut self) -> Result<Outcome, ToolError> {
        let executor = self.cx.tool().executor().clone();
        let outcome = tokio::time::timeout(LIMIT, executor.invoke_boxed(&mut self.cx)).await;
        outcome.unwrap()
    }
}

/// Records every report.
#[derive(Default)]
pub(crate) struct Reports(pub(crate) Mutex<Vec<RawJson>>);

impl Progress for Reports {
    fn report(&self, report: RawJson) {
        self.0.lock().unwrap().push(report);
    }
}

/// Clock that stands still, so that a limit equals the remaining time.
pub(crate) struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Instant {
        Instant::default()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Path of a program in `tests/it/bin`, an example of this package, which cargo builds with the tests.
pub(crate) fn program(name: &str) -> Template {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).expect("a test is in `deps`");
    let path = profile
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let hint = format!("build it: cargo build -p tool-exec-mcp --example {name}");
    assert!(path.exists(), "`{}` is missing; {hint}", path.display());
    text(path.to_str().unwrap())
}

/// Secrets without any value.
pub(crate) struct NoSecrets;

impl Secrets for NoSecrets {
    fn get<'a>(&'a self, _: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(future::ready(Ok(None)))
    }

    fn has(&self, _: &Reference) -> Result<bool, SecretError> {
        Ok(false)
    }
}

/// A prepared tool as the backend of a test tool.
struct Prepared(Arc<dyn DynBackend>);

impl Invoke for Prepared {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.0.invoke_boxed(cx).await
    }
}

impl Backend for Prepared {
    async fn refresh_credentials(&self, refresh: Refresh) -> bool {
        self.0.refresh_credentials_boxed(refresh).await
    }
}
