//! Sources, names, resolution, and changes and failures of sources.

mod loading;
mod lock_file;
mod names;
mod pins;
mod store;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use raw_json::RawJson;
use tokio::sync::{Semaphore, watch};
use tool_core::{
    BoxFuture, Catalogue, Descriptor, DisabledTool, Feature, Instant, RejectedEntry, Source, SourceState,
    SourceStatus,
};
use tool_registry::{FixedSource, Registry, RegistryParts};
use tool_testkit::{ScriptedExecutor, TestTool};

/// A server whose tools become known once it is loaded.
struct LazyServer {
    name: String,
    offer: Mutex<Vec<Arc<Descriptor>>>,
    catalogue: watch::Sender<Arc<Catalogue>>,
    n_loads: AtomicUsize,
    fails: bool,
    /// Permits of loads.
    gate: Semaphore,
}

impl LazyServer {
    fn new(name: &str, tools: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            offer: Mutex::new(tools.iter().map(|tool| descriptor(tool)).collect()),
            catalogue: watch::Sender::default(),
            n_loads: AtomicUsize::new(0),
            fails: false,
            gate: Semaphore::new(1),
        }
    }

    /// Makes the loads of the server wait for permits.
    fn slow(self) -> Arc<Self> {
        Arc::new(Self {
            gate: Semaphore::new(0),
            ..self
        })
    }

    /// Changes the tools, as a server does that sends `list_changed`.
    fn offer(&self, tools: Vec<Arc<Descriptor>>) {
        let revision = self.catalogue.borrow().revision + 1;
        self.catalogue
            .send_replace(Arc::new(Catalogue::new(revision, tools)));
    }
}

impl Source for LazyServer {
    fn name(&self) -> &str {
        &self.name
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.catalogue.borrow().clone()
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        let is_first = self.n_loads.fetch_add(1, Ordering::SeqCst) == 0;
        Box::pin(async move {
            let _turn = self.gate.acquire().await.expect("it is never closed");
            if is_first && !self.fails {
                let tools = self.offer.lock().expect("no test panics with it").clone();
                self.offer(tools);
            }
        })
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        let mut catalogue = self.catalogue.subscribe();
        Box::pin(async move {
            let _ = catalogue.wait_for(|catalogue| catalogue.revision != seen).await;
        })
    }

    fn may_hold(&self, _: Feature, name: &str) -> bool {
        name.starts_with(&self.name)
    }

    fn status(&self) -> SourceStatus {
        let state = if self.fails {
            SourceState::Failed("it does not start".to_owned())
        } else {
            SourceState::Ready
        };
        SourceStatus::new(state)
    }
}

fn descriptor(name: &str) -> Arc<Descriptor> {
    Arc::new(TestTool::new(name).descriptor)
}

fn parts(sources: Vec<Arc<dyn Source>>) -> RegistryParts {
    let executors: Vec<Arc<dyn tool_core::Executor>> = vec![Arc::new(ScriptedExecutor::new([]))];
    RegistryParts::default()
        .with_sources(sources)
        .with_executors(executors)
}

fn registry(sources: Vec<Arc<dyn Source>>) -> Registry {
    Registry::new(parts(sources))
}

fn names(registry: &Registry) -> Vec<String> {
    registry
        .snapshot()
        .tools()
        .iter()
        .map(|tool| tool.name().to_string())
        .collect()
}

#[tokio::test]
async fn tools_are_listed_in_the_order_of_their_names() {
    let registry = registry(vec![
        Arc::new(FixedSource::new(
            "configuration",
            vec![descriptor("zeta"), descriptor("alpha")],
        )),
        Arc::new(LazyServer::new("mid", &["mid__b", "mid__a"])),
    ]);
    assert_eq!(
        names(&registry),
        ["alpha", "zeta"],
        "nothing is started for what is known"
    );
    registry.load().await;
    assert_eq!(names(&registry), ["alpha", "mid__a", "mid__b", "zeta"]);
}

#[tokio::test]
async fn only_the_source_that_may_hold_a_tool_is_loaded_for_it() {
    let (one, two) = (
        Arc::new(LazyServer::new("one", &["one__a"])),
        Arc::new(LazyServer::new("two", &["two__a"])),
    );
    let registry = registry(vec![one.clone(), two.clone()]);
    assert!(registry.find("one__a").await.is_some());
    assert!(registry.find("one__b").await.is_none());
    assert!(registry.find("three__a").await.is_none());
    assert_eq!(
        (
            one.n_loads.load(Ordering::SeqCst),
            two.n_loads.load(Ordering::SeqCst)
        ),
        (2, 0)
    );
}

