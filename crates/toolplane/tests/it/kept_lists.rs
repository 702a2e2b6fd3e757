//! Lists that are kept between runs: offered before a server runs, confirmed before a call, and without secrets.

use std::{fs, future::ready, path::Path, sync::Arc, time::Duration};

use mcp_mock::{MockHttp, MockPrompt, MockResource, MockServer, MockTool};
use raw_json::RawJson;
use tool_store_sqlite::{SqliteOptions, sqlite_store};
use toolplane::{
    CallRequest, FileListCache, ListCache, MemoryListCache, StoredListCache, Toolplane,
    core::{
        BoxFuture, Caller, ErrorKind, Feature, Outcome, Preview, Reference, Secret, SecretError, Secrets,
        SourceState,
    },
    manifest::{LoadOptions, Loaded, Syntax, load},
};

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).expect("JSON")
}

/// A server, and the store that its lists are kept in.
struct World {
    server: MockServer,
    http: MockHttp,
    store: Arc<dyn ListCache>,
}

impl World {
    async fn new(tools: &[&str]) -> Self {
        let tools = tools.iter().map(|tool| MockTool::new(*tool));
        let server = tools.fold(MockServer::builder(), mcp_mock::MockServerBuilder::tool);
        let server = server
            .prompt(MockPrompt::new("ask"))
            .resource(MockResource::new("file:///a"))
            .resource(MockResource::template("file:///{name}"))
            .build();
        Self {
            http: server.http().await.expect("it listens"),
            server,
            store: Arc::new(MemoryListCache::default()),
        }
    }

    fn loaded(&self, settings: &str, rest: &str) -> Loaded {
        let url = self.http.url();
        let yaml = format!("servers: {{s: {{url: '{url}'{settings}}}}}\n{rest}");
        load(&LoadOptions::new().text("c", Syntax::Yaml, yaml)).expect("usable")
    }

    fn plane(&self) -> Toolplane {
        self.plane_with("", "")
    }

    fn plane_with(&self, settings: &str, rest: &str) -> Toolplane {
        let builder = Toolplane::builder().loaded(&self.loaded(settings, rest));
        let builder = builder.list_cache(self.store.clone()).secrets(Arc::new(Vault));
        builder.build().expect("usable")
    }

    /// A run in which everything is listed.
    async fn first_run(&self) {
        let plane = self.plane();
        plane.view(&Caller::local()).await;
        plane.shutdown().await;
        self.server.clear();
    }
}

/// A long secret, and a short one.
struct Vault;

const LONG: &str = "hunter2-hunter2";
const SHORT: &str = "xyzzy";

impl Secrets for Vault {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let value = if reference.name == "short" { SHORT } else { LONG };
        Box::pin(ready(Ok(Some(Secret::new(value)))))
    }

    fn has(&self, _: &Reference) -> Result<bool, SecretError> {
        Ok(true)
    }
}

async fn names(plane: &Toolplane) -> Vec<String> {
    let listing = plane.list_within(&Caller::local(), Duration::ZERO).await;
    let tools = listing.view.tools().iter();
    tools.map(|tool| tool.name().to_string()).collect()
}

async fn kind(plane: &Toolplane, request: CallRequest) -> Option<ErrorKind> {
    plane.call(request).await.err().map(|error| error.kind())
}

#[tokio::test]
async fn after_a_restart_everything_is_listed_at_once_and_nothing_is_started() {
    let world = World::new(&["a", "b"]).await;
    world.first_run().await;
    let plane = world.plane();
    let listing = plane.list_within(&Caller::local(), Duration::ZERO).await;
    let numbers = Feature::ALL
        .iter()
        .map(|&feature| listing.view.list(feature).len());
    assert_eq!((numbers.collect(), listing.missing), (vec![2, 1, 1, 1], vec![]));
    let (_, status) = plane.sources().remove(1);
    assert_eq!(
        (status.state, status.n_tools, status.has_kept_lists),
        (SourceState::NotStarted, 2, true)
    );
    assert!(world.server.received().is_empty(), "nobody has asked it");

    // The first call starts it, and its list comes before the call.
    plane
        .call(CallRequest::new("s__a"))
        .await
        .expect("it is answered");
    plane
        .call(CallRequest::new("s__b"))
        .await
        .expect("it is answered");
    let received = world
        .server
        .received()
        .into_iter()
        .map(|received| received.method);
    let received: Vec<_> = received
        .filter(|method| method == "tools/list" || method == "tools/call")
        .collect();
    assert_eq!(received, ["tools/list", "tools/call", "tools/call"]);
    assert!(!plane.sources()[1].1.has_kept_lists);
    plane.shutdown().await;
}

