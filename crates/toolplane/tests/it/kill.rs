//! Gateways that are killed while they make calls that must not run twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use serde_json::json;
use tokio::{runtime::Runtime, task::JoinSet};
use tool_store_sqlite::{SqlLedger, SqlStore, SqliteDatabase, SqliteOptions, sqlite_store};
use tool_store_suite::kill::{self, KillSwitch, KillingDatabase};
use toolplane::{
    CallRequest, Toolplane,
    core::{Arguments, Clock, Instant, Ledger, LedgerState, RawJson, SystemClock},
    runtime::TokioClock,
};
use tp_fault::ExecutionCounter;

/// Largest number of steps of the database after which a gateway is killed: a call has about four.
const MAX_STEPS: u64 = 80;
/// Number of calls at once.
const N_CALLERS: usize = 3;

/// Clock of somebody who looks an hour later, when the leases of the dead have ended.
struct Later;

impl Clock for Later {
    fn now(&self) -> Instant {
        SystemClock::new().now()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now() + Duration::from_secs(3600)
    }
}

/// Program that calls the tool until it is killed. It prints each call that was answered.
#[test]
fn killed_gateway() {
    let Some(role) = kill::role() else {
        return;
    };
    let [path, url, n_steps, delay] = role.as_slice() else {
        panic!("four words: {role:?}");
    };
    let (n_steps, delay) = (
        n_steps.parse().expect("a number"),
        delay.parse().expect("a number"),
    );
    let database = SqliteDatabase::new(SqliteOptions::new(path));
    let database = KillingDatabase::new(database, KillSwitch::new(n_steps, Duration::from_micros(delay)));
    Runtime::new().expect("a runtime").block_on(async {
        let clock = Arc::new(TokioClock::new());
        let store = Arc::new(SqlStore::new(database).with_clock(clock.clone()));
        let configuration = format!(
            "defaults: {{intent: true}}\n\
             tools: {{pay: {{description: Pays., executor: \
             {{kind: http, method: POST, url: '{url}', allow_private: true}}}}}}"
        );
        let plane = Toolplane::builder()
            .yaml(configuration)
            .expect("usable")
            .clock(clock)
            .ledger(Arc::new(SqlLedger::new(store)))
            .build()
            .expect("usable");
        let next = Arc::new(AtomicU64::new(0));
        let mut callers = JoinSet::new();
        for _ in 0..N_CALLERS {
            let (plane, next) = (plane.clone(), next.clone());
            callers.spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::SeqCst);
                    let arguments = json!({"id": format!("pay-{n}")});
                    let mut request = CallRequest::new("pay").args(&arguments).expect("an object");
                    // Every fourth call has a key: its entry is that of the key.
                    if n % 4 == 3 {
                        request = request.idempotency_key(format!("key-{n}"));
                    }
                    plane.call(request).await.expect("answered");
                    kill::say(format_args!("answered pay-{n}"));
                }
            });
        }
        callers.join_all().await;
    });
}

/// Reads the states of all entries by the digest of their arguments.
async fn entries(path: &Path) -> BTreeMap<String, Vec<String>> {
    let database = SqliteDatabase::new(SqliteOptions::new(path));
    let query = "SELECT arguments_digest, state FROM ledger";
    let mut entries: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let transaction = tool_store_sql::Database::read(&database).await.expect("readable");
    if let Some(mut transaction) = transaction {
        for mut row in transaction.fetch(query, Vec::new()).await.expect("readable") {
            let digest = row.text(0).expect("a digest");
            entries
                .entry(digest)
                .or_default()
                .push(row.text(1).expect("a state"));
        }
    }
    entries
}

fn digest(id: &str) -> String {
    let arguments = RawJson::from(json!({"id": id}));
    let arguments = Arguments::from_raw(arguments).expect("an object");
    toolplane::core::raw_json::hex(arguments.digest())
}

/// Promise R15, as far as records of calls go. A gateway is killed at a seeded step of its database, or some microseconds after it.
#[test]
fn each_execution_of_a_killed_gateway_is_answered_or_unknown_in_the_ledger_and_happened_once() {
    let runtime = Runtime::new().expect("a runtime");
    let (mut n_executed, mut n_unknown) = (0, 0);
    for point in kill::points() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("toolplane.db");
        let counter = runtime.block_on(ExecutionCounter::start()).expect("a free port");
        let n_steps = 1 + kill::seeded(point, 1, MAX_STEPS);
        let delay = kill::seeded(point, 2, 2) * kill::seeded(point, 3, 4_000);
        let role = [
            path.to_str().expect("UTF-8"),
            &counter.url("/"),
            &n_steps.to_string(),
            &delay.to_string(),
        ];
        let killed = kill::run("kill::killed_gateway", &role);
        assert_eq!(
            killed.status.code(),
            None,
            "point {point}: it is killed: {killed:?}"
        );
        let entries = runtime.block_on(entries(&path));
        let answered: BTreeSet<_> = kill::lines(&killed, "answered ").into_iter().collect();
        for n in 0..400 {
            let id = format!("pay-{n}");
            let states = entries.get(&digest(&id)).cloned().unwrap_or_default();
            let n_times = counter.executions(&id);
            assert!(n_times <= 1, "point {point}: {id} ran {n_times} times");
            if n_times == 1 {
                assert_eq!(states.len(), 1, "point {point}: {id} ran, and has {states:?}");
                let is_known = states[0] == "answered" || states[0] == "running";
                assert!(is_known, "point {point}: {id} is {}", states[0]);
            }
            if answered.contains(&id) {
                assert_eq!(n_times, 1, "point {point}: {id} was answered");
            }
            n_executed += n_times;
        }
        // The entries of the dead gateway are unknown outcomes for the next one, and nothing else is.
        let n_running = entries
            .values()
            .flatten()
            .filter(|state| *state == "running")
            .count();
        let store = sqlite_store(SqliteOptions::new(&path)).with_clock(Arc::new(Later));
        let unknown = runtime.block_on(SqlLedger::new(Arc::new(store)).unknown(1000));
        assert_eq!(unknown.len(), n_running, "point {point}: {unknown:?}");
        assert!(
            unknown
                .iter()
                .all(|entry| matches!(entry.state, LedgerState::Unknown(_)))
        );
        n_unknown += unknown.len();
    }
    assert!(
        n_executed > 0 && n_unknown > 0,
        "{n_executed} executions, {n_unknown} unknown outcomes"
    );
}