#[tokio::test]
async fn of_two_tools_with_one_name_the_first_is_offered_and_the_second_refused() {
    let registry = registry(vec![
        Arc::new(FixedSource::new("configuration", vec![descriptor("same")])),
        Arc::new(FixedSource::new(
            "other",
            vec![descriptor("same"), descriptor("own")],
        )),
    ]);
    assert_eq!(names(&registry), ["own", "same"]);
    let snapshot = registry.snapshot();
    let [refused] = snapshot.refused() else {
        panic!("{:?}", snapshot.refused())
    };
    assert_eq!(
        (refused.source.as_str(), refused.name.as_str()),
        ("other", "same")
    );
    assert!(
        refused.reason.contains("already a tool of `configuration`"),
        "{}",
        refused.reason
    );
}

/// A list that is large enough for more than one thread.
#[tokio::test]
async fn the_first_source_wins_among_thousands_of_tools() {
    let source = |name: &str, range: std::ops::Range<usize>| -> Arc<dyn Source> {
        let tools = range.map(|tool| descriptor(&format!("tool_{tool:04}")));
        Arc::new(FixedSource::new(name, tools.collect()))
    };
    let registry = registry(vec![source("one", 0..2000), source("two", 1000..3000)]);
    let expected: Vec<_> = (0..3000).map(|tool| format!("tool_{tool:04}")).collect();
    assert_eq!(names(&registry), expected);
    let snapshot = registry.snapshot();
    let refused = snapshot.refused().iter();
    let refused: Vec<_> = refused
        .map(|refused| (refused.source.as_str(), refused.name.as_str()))
        .collect();
    let expected: Vec<_> = expected[1000..2000]
        .iter()
        .map(|name| ("two", name.as_str()))
        .collect();
    assert_eq!(refused, expected);
}

#[tokio::test]
async fn a_tool_that_cannot_be_prepared_is_refused_with_the_reason() {
    let mut unknown = TestTool::new("unknown").descriptor;
    unknown.executor.kind = "carrier-pigeon".to_owned();
    let mut badly_named = TestTool::new("x").descriptor;
    badly_named.name = "not a name".into();
    let tools = vec![Arc::new(unknown), Arc::new(badly_named), descriptor("good")];
    let registry = registry(vec![Arc::new(FixedSource::new("configuration", tools))]);
    assert_eq!(names(&registry), ["good"]);
    let snapshot = registry.snapshot();
    let reasons: Vec<_> = snapshot
        .refused()
        .iter()
        .map(|refused| refused.reason.as_str())
        .collect();
    assert!(
        reasons[0].contains("no executor `carrier-pigeon` here; there are `scripted`"),
        "{reasons:?}"
    );
    assert!(reasons[1].contains("`not a name` is no tool name"), "{reasons:?}");
}

#[tokio::test]
async fn a_change_keeps_what_did_not_change() {
    let lazy = Arc::new(LazyServer::new("srv", &["srv__a", "srv__b"]));
    let registry = registry(vec![lazy.clone()]);
    registry.follow();
    registry.load().await;
    let before = registry.snapshot();
    let mut changes = registry.changes();
    changes.mark_unchanged();
    let kept = before.get("srv__a").unwrap().descriptor().clone();
    let mut changed = TestTool::new("srv__b").descriptor;
    changed.description = "Something else.".to_owned();
    lazy.offer(vec![kept, Arc::new(changed), descriptor("srv__c")]);
    changes.changed().await.unwrap();
    let after = registry.snapshot();
    assert!(after.revision() > before.revision());
    assert_eq!(names(&registry), ["srv__a", "srv__b", "srv__c"]);
    let (old, new) = (before.get("srv__b").unwrap(), after.get("srv__b").unwrap());
    assert!(Arc::ptr_eq(
        before.get("srv__a").unwrap(),
        after.get("srv__a").unwrap()
    ));
    assert_ne!(old.digest(), new.digest());
    assert!(Arc::ptr_eq(old.state(), new.state()), "state belongs to the name");
}

