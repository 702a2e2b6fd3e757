//! A plane for tests: tools by name, with what the port of routes asks about them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{
    BoxFuture, CallContext, Caller, ClientCapabilities, ClientIdentity, Clock, DynBackend, DynInvoke,
    Executor, ExecutorSpec, Health, HealthReport, Instant, Invoke, LatencyClass, Layers, Metadata, Observe,
    Observers, Outcome, Reentry, Reply, Tool, ToolError,
};
use tool_observe::{HealthTracker, WatchAttemptLayer};
use tool_route::{Obstacle, RouteExecutor, RouteTools, WantedTools};
use tool_runtime::{DeadlineLayer, TokioClock};
use tool_testkit::{TestTool, call};

/// Tools that routes choose from, and the stack that their calls pass: it ends them in time and counts for health.
pub(crate) struct Plane {
    me: Weak<Self>,
    pub(crate) clock: TokioClock,
    tools: Mutex<BTreeMap<String, Arc<Tool>>>,
    listed: Mutex<Vec<(WantedTools, ToolList)>>,
    pub(crate) obstacles: Mutex<BTreeMap<String, Obstacle>>,
    /// Reports of health, instead of those of the book.
    pub(crate) reports: Mutex<BTreeMap<String, HealthReport>>,
    pub(crate) book: Arc<HealthTracker>,
    stack: Arc<dyn DynInvoke>,
}

type ToolList = Arc<[Arc<Tool>]>;

/// Runs the tool of a call.
struct Run;

impl Invoke for Run {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let tool = cx.tool().clone();
        cx.begin_attempt();
        tool.executor().invoke_boxed(cx).await
    }
}

impl Plane {
    pub(crate) fn new() -> Arc<Self> {
        let clock = TokioClock::new();
        let book = Arc::new(HealthTracker::new(Arc::new(clock), HealthTracker::DEFAULT_WINDOW));
        let observers: Observers = [book.clone() as Arc<dyn Observe>].into_iter().collect();
        let stack = Layers::outermost(DeadlineLayer)
            .then(WatchAttemptLayer::new(observers))
            .around(Run);
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            clock,
            tools: Mutex::default(),
            listed: Mutex::default(),
            obstacles: Mutex::default(),
            reports: Mutex::default(),
            book,
            stack: Arc::new(stack),
        })
    }

    /// Adds a tool with the capability `search`.
    pub(crate) fn add(&self, name: &str, edit: impl FnOnce(&mut Metadata), runs: impl Invoke + 'static) {
        let mut metadata = Metadata::default();
        metadata.capabilities = vec!["search".to_owned()];
        metadata.read_only = Some(true);
        edit(&mut metadata);
        self.put(TestTool::new(name).metadata(metadata).build(runs));
    }

    pub(crate) fn put(&self, tool: Arc<Tool>) {
        self.tools.lock().insert(tool.name().to_string(), tool);
        self.listed.lock().clear();
    }

    pub(crate) fn get(&self, name: &str) -> Arc<Tool> {
        self.tools.lock()[name].clone()
    }

    pub(crate) fn executor(&self) -> RouteExecutor {
        let me = self.me.upgrade().expect("a test holds its plane");
        RouteExecutor::new(me.clone(), me).with_seed(7)
    }

    /// Makes a route of these settings.
    pub(crate) fn route(&self, settings: Value) -> Arc<Tool> {
        let mut tool = TestTool::new("find");
        tool.descriptor.executor = ExecutorSpec::new(RouteExecutor::KIND);
        tool.descriptor.executor.config = settings;
        self.route_of(tool)
    }

    pub(crate) fn route_of(&self, tool: TestTool) -> Arc<Tool> {
        let backend: Arc<dyn DynBackend> = self.executor().prepare(&tool.descriptor).expect("it is usable");
        let route = tool.build(Prepared(backend));
        self.put(route.clone());
        route
    }

    pub(crate) fn cx(&self, route: &Arc<Tool>) -> CallContext {
        call(route.clone(), json!({"query": "rust"}), Arc::new(self.clock))
    }

    /// Calls a route with `{"query": "rust"}`. Returns the name of the tool that it chose, or the error.
    pub(crate) async fn call(&self, route: &Arc<Tool>) -> Result<String, ToolError> {
        let mut cx = self.cx(route);
        let outcome = self.stack.invoke_boxed(&mut cx).await?;
        let reply = outcome.into_reply()?;
        Ok(chosen(reply.meta()))
    }

    /// Makes a call whose context the test looks at.
    pub(crate) async fn call_with(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.stack.invoke_boxed(cx).await
    }

    /// Makes a call that answers.
    pub(crate) async fn reply(&self, cx: &mut CallContext) -> Reply {
        let outcome = self.call_with(cx).await.expect("it answers");
        outcome.into_reply().expect("a reply")
    }
}

