//! Tools that agents make: creation and publication, the cost of many drafts for calls, and the time until another gateway on the
//! same PostgreSQL offers a published tool.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and prints its figures"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::runtime::Runtime;
use toolplane::{
    Authoring, CallRequest, DraftMode, DraftRequest, RawJson, Toolplane,
    core::Caller,
    registry::{MemoryStore, Store},
    serde_json::json,
    store_postgres::{PostgresOptions, postgres_store},
    store_sqlite::{SqliteOptions, sqlite_store},
};
use tp_postgres::PostgresServer;

/// Number of tools that are made one after the other.
const TOOLS: usize = 100;
/// Principals, and drafts of each.
const PRINCIPALS: usize = 100;
const DRAFTS: usize = 10;
/// Rounds of calls, and calls of a round, in alternation with and without drafts.
const ROUNDS: usize = 41;
const CALLS: usize = 5_000;

const CONFIGURATION: &str = "
authoring: {enabled: true, hosts: [api.example.com], quotas: {drafts: 1000, versions: 10000}}
tools: {mock: {description: Answers., executor: {kind: mock, result: 1}}}
";

fn plane(store: Arc<dyn Store>) -> Toolplane {
    let builder = Toolplane::builder().yaml(CONFIGURATION).expect("a configuration");
    builder.store(store).build().expect("a toolplane")
}

fn agent(name: &str) -> Caller {
    let mut caller = Caller::new(name);
    caller
        .permissions
        .extend(["tools.create".into(), "tools.publish".into()]);
    caller
}

fn manifest(name: &str) -> RawJson {
    RawJson::from(json!({
        "tool_id": name, "tool_type": "api", "version": "1.0.0", "description": "Returns the weather at a place.",
        "executor_config": {"method": "GET", "url_template": "https://api.example.com/v1/{city}?days={days}"},
        "parameters": [
            {"name": "city", "type": "string", "required": true},
            {"name": "days", "type": "integer"},
        ],
    }))
}

async fn create(authoring: &Authoring, by: &Caller, name: &str) {
    let request = DraftRequest::new(manifest(name));
    authoring
        .create(by, request, DraftMode::Create)
        .await
        .expect("a draft");
}

/// Makes tools one after the other. Returns the times of creation and publication together, in their order.
async fn made(plane: &Toolplane, prefix: &str) -> Vec<Duration> {
    let authoring = plane.authoring().expect("it is enabled");
    let ada = agent("ada");
    let mut times = Vec::new();
    for index in 0..TOOLS {
        let name = format!("{prefix}_{index:04}_weather");
        let start = Instant::now();
        create(&authoring, &ada, &name).await;
        authoring.publish(&ada, &name, None).await.expect("published");
        times.push(start.elapsed());
    }
    times.sort();
    times
}

fn show(name: &str, times: &[Duration]) {
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("{name}: p50 {:?}, p95 {:?}, max {:?}", at(50), at(95), at(100));
}

/// Time of one round of calls.
async fn calls(plane: &Toolplane) -> Duration {
    let start = Instant::now();
    for _ in 0..CALLS {
        let outcome = plane.call(CallRequest::new("mock")).await.expect("a result");
        outcome.into_reply().expect("a reply");
    }
    start.elapsed()
}

async fn cost_of_drafts() {
    let (without, with) = (
        plane(Arc::new(MemoryStore::new())),
        plane(Arc::new(MemoryStore::new())),
    );
    let authoring = with.authoring().expect("it is enabled");
    for principal in 0..PRINCIPALS {
        let by = agent(&format!("agent{principal}"));
        for draft in 0..DRAFTS {
            create(&authoring, &by, &format!("of_{principal:03}_{draft:03}_weather")).await;
        }
    }
    let (mut ratios, mut usual) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (one, other) = (calls(&without).await, calls(&with).await);
        ratios.push(other.as_secs_f64() / one.as_secs_f64());
        usual.push(one);
    }
    ratios.sort_by(f64::total_cmp);
    usual.sort();
    println!(
        "calls beside {} drafts of {PRINCIPALS} principals: {:.3} times as long as beside none (median of {ROUNDS}; {:?} for a call)",
        PRINCIPALS * DRAFTS,
        ratios[ROUNDS / 2],
        usual[ROUNDS / 2] / u32::try_from(CALLS).expect("a number")
    );
}

/// Times from the end of a publication until another gateway on the same database calls the tool.
async fn reach(url: &str) {
    let store = || Arc::new(postgres_store(PostgresOptions::new(url).expect("a URL")));
    let (here, there) = (plane(store()), plane(store()));
    there.view(&there.local_caller()).await;
    let authoring = here.authoring().expect("it is enabled");
    let ada = agent("ada");
    let mut times = Vec::new();
    for index in 0..TOOLS {
        let name = format!("shared_{index:04}_weather");
        create(&authoring, &ada, &name).await;
        let mut changes = there.changes();
        authoring.publish(&ada, &name, None).await.expect("published");
        let start = Instant::now();
        while there.tool(&name, &ada).await.is_err() {
            changes.changed().await.expect("it lives");
        }
        times.push(start.elapsed());
    }
    times.sort();
    show("callable through another gateway on PostgreSQL after", &times);
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let directory = tempfile::tempdir().expect("a directory");
    runtime.block_on(async {
        show(
            "create and publish, memory",
            &made(&plane(Arc::new(MemoryStore::new())), "memory").await,
        );
        let sqlite = sqlite_store(SqliteOptions::new(directory.path().join("tools.db")));
        show(
            "create and publish, SQLite",
            &made(&plane(Arc::new(sqlite)), "sqlite").await,
        );
        cost_of_drafts().await;
    });
    match PostgresServer::shared().and_then(PostgresServer::create_database) {
        Ok(database) => runtime.block_on(async {
            let options = PostgresOptions::new(&database.url()).expect("a URL");
            show(
                "create and publish, PostgreSQL",
                &made(&plane(Arc::new(postgres_store(options))), "pg").await,
            );
            reach(&database.url()).await;
        }),
        Err(error) => println!("PostgreSQL is not measured: {error}"),
    }
}
