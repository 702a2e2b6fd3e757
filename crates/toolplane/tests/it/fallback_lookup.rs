//! The lookup of fallbacks: among the tools that the client of the call sees, confirmed by their server.

use std::{future::pending, sync::Arc};

use mcp_mock::{MockServer, MockTool};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, executor};
use toolplane::{
    CallRequest, ListCache, MemoryListCache, Toolplane,
    core::{
        BoxFuture, Caller, Catalogue, ClientGroup, ClientIdentity, ClientKey, Descriptor, ErrorKind, Feature,
        OnUpdate, Source, SourceState, SourceStatus, ToolError, Update,
    },
    manifest::{LoadOptions, Syntax, load},
    runtime::{FailureStep, FallbackLadder},
};

fn session(name: &str) -> ClientKey {
    ClientKey::Session(name.into())
}

/// A source that has a tool for one client alone.
struct Private {
    of: ClientIdentity,
    lists: Arc<Catalogue>,
}

impl Source for Private {
    fn name(&self) -> &'static str {
        "private"
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        Arc::default()
    }

    fn snapshot_for(&self, client: &ClientIdentity) -> Option<Arc<Catalogue>> {
        (*client == self.of).then(|| self.lists.clone())
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn changed(&self, _: u64) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    fn may_hold(&self, _: Feature, _: &str) -> bool {
        false
    }

    fn status(&self) -> SourceStatus {
        SourceStatus::new(SourceState::Ready)
    }

    fn on_update(&self, tell: OnUpdate) {
        tell(&Update::ClientLists {
            source: self.name().into(),
            clients: ClientGroup::new(self.of.clone(), false),
            changed: vec![Feature::Tool],
        });
    }
}

fn down() -> ScriptStep {
    ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "down"))
}

/// A tool that always fails, and falls back on another one.
fn failing(fallback: &str) -> Descriptor {
    let mut tool = TestTool::new("primary").descriptor;
    tool.executor.kind = "primary".to_owned();
    let step = FailureStep::Fallback(fallback.into());
    tool.overrides.set(FallbackLadder::from(vec![step]));
    tool
}

async fn kind(plane: &Toolplane, client: ClientKey) -> Option<ErrorKind> {
    let called = plane.call(CallRequest::new("primary").client(client)).await;
    called.err().map(|error| error.kind())
}

#[tokio::test]
async fn a_fallback_may_be_a_tool_of_the_clients_own_connection() {
    let caller = Caller::local();
    let of = ClientIdentity::new(None, Some(&session("anna")), Default::default(), &caller);
    let mut own = TestTool::new("own").descriptor;
    own.executor.kind = "own".to_owned();
    let lists = {
        let mut catalogue = Catalogue::default();
        catalogue.revision = 1;
        catalogue.tools = vec![Arc::new(own)];
        catalogue
    };
    let answers = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = Toolplane::builder()
        .executor(executor("primary", ScriptedExecutor::new([down(), down()])))
        .executor(executor("own", answers.clone()))
        .tool(failing("own"))
        .source(Arc::new(Private {
            of,
            lists: Arc::new(lists),
        }))
        .build()
        .expect("usable");
    assert_eq!(kind(&plane, session("otto")).await, Some(ErrorKind::Unavailable));
    assert_eq!(answers.n_calls(), 0, "the tool is not that client's");
    assert_eq!(kind(&plane, session("anna")).await, None);
    assert_eq!(answers.n_calls(), 1);
}

#[tokio::test]
async fn a_fallback_from_a_kept_list_is_confirmed_by_its_server() {
    let server = MockServer::builder().tool(MockTool::new("gone")).build();
    let http = server.http().await.expect("it listens");
    let store: Arc<dyn ListCache> = Arc::new(MemoryListCache::default());
    let yaml = format!("servers: {{s: {{url: '{}'}}}}", http.url());
    let plane = || {
        let loaded = load(&LoadOptions::new().text("c", Syntax::Yaml, &*yaml)).expect("usable");
        let builder = Toolplane::builder()
            .loaded(&loaded)
            .list_cache(store.clone())
            .executor(executor("primary", ScriptedExecutor::new([down()])))
            .tool(failing("s__gone"));
        builder.build().expect("usable")
    };
    let first = plane();
    first.view(&Caller::local()).await;
    first.shutdown().await;
    server.remove_tool("gone");
    server.clear();
    let plane = plane();
    assert_eq!(kind(&plane, session("anna")).await, Some(ErrorKind::Unavailable));
    assert!(
        server.calls("gone").is_empty(),
        "the server has no such tool any more"
    );
    plane.shutdown().await;
}