/// Returns the tool that the `_meta` of a reply says was chosen.
pub(crate) fn chosen(meta: &[(&'static str, RawJson)]) -> String {
    let (_, route) = meta
        .iter()
        .find(|(key, _)| *key == RouteExecutor::META_KEY)
        .expect("a route says what it chose");
    let tool = route.get("tool").and_then(|tool| tool.string());
    tool.expect("it chose one")
}

/// Returns the identity of a client of the local caller.
pub(crate) fn client() -> ClientIdentity {
    ClientIdentity::new(None, None, ClientCapabilities::default(), &Caller::local())
}

/// Declares a latency.
pub(crate) fn declared(latency: LatencyClass) -> impl FnOnce(&mut Metadata) {
    move |metadata| metadata.latency = Some(latency)
}

/// Backend of a route in a tool of a test.
struct Prepared(Arc<dyn DynBackend>);

impl Invoke for Prepared {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.0.invoke_boxed(cx).await
    }
}

impl RouteTools for Plane {
    fn find<'a>(
        &'a self,
        wanted: &'a WantedTools,
        _: &'a Caller,
        _: &'a ClientIdentity,
    ) -> BoxFuture<'a, Arc<[Arc<Tool>]>> {
        Box::pin(async move {
            let mut listed = self.listed.lock();
            if let Some((_, tools)) = listed.iter().find(|(known, _)| known == wanted) {
                return tools.clone();
            }
            let tools = self.tools.lock();
            let found: ToolList = tools
                .values()
                .filter(|tool| wanted.admits(tool))
                .cloned()
                .collect();
            listed.push((wanted.clone(), found.clone()));
            found
        })
    }

    fn obstacle(&self, tool: &Tool, _: &Caller, _: Instant) -> Option<Obstacle> {
        self.obstacles.lock().get(&**tool.name()).cloned()
    }

    fn health(&self) -> &dyn Health {
        self
    }
}

impl Health for Plane {
    fn tool(&self, name: &str) -> HealthReport {
        let set = self.reports.lock().get(name).copied();
        set.unwrap_or_else(|| Health::tool(&*self.book, name))
    }

    fn upstream(&self, name: &str) -> HealthReport {
        Health::upstream(&*self.book, name)
    }
}

impl Reentry for Plane {
    fn find<'a>(&'a self, tool: &'a str, _: &'a CallContext) -> BoxFuture<'a, Result<Arc<Tool>, ToolError>> {
        Box::pin(async move {
            let tools = self.tools.lock();
            let found = tools.get(tool).cloned();
            found.ok_or_else(|| ToolError::new(tool_core::ErrorKind::NotFound, "no such tool"))
        })
    }

    fn call<'a>(&'a self, cx: &'a mut CallContext) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        self.stack.invoke_boxed(cx)
    }
}

/// Returns the present time of a plane.
pub(crate) fn now(plane: &Plane) -> Instant {
    plane.clock.now()
}
