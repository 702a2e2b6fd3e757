//! Lists that were kept from an earlier run, and lists that do not wait for the slowest source.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, watch},
    time::{Instant, sleep},
};
use tool_core::{
    BoxFuture, Catalogue, Descriptor, Executor, Feature, Source, SourceState, SourceStatus, Trust,
};
use tool_registry::{FixedSource, Registry};
use tool_testkit::{ScriptedExecutor, TestTool};

use crate::{names, parts, registry};

/// A server that offers some tools from an earlier run, and others once it is loaded.
struct Server {
    name: &'static str,
    kept: Option<Vec<&'static str>>,
    fresh: Mutex<Result<Vec<&'static str>, String>>,
    catalogue: watch::Sender<Arc<Catalogue>>,
    n_recalls: AtomicUsize,
    n_loads: AtomicUsize,
    /// Permits of loads.
    gate: Semaphore,
}

impl Server {
    fn new(name: &'static str, kept: Option<&[&'static str]>, fresh: &[&'static str]) -> Arc<Self> {
        Arc::new(Self {
            name,
            kept: kept.map(<[_]>::to_vec),
            fresh: Mutex::new(Ok(fresh.to_vec())),
            catalogue: watch::Sender::default(),
            n_recalls: AtomicUsize::new(0),
            n_loads: AtomicUsize::new(0),
            gate: Semaphore::new(usize::MAX >> 4),
        })
    }

    /// Makes a server whose loads wait for permits.
    fn slow(name: &'static str, fresh: &[&'static str]) -> Arc<Self> {
        let server = Self::new(name, None, fresh);
        server.gate.forget_permits(usize::MAX);
        server
    }

    fn offer(&self, tools: &[&str], is_kept: bool) {
        let revision = self.catalogue.borrow().revision + 1;
        let tools = tools.iter().map(|tool| Arc::new(self.descriptor(tool)));
        self.catalogue.send_replace(Arc::new({
            let mut catalogue = Catalogue::default();
            catalogue.revision = revision;
            catalogue.tools = tools.collect();
            catalogue.is_kept = is_kept;
            catalogue
        }));
    }

    fn descriptor(&self, tool: &str) -> Descriptor {
        let mut descriptor = TestTool::new(tool).descriptor;
        descriptor.origin.trust = Trust::Upstream;
        descriptor.executor.kind = UpstreamExecutor::KIND.to_owned();
        descriptor.executor.config = self.name.into();
        descriptor
    }

    fn n_loads(&self) -> usize {
        self.n_loads.load(Ordering::SeqCst)
    }
}

/// Runs tools of servers. The settings of a tool name its upstream.
struct UpstreamExecutor(ScriptedExecutor);

impl UpstreamExecutor {
    const KIND: &str = "owned";
}

impl Executor for UpstreamExecutor {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn config_schema(&self) -> raw_json::RawJson {
        self.0.config_schema()
    }

    fn prepare(
        &self,
        descriptor: &Descriptor,
    ) -> Result<Arc<dyn tool_core::DynBackend>, Vec<tool_core::PrepareError>> {
        self.0.prepare(descriptor)
    }

    fn provenance(&self, descriptor: &Descriptor) -> tool_core::Provenance {
        self.0.provenance(descriptor)
    }

    fn upstream(&self, descriptor: &Descriptor) -> Option<Arc<str>> {
        descriptor.executor.config.as_str().map(Arc::from)
    }
}

impl Source for Server {
    fn name(&self) -> &str {
        self.name
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.catalogue.borrow().clone()
    }

    fn recall(&self) -> BoxFuture<'_, ()> {
        self.n_recalls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            if let Some(kept) = &self.kept {
                self.offer(kept, true);
                // Lets the tasks that follow the sources run.
                tokio::task::yield_now().await;
            }
        })
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        self.n_loads.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            let _turn = self.gate.acquire().await.expect("it is never closed");
            let fresh = self.fresh.lock().expect("no test panics with it").clone();
            if let Ok(fresh) = fresh {
                self.offer(&fresh, false);
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
        name.starts_with(self.name)
    }

    fn status(&self) -> SourceStatus {
        SourceStatus::new(SourceState::NotStarted)
    }
}

fn registry_of(servers: &[&Arc<Server>]) -> Registry {
    let mut all = parts(
        servers
            .iter()
            .map(|server| Arc::clone(server) as Arc<dyn Source>)
            .collect(),
    );
    all.executors
        .push(Arc::new(UpstreamExecutor(ScriptedExecutor::new([]))));
    Registry::new(all)
}

const WAIT: Duration = Duration::from_secs(4);

