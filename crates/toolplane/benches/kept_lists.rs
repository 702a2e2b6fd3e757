//! First list after a restart: builds a plane of many servers and lists everything from the lists cached on disk.
//! Starts no server. Memory is allocated as in the program `toolplane`.

use std::{
    fmt::Write as _,
    future::ready,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use mimalloc::MiMalloc;
use tokio::runtime::Runtime;
use tool_exec_mcp::ServerInfo;
use toolplane::{
    CachedLists, FileListCache, ListCache, ListCacheKey, RawJson, Toolplane,
    core::{BoxFuture, Caller, Feature},
    manifest::{LoadOptions, Loaded, Syntax, load},
};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const SERVERS: usize = 500;
const TOOLS: usize = 10;

fn name(server: usize) -> String {
    format!("server-{server}")
}

fn configuration() -> Loaded {
    let mut text = "servers:\n".to_owned();
    for server in 0..SERVERS {
        let _ = writeln!(text, "  {}: {{command: run}}", name(server));
    }
    load(&LoadOptions::new().text("benchmark", Syntax::Yaml, text)).expect("usable")
}

/// Records the keys under which a plane looks for its lists, and has none.
#[derive(Debug, Default)]
struct Keys(Mutex<Vec<ListCacheKey>>);

impl ListCache for Keys {
    fn load<'a>(&'a self, keys: &'a [ListCacheKey]) -> BoxFuture<'a, Vec<Option<CachedLists>>> {
        self.0
            .lock()
            .expect("nothing panics with it")
            .extend_from_slice(keys);
        Box::pin(ready(vec![None; keys.len()]))
    }

    fn save(&self, _: ListCacheKey, _: CachedLists) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    fn forget<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, io::Result<usize>> {
        Box::pin(ready(Ok(0)))
    }
}

fn lists() -> CachedLists {
    let tools = (0..TOOLS).map(|tool| {
        RawJson::parse(format!(
            r#"{{"name":"tool_{tool}","description":"Looks something up and says what was found, in one paragraph.","inputSchema":{{"type":"object","properties":{{"query":{{"type":"string","description":"The words to look for"}},"limit":{{"type":"integer","minimum":1}}}},"required":["query"]}}}}"#
        ))
        .expect("JSON")
    });
    let server = ServerInfo::new("2025-11-25".parse().expect("a revision"));
    CachedLists::new(server, [(Feature::Tool, tools.collect())].into())
}

fn restart(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let _guard = runtime.enter();
    let folder = tempfile::tempdir().expect("a folder");
    let store: Arc<dyn ListCache> = Arc::new(FileListCache::new(folder.path().join("lists")));
    let loaded = configuration();
    let keys = Arc::new(Keys::default());
    let builder = Toolplane::builder().loaded(&loaded).list_cache(keys.clone());
    runtime.block_on(builder.build().expect("usable").recall());
    let keys = std::mem::take(&mut *keys.0.lock().expect("nothing panics with it"));
    assert_eq!(keys.len(), SERVERS);
    for key in keys {
        runtime.block_on(store.save(key, lists()));
    }
    let plane = || {
        let builder = Toolplane::builder().loaded(&loaded).list_cache(store.clone());
        builder.build().expect("usable")
    };
    let caller = Caller::local();
    let list = |plane: &Toolplane| {
        let listing = runtime.block_on(plane.list_within(&caller, Duration::ZERO));
        assert_eq!(
            (listing.view.tools().len(), listing.missing.len()),
            (SERVERS * TOOLS, 0)
        );
    };
    let mut group = criterion.benchmark_group("kept lists of 500 servers");
    group.sample_size(20);
    group.bench_function("build and list", |bencher| {
        bencher.iter_batched(
            || (),
            |()| {
                let plane = plane();
                list(&plane);
                plane
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("list", |bencher| {
        bencher.iter_batched(
            plane,
            |plane| {
                list(&plane);
                plane
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, restart);
criterion_main!(benches);