#[tokio::test]
async fn what_has_changed_meanwhile_counts_from_the_first_call_on() {
    for (request, expected) in [
        (CallRequest::new("s__gone"), Some(ErrorKind::NotFound)),
        (CallRequest::new("s__changed"), Some(ErrorKind::InvalidArguments)),
        (
            CallRequest::new("s__changed").json(r#"{"n": 1}"#).expect("JSON"),
            None,
        ),
        (CallRequest::new("s__new"), None),
        (CallRequest::new("s__same"), None),
        (CallRequest::new("s__never"), Some(ErrorKind::NotFound)),
        (CallRequest::prompt("s__ask"), None),
        (CallRequest::resource("file:///a"), None),
        (CallRequest::resource("file:///b"), None),
    ] {
        let world = World::new(&["same", "gone", "changed"]).await;
        world.first_run().await;
        for tool in ["gone", "changed"] {
            world.server.remove_tool(tool);
        }
        let schema = raw(r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#);
        world
            .server
            .add_tool(MockTool::new("changed").input_schema(schema));
        world.server.add_tool(MockTool::new("new"));

        let plane = world.plane();
        assert_eq!(names(&plane).await, ["s__changed", "s__gone", "s__same"]);
        let mut changes = plane.changes();
        changes.mark_unchanged();
        let what = format!("{request:?}");
        assert_eq!(kind(&plane, request).await, expected, "{what}");
        changes.changed().await.expect("clients are told");
        assert_eq!(names(&plane).await, ["s__changed", "s__new", "s__same"], "{what}");
        plane.shutdown().await;
        // And from then on also for the next run.
        assert_eq!(
            names(&world.plane()).await,
            ["s__changed", "s__new", "s__same"],
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_call_that_is_not_allowed_starts_nothing() {
    let world = World::new(&["a"]).await;
    world.first_run().await;
    let plane = world.plane_with("", "policy: {blocklist: ['s__*']}");
    for request in ["s__a"]
        .map(CallRequest::new)
        .into_iter()
        .chain([CallRequest::prompt("s__ask"), CallRequest::resource("file:///a")])
    {
        let what = format!("{request:?}");
        assert_eq!(kind(&plane, request).await, Some(ErrorKind::Denied), "{what}");
    }
    assert!(world.server.received().is_empty());
    plane.shutdown().await;
}

#[tokio::test]
async fn a_server_that_does_not_start_keeps_its_place_on_the_list() {
    let world = World::new(&["a"]).await;
    world.first_run().await;
    let plane = world.plane();
    // Nothing listens there any more.
    drop(world);
    assert_eq!(names(&plane).await, ["s__a"]);
    for _ in 0..2 {
        assert_eq!(
            kind(&plane, CallRequest::new("s__a")).await,
            Some(ErrorKind::Unavailable)
        );
        assert_eq!(names(&plane).await, ["s__a"]);
    }
    assert!(matches!(plane.sources()[1].1.state, SourceState::Failed(_)));
    plane.shutdown().await;
}

#[tokio::test]
async fn another_configuration_of_a_server_has_lists_of_its_own() {
    let world = World::new(&["a"]).await;
    world.first_run().await;
    let plane = world.plane_with(", headers: {X-Account: other}", "");
    let listing = plane.list_within(&Caller::local(), Duration::ZERO).await;
    assert_eq!(listing.missing.len(), 1, "its list is not known yet");
    // Back to the settings of before, while the plane runs.
    plane.reload(&world.loaded("", "")).expect("usable");
    world.server.clear();
    assert_eq!(names(&plane).await, ["s__a"]);
    // Filters and names count for kept lists as they do for others.
    plane
        .reload(&world.loaded(", prefix: 'x_', exclude: ['b']", ""))
        .expect("usable");
    assert_eq!(names(&plane).await, ["x_a"]);
    plane
        .reload(&world.loaded(", exclude: ['a']", ""))
        .expect("usable");
    assert!(names(&plane).await.is_empty());
    plane.shutdown().await;
}

#[tokio::test]
async fn lists_are_not_kept_where_the_operator_says_so() {
    for (settings, rest, is_kept) in [
        ("", "", true),
        (", keep_lists: false", "", false),
        ("", "defaults: {keep_lists: false}", false),
        (", keep_lists: true", "defaults: {keep_lists: false}", true),
    ] {
        let world = World::new(&["a"]).await;
        for n_tools in [0, usize::from(is_kept)] {
            let plane = world.plane_with(settings, rest);
            plane.recall().await;
            assert_eq!(
                plane.cached_view(&Caller::local()).tools().len(),
                n_tools,
                "{settings} {rest}"
            );
            plane.view(&Caller::local()).await;
            plane.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_lazy_server_whose_lists_are_kept_waits_until_it_is_needed() {
    for (settings, rest, is_started) in [
        ("", "", false),
        (", start: eager", "", true),
        (", start: lazy", "", false),
        ("", "defaults: {start: eager}", true),
        (", start: lazy", "defaults: {start: eager}", false),
        (", required: true", "", true),
        // No other source lists its offers.
        (", keep_lists: false", "", true),
    ] {
        let world = World::new(&["a"]).await;
        world.first_run().await;
        let plane = world.plane_with(settings, rest);
        let what = format!("{settings} {rest}");
        // Only required servers must run.
        let is_required = settings.contains("required");
        assert_eq!(plane.readiness().is_ready(), !is_required, "{what}");
        plane.start_servers().await;
        assert_eq!(!world.server.received().is_empty(), is_started, "{what}");
        let state = if is_started { "ready" } else { "not started" };
        assert_eq!(plane.readiness().servers, [("s".to_owned(), state)], "{what}");
        assert!(
            plane.readiness().is_ready(),
            "one that is not started is ready on demand: {what}"
        );

        let record = plane.server_records().remove(0);
        let is_lazy = !is_required && !what.contains("eager") || settings.contains("lazy");
        let start = if is_lazy { "lazy" } else { "eager" };
        let lists = if is_started { "read" } else { "kept" };
        assert_eq!(
            (&record["start"], &record["lists"]),
            (&start.into(), &lists.into()),
            "{what}"
        );
        let tool = plane.known_tool("s__a").expect("it is known");
        let of_tool = plane.server_record_of(&tool).expect("it is a server's");
        assert_eq!(
            (&of_tool["state"], &of_tool["lists"]),
            (&state.into(), &lists.into()),
            "{what}"
        );
        plane
            .call(CallRequest::new("s__a"))
            .await
            .expect("it is there when it is needed");
        let page: serde_json::Value = plane.health_page(&Caller::local()).to().expect("JSON");
        assert_eq!(page["tools"][0]["state"], "ready", "{page}");
        plane.shutdown().await;
    }
}

/// Everything that is in files below a folder.
fn contents(folder: &Path) -> String {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let texts = paths.map(|path| match path.is_dir() {
        true => contents(&path),
        false => fs::read_to_string(path).expect("it is text"),
    });
    texts.collect()
}

#[tokio::test]
async fn no_known_secret_is_written() {
    for (reference, value, is_written) in [("long", LONG, true), ("short", SHORT, false)] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = World::new(&["plain"]).await;
        world.store = Arc::new(FileListCache::new(folder.path().join("lists")));
        let text = format!("log in with {value}");
        world.server.add_tool(
            MockTool::new("leaky")
                .description(&text)
                .member("x", raw(&format!(r#"{{"{value}": 1e2}}"#))),
        );
        world
            .server
            .add_prompt(MockPrompt::new("leaky").description(&text));
        world
            .server
            .add_resource(MockResource::new(format!("file:///{value}")));
        let plane = world.plane_with(
            &format!(", headers: {{K: '${{secret:{reference}}}', L: '${{secret:long}}'}}"),
            "",
        );
        plane.view(&Caller::local()).await;
        plane.shutdown().await;
        let written = contents(folder.path());
        assert_eq!(written.contains("plain"), is_written, "{written}");
        assert!(!written.contains(LONG) && !written.contains(SHORT), "{written}");
    }
}

#[tokio::test]
async fn a_dry_run_shows_the_request_and_starts_no_server_whose_list_is_kept() {
    let world = World::new(&["a"]).await;
    world.first_run().await;
    let plane = world.plane();
    let request = CallRequest::new("s__a").json(r#"{"n": 1.0}"#).expect("JSON");
    let dry = plane.dry_run(request).await;
    let Ok(Outcome::Pending(pending)) = dry.result else {
        panic!("{dry:?}")
    };
    let preview = Preview::from_json(&pending.detail.expect("a preview")).expect("a preview");
    let expected = r#"{"server":"s","method":"tools/call","params":{"name":"a","arguments":{"n": 1.0}}}"#;
    assert_eq!(preview.request.as_str(), expected);
    assert!(
        preview.text.starts_with("tools/call to the server `s`"),
        "{}",
        preview.text
    );
    assert!(world.server.received().is_empty(), "nobody has asked it");
    assert_eq!(plane.sources()[1].1.state, SourceState::NotStarted);
}

/// Another gateway on the same database offers the lists, in the server's bytes.
#[tokio::test]
async fn lists_in_a_database_are_offered_by_every_gateway_on_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || {
        let store = sqlite_store(SqliteOptions::new(folder.path().join("toolplane.db")));
        StoredListCache::new(Arc::new(store))
    };
    let mut world = World::new(&["a", "b"]).await;
    world.store = Arc::new(open());
    world.first_run().await;
    world.store = Arc::new(open());
    let plane = world.plane();
    let listing = plane.list_within(&Caller::local(), Duration::ZERO).await;
    let numbers = Feature::ALL
        .iter()
        .map(|&feature| listing.view.list(feature).len());
    assert_eq!((numbers.collect(), listing.missing), (vec![2, 1, 1, 1], vec![]));
    assert!(world.server.received().is_empty(), "nobody has asked it");
    assert_eq!(world.store.forget(Some("other")).await.expect("works"), 0);
    assert_eq!(world.store.forget(Some("s")).await.expect("works"), 1);
    assert_eq!(names(&world.plane()).await, [""; 0], "they are forgotten");
}