#[tokio::test(start_paused = true)]
async fn a_list_has_kept_tools_and_starts_no_server() {
    let kept = Server::new("kept", Some(&["kept__a"]), &["kept__a"]);
    let registry = registry_of(&[&kept]);
    let start = Instant::now();
    registry.load_within(WAIT).await;
    assert_eq!(
        (names(&registry), kept.n_loads()),
        (vec!["kept__a".to_owned()], 0)
    );
    assert_eq!(start.elapsed(), Duration::ZERO);
    registry.load_within(WAIT).await;
    assert_eq!(kept.n_recalls.load(Ordering::SeqCst), 1, "once is enough");
    let tool = registry.get("kept__a").expect("it is listed");
    assert!(registry.snapshot().is_unconfirmed(&tool));
    assert!(registry.get_confirmed("kept__a").is_none());
    // A caller that needs the present lists waits for the load.
    registry.load().await;
    assert_eq!(kept.n_loads(), 1);
    assert!(registry.get_confirmed("kept__a").is_some());
    assert!(!registry.snapshot().is_unconfirmed(&tool));
}

#[tokio::test(start_paused = true)]
async fn a_hanging_source_delays_only_the_first_list() {
    let hanging = Server::slow("hanging", &["hanging__a"]);
    let good = Server::new("good", None, &["good__a"]);
    let registry = registry_of(&[&hanging, &good]);
    registry.follow();
    let start = Instant::now();
    registry.load_within(WAIT).await;
    assert_eq!(
        (names(&registry), start.elapsed()),
        (vec!["good__a".to_owned()], WAIT)
    );
    let missing: Vec<_> = registry
        .unlisted_sources()
        .iter()
        .map(|source| source.name().to_owned())
        .collect();
    assert_eq!(missing, ["hanging"]);
    for _ in 0..10 {
        registry.load_within(WAIT).await;
    }
    assert_eq!(start.elapsed(), WAIT, "it had its time");
    assert_eq!(
        (hanging.n_loads(), good.n_loads()),
        (1, 1),
        "it is still being loaded"
    );
    let mut changes = registry.changes();
    changes.mark_unchanged();
    hanging.gate.add_permits(1);
    changes.changed().await.expect("what comes late is told");
    assert_eq!(names(&registry), ["good__a", "hanging__a"]);
    assert!(registry.unlisted_sources().is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_list_does_not_cancel_the_loads() {
    let slow = Server::slow("slow", &["slow__a"]);
    let registry = registry_of(&[&slow]);
    let given_up = tokio::time::timeout(WAIT / 2, registry.load_within(WAIT)).await;
    given_up.expect_err("it is slow");
    let (start, listing) = (Instant::now(), registry.clone());
    let listing = tokio::spawn(async move { listing.load_within(WAIT).await });
    sleep(WAIT / 4).await;
    slow.gate.add_permits(1);
    let snapshot = listing.await.expect("it ends");
    assert_eq!((snapshot.tools().len(), slow.n_loads()), (1, 1));
    assert_eq!(start.elapsed(), WAIT / 4, "it ends as soon as it can");
}

#[tokio::test(start_paused = true)]
async fn a_wait_may_be_zero_or_unlimited() {
    let slow = Server::slow("slow", &["slow__a"]);
    let registry = registry_of(&[&slow]);
    let start = Instant::now();
    registry.load_within(Duration::ZERO).await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    let listing = registry.clone();
    let listing = tokio::spawn(async move { listing.load_within(Duration::MAX).await });
    sleep(1000 * WAIT).await;
    assert!(!listing.is_finished());
    assert_eq!(slow.n_loads(), 1);
    slow.gate.add_permits(1);
    assert_eq!(listing.await.expect("it ends").tools().len(), 1);
}

/// A source got its lists a moment ago, and nobody has told the registry yet.
#[tokio::test(start_paused = true)]
async fn a_list_has_what_a_source_just_got() {
    let server = Server::new("s", None, &["s__a"]);
    let registry = registry_of(&[&server]);
    registry.recall().await;
    assert!(names(&registry).is_empty());
    server.offer(&["s__a"], false);
    let snapshot = registry.load_within(WAIT).await;
    assert_eq!((snapshot.tools().len(), server.n_loads()), (1, 0));
}

/// A failed source is loaded again by later lists, which do not wait once its time has passed.
#[tokio::test(start_paused = true)]
async fn a_failed_source_is_loaded_again() {
    let server = Server::new("s", None, &["s__a"]);
    let offer = std::mem::replace(&mut *server.fresh.lock().unwrap(), Err("no".to_owned()));
    let registry = registry_of(&[&server]);
    registry.load_within(WAIT).await;
    registry.load_within(WAIT).await;
    assert_eq!((server.n_loads(), names(&registry)), (2, vec![]));
    sleep(2 * WAIT).await;
    *server.fresh.lock().unwrap() = offer;
    registry.load_within(Duration::ZERO).await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!((server.n_loads(), names(&registry)), (3, vec!["s__a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_replacement_of_a_source_has_its_own_wait() {
    let [before, now] = [(); 2].map(|()| Server::slow("slow", &["slow__a"]));
    let registry = registry_of(&[&before]);
    registry.load_within(WAIT).await;
    let mut all = parts(vec![now.clone()]);
    all.executors
        .push(Arc::new(UpstreamExecutor(ScriptedExecutor::new([]))));
    registry.replace(all, false);
    let start = Instant::now();
    registry.load_within(WAIT).await;
    assert_eq!((start.elapsed(), now.n_loads()), (WAIT, 1));
}

#[tokio::test(start_paused = true)]
async fn kept_tools_are_confirmed_before_use() {
    let server = Server::new("s", Some(&["s__same", "s__gone"]), &["s__same", "s__new"]);
    let other = Server::new("other", Some(&["other__a"]), &["other__a"]);
    let written = Arc::new(FixedSource::new("file", vec![crate::descriptor("written")]));
    let mut all = parts(vec![server.clone(), other.clone(), written]);
    all.executors
        .push(Arc::new(UpstreamExecutor(ScriptedExecutor::new([]))));
    let registry = Registry::new(all);
    let same = registry.find("s__same").await.expect("it was kept");
    assert_eq!(server.n_loads(), 0);
    let written = registry.find("written").await.expect("it is written down");
    assert!(!registry.confirm(&written).await);
    assert!(registry.confirm(&same).await);
    assert_eq!((server.n_loads(), other.n_loads()), (1, 0), "no other is needed");
    assert!(registry.get_confirmed("s__same").is_some());
    assert!(
        !registry.confirm(&registry.get("s__same").unwrap()).await,
        "once is enough"
    );
    assert!(registry.find("s__gone").await.is_none());
    assert!(registry.find("s__new").await.is_some());
    assert_eq!(other.n_loads(), 0);
}

/// Agents may call tools that were never listed, such as those of an updated server.
#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_on_a_kept_list_is_requested_from_the_server() {
    let server = Server::new("s", Some(&["s__old"]), &["s__old", "s__new"]);
    let registry = registry_of(&[&server]);
    assert!(registry.find("s__new").await.is_some());
    assert_eq!(server.n_loads(), 1);
}

#[tokio::test(start_paused = true)]
async fn confirming_an_equal_list_is_no_change() {
    let server = Server::new("s", Some(&["s__a"]), &["s__a"]);
    let registry = registry_of(&[&server]);
    let kept = registry.load_within(WAIT).await;
    let fresh = registry.load().await;
    assert!(fresh.revision() > kept.revision());
    assert_eq!(fresh.revision_of(Feature::Tool), kept.revision_of(Feature::Tool));
}

#[tokio::test]
async fn a_registry_without_sources_lists_nothing_at_once() {
    assert!(registry(Vec::new()).load_within(WAIT).await.tools().is_empty());
}

/// Names of many servers.
const MANY: [&str; 20] = [
    "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "t0", "t1", "t2", "t3", "t4", "t5", "t6",
    "t7", "t8", "t9",
];

/// Many servers that offer their lists at about the same time do not cost one snapshot each.
#[tokio::test]
async fn changes_that_come_together_make_one_snapshot() {
    let servers = MANY.map(|name| Server::new(name, None, &[name]));
    let registry = registry_of(&servers.iter().collect::<Vec<_>>());
    registry.follow();
    // Lets the tasks that follow the sources wait for changes.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let before = registry.snapshot().revision();
    servers
        .iter()
        .for_each(|server| server.offer(&[server.name], false));
    let mut changes = registry.changes();
    let all_are_listed = async {
        while names(&registry).len() < MANY.len() {
            changes.changed().await.expect("the registry exists");
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all_are_listed)
        .await
        .expect("they are listed");
    assert_eq!(registry.snapshot().revision(), before + 1);
}

/// A recall of many sources makes one snapshot, although each source offers its lists on its own. So does a cancelled
/// recall.
#[tokio::test]
async fn a_recall_of_many_sources_makes_one_snapshot() {
    for is_given_up in [false, true] {
        let servers = MANY.map(|name| Server::new(name, Some(&[name]), &[]));
        let servers: Vec<_> = servers.iter().collect();
        let registry = registry_of(&servers);
        // Lets the tasks that follow the sources wait for changes.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let before = registry.snapshot().revision();
        match is_given_up {
            false => registry.recall().await,
            true => tokio::select! {
                biased;
                () = registry.recall() => panic!("it takes a turn"),
                () = std::future::ready(()) => {}
            },
        }
        let after = registry.snapshot().revision();
        assert_eq!(after, before + 1, "given up: {is_given_up}");
        assert_eq!(names(&registry).len(), MANY.len());
    }
}