/// A changed description does not enable a tool whose credentials were refused.
#[tokio::test]
async fn a_disabled_tool_stays_disabled_when_its_description_changes() {
    let lazy = Arc::new(LazyServer::new("srv", &["srv__a"]));
    let registry = registry(vec![lazy.clone()]);
    let before = registry.find("srv__a").await.expect("it is there");
    before.state().disable(DisabledTool::new(
        "its credentials are refused".to_owned(),
        SystemTime::UNIX_EPOCH,
        Instant::default(),
    ));
    let mut changed = TestTool::new("srv__a").descriptor;
    changed.description = "Something else.".to_owned();
    lazy.offer(vec![Arc::new(changed)]);
    let now = registry.load().await.get("srv__a").expect("it is there").clone();
    assert_ne!(before.digest(), now.digest());
    assert!(now.state().disabled().is_some());
}

/// R21: a caller that waits for a server which is replaced in the meantime finds the tools of its replacement.
#[tokio::test]
async fn who_waits_for_a_source_waits_for_the_one_in_its_place() {
    let before = LazyServer::new("srv", &["srv__a"]).slow();
    let registry = registry(vec![before.clone()]);
    let [found, listed] = [registry.clone(), registry.clone()];
    let found = tokio::spawn(async move { found.find("srv__a").await });
    let listed = tokio::spawn(async move { listed.load().await });
    while before.n_loads.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    registry.replace(parts(vec![Arc::new(LazyServer::new("srv", &["srv__a"]))]), false);
    before.gate.add_permits(1);
    assert!(found.await.expect("no panic").is_some());
    assert!(listed.await.expect("no panic").get("srv__a").is_some());
}

#[tokio::test]
async fn a_failed_source_is_missing_with_its_reason() {
    let failed = LazyServer {
        fails: true,
        ..LazyServer::new("bad", &["bad__a"])
    };
    let registry = registry(vec![
        Arc::new(failed),
        Arc::new(LazyServer::new("good", &["good__a"])),
    ]);
    registry.load().await;
    assert_eq!(names(&registry), ["good__a"]);
    let owner = registry.find_failed_source(Feature::Tool, "bad__a");
    let (name, status) = owner.expect("it has one");
    assert_eq!(
        (&*name, status.state),
        ("bad", SourceState::Failed("it does not start".to_owned()))
    );
    assert_eq!(registry.find_failed_source(Feature::Tool, "good__b"), None);
}

#[tokio::test]
async fn entries_that_a_source_rejects_are_listed() {
    let lazy = LazyServer::new("srv", &[]);
    let rejected = RejectedEntry::new(Feature::Tool, "srv__x", "no schema");
    let mut catalogue = Catalogue::new(1, Vec::new());
    catalogue.rejected = vec![rejected];
    lazy.catalogue.send_replace(Arc::new(catalogue));
    let registry = registry(vec![Arc::new(lazy)]);
    assert_eq!(registry.snapshot().refused()[0].reason, "no schema");
}

#[tokio::test]
async fn a_registry_that_is_gone_follows_nothing() {
    let lazy = Arc::new(LazyServer::new("srv", &["srv__a"]));
    let registry = registry(vec![lazy.clone()]);
    registry.follow();
    tokio::task::yield_now().await;
    assert!(
        Arc::strong_count(&lazy) > 2,
        "the following task holds its source"
    );
    drop(registry);
    while Arc::strong_count(&lazy) > 1 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn definitions_of_a_server_have_our_name() {
    let mut tool = TestTool::new("srv__a").descriptor;
    let raw = r#"{"x-vendor": 1e2, "name": "a", "inputSchema": {"type":"object"}, "annotations": {"z": 1, "a": 2}}"#;
    tool.definition = Some(raw_json::RawJson::parse(raw).unwrap());
    let registry = registry(vec![Arc::new(FixedSource::new("srv", vec![Arc::new(tool)]))]);
    let snapshot = registry.snapshot();
    assert_eq!(
        snapshot.get("srv__a").unwrap().definition().as_str(),
        raw.replace("\"name\": \"a\"", "\"name\": \"srv__a\"")
    );
}

/// A source whose prompts, resources and templates never change.
fn feature_source(name: &str, others: Vec<Descriptor>) -> Arc<dyn Source> {
    let lazy = LazyServer::new(name, &[]);
    lazy.catalogue.send_replace(Arc::new(
        Catalogue::new(1, Vec::new()).with_others(others.into_iter().map(Arc::new).collect()),
    ));
    Arc::new(lazy)
}

fn other(feature: Feature, server: &str, key: &str) -> Descriptor {
    let mut descriptor = TestTool::new(&format!("{server}__{key}")).descriptor;
    descriptor.feature = feature;
    descriptor.origin.place = format!("the server `{server}`");
    if feature != Feature::Prompt {
        descriptor.uri = Some(key.into());
        descriptor.definition = Some(RawJson::from(serde_json::json!({"name": "for people"})));
    }
    descriptor
}

/// Returns the name of the feature that a resource resolves to, and the name by which policy knows the resource.
fn resolved_names(registry: &Registry, uri: &str) -> Option<(String, String)> {
    let target = registry.snapshot().resource(uri)?;
    Some((target.tool().name().to_string(), target.name().into_owned()))
}

#[tokio::test]
async fn a_resource_is_found_by_its_uri_then_by_a_template_then_by_its_scheme() {
    let registry = registry(vec![
        feature_source(
            "a",
            vec![
                other(Feature::Resource, "a", "demo://text/1"),
                other(Feature::ResourceTemplate, "a", "demo://text/{id}"),
                other(Feature::Resource, "a", "file:///shared"),
            ],
        ),
        feature_source("b", vec![other(Feature::Resource, "b", "file:///other")]),
    ]);
    let found = |uri, by: &str, name: &str| {
        assert_eq!(
            resolved_names(&registry, uri),
            Some((by.to_owned(), name.to_owned()))
        );
    };
    found("demo://text/1", "a__demo://text/1", "a__demo://text/1");
    found("demo://text/2", "a__demo://text/{id}", "a__demo://text/2");
    found("demo://blob/2", "a__demo://text/1", "a__demo://blob/2");
    // Two servers have files, so that the owner of this one is unknown.
    assert_eq!(resolved_names(&registry, "file:///third"), None);
    assert_eq!(resolved_names(&registry, "none://at/all"), None);
}

#[tokio::test]
async fn of_two_resources_of_one_uri_the_first_is_offered_and_the_second_refused() {
    let registry = registry(vec![
        feature_source("a", vec![other(Feature::Resource, "a", "demo://x")]),
        feature_source("b", vec![other(Feature::Resource, "b", "demo://x")]),
    ]);
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.list(Feature::Resource).len(), 1);
    assert_eq!(&**snapshot.list(Feature::Resource)[0].name(), "a__demo://x");
    let refused = &snapshot.refused()[0];
    assert_eq!(
        (refused.feature, &*refused.name),
        (Feature::Resource, "b__demo://x")
    );
    assert!(
        refused.reason.contains("already a resource of `a`"),
        "{}",
        refused.reason
    );
}

#[tokio::test]
async fn a_tool_and_a_prompt_may_have_the_same_name() {
    let lazy = LazyServer::new("srv", &[]);
    lazy.catalogue.send_replace(Arc::new(
        Catalogue::new(1, vec![descriptor("srv__x")]).with_others(vec![Arc::new(other(
            Feature::Prompt,
            "srv",
            "x",
        ))]),
    ));
    let registry = registry(vec![Arc::new(lazy)]);
    assert_eq!(
        registry.find("srv__x").await.expect("a tool").feature(),
        Feature::Tool
    );
    let prompt = registry.find_prompt("srv__x").await.expect("a prompt");
    assert_eq!(prompt.feature(), Feature::Prompt);
}

#[tokio::test]
async fn a_list_that_did_not_change_keeps_its_revision() {
    let lazy = Arc::new(LazyServer::new("srv", &[]));
    lazy.n_loads.store(1, Ordering::SeqCst);
    let prompt = Arc::new(other(Feature::Prompt, "srv", "x"));
    let set = |revision, tools: &[&str]| {
        lazy.catalogue.send_replace(Arc::new(
            Catalogue::new(revision, tools.iter().map(|name| descriptor(name)).collect())
                .with_others(vec![prompt.clone()]),
        ));
    };
    set(1, &[]);
    let registry = registry(vec![lazy.clone()]);
    let before = registry.snapshot();
    set(2, &["srv__new"]);
    registry.find("srv__new").await.expect("it is there now");
    let after = registry.snapshot();
    assert_eq!(
        after.revision_of(Feature::Prompt),
        before.revision_of(Feature::Prompt)
    );
    assert!(after.revision_of(Feature::Tool) > before.revision_of(Feature::Tool));
}

#[tokio::test]
async fn a_resource_is_shown_as_its_server_wrote_it() {
    let registry = registry(vec![feature_source(
        "a",
        vec![other(Feature::Resource, "a", "demo://x")],
    )]);
    let resource = registry.snapshot().list(Feature::Resource)[0].clone();
    assert_eq!(resource.definition().as_str(), r#"{"name":"for people"}"#);
}
