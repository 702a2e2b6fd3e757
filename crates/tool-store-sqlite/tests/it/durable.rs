//! Values that outlive a gateway.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use raw_json::RawJson;
use tempfile::TempDir;
use tool_core::{
    ApprovalCall, ApprovalRecord, ApprovalState, Approvals, CallEnd, Caller, Claim, ClaimResult, Clock,
    CorrelationId, ErrorKind, Instant, Ledger, LedgerState, Reply, ToolError,
};
use tool_store_sql::Database;
use tool_store_sqlite::{SqlLedger, SqlStore, SqlUsage, SqliteDatabase, SqliteOptions, sqlite_store};

const HOUR: Duration = Duration::from_secs(3600);

/// Clock that is set by hand. Its time line begins anew with each gateway, as after a restart.
#[derive(Default)]
struct HandClock(Mutex<Duration>);

impl HandClock {
    fn started(after: Duration) -> Arc<Self> {
        Arc::new(Self(Mutex::new(after)))
    }

    fn advance(&self, by: Duration) {
        *self.0.lock() += by;
    }
}

/// Clock of a gateway that was started at this time of the hand clock.
struct GatewayClock {
    hand: Arc<HandClock>,
    start: Duration,
}

impl Clock for GatewayClock {
    fn now(&self) -> Instant {
        Instant::since_start(*self.hand.0.lock() - self.start)
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + *self.hand.0.lock()
    }
}

/// A file, and the time of its gateways.
struct World {
    directory: TempDir,
    hand: Arc<HandClock>,
}

/// A gateway with its store.
struct Gateway {
    store: Arc<SqlStore<SqliteDatabase>>,
    ledger: SqlLedger<SqliteDatabase>,
    clock: Arc<dyn Clock>,
}

impl World {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory"),
            hand: HandClock::started(1000 * HOUR),
        }
    }

    fn start(&self) -> Gateway {
        self.start_with_lease(SqlStore::<SqliteDatabase>::LEASE)
    }

    fn start_with_lease(&self, lease: Duration) -> Gateway {
        let clock: Arc<dyn Clock> = Arc::new(GatewayClock {
            hand: self.hand.clone(),
            start: *self.hand.0.lock(),
        });
        let options = SqliteOptions::new(self.directory.path().join("toolplane.db"));
        let store = Arc::new(sqlite_store(options).with_clock(clock.clone()).with_lease(lease));
        Gateway {
            ledger: SqlLedger::new(store.clone()),
            store,
            clock,
        }
    }
}

fn claim(id: u128, key: Option<&str>) -> Claim {
    let mut claim = Claim::new(CorrelationId(id), "default", "ada", "pay");
    claim.key = key.map(Into::into);
    claim.arguments = [7; 32];
    claim
}

fn is_granted(result: &ClaimResult) -> bool {
    matches!(result, ClaimResult::Granted(_))
}

fn approval(gateway: &Gateway, handle: &str) -> ApprovalRecord {
    let wall = gateway.clock.wall();
    let mut call = ApprovalCall::new(
        "pay".into(),
        RawJson::object(),
        &Caller::new("ada"),
        wall,
        wall + HOUR,
    );
    call.arguments_digest = [7; 32];
    let expiry = gateway.clock.now() + HOUR;
    ApprovalRecord::new(handle.into(), Arc::new(call), expiry, ApprovalState::Pending)
}

#[tokio::test]
async fn a_pending_approval_outlives_its_gateway_until_its_time_of_day() {
    let world = World::new();
    let first = world.start();
    world.hand.advance(HOUR);
    let asked = approval(&first, "a");
    first.store.ask(asked, first.clock.now()).await.expect("stored");
    drop(first);
    world.hand.advance(HOUR / 2);
    let second = world.start();
    let found = second
        .store
        .get("a")
        .await
        .expect("readable")
        .expect("it outlives its gateway");
    assert_eq!(
        second.clock.now(),
        Instant::since_start(Duration::ZERO),
        "another time line"
    );
    assert_eq!(found.expiry.since(second.clock.now()), HOUR / 2);
    let approved = ApprovalState::Approved { by: "eve".into() };
    assert_eq!(
        second
            .store
            .replace(&ApprovalState::Pending, found.with_state(approved.clone()))
            .await,
        Ok(true)
    );
    world.hand.advance(HOUR / 4);
    let third = world.start();
    let found = third.store.get("a").await.expect("readable").expect("known");
    assert_eq!(found.state, approved);
    assert_eq!(
        found.expiry.since(third.clock.now()),
        HOUR / 4,
        "a decision does not extend it"
    );
    world.hand.advance(HOUR / 2);
    let fourth = world.start();
    let found = fourth
        .store
        .get("a")
        .await
        .expect("readable")
        .expect("nobody asked since");
    assert!(found.expiry <= fourth.clock.now(), "it has expired meanwhile");
}

/// The call may have run: it does not run again with this approval, and is reported.
#[tokio::test]
async fn an_approval_that_was_in_use_when_its_gateway_died_becomes_an_unknown_outcome() {
    let world = World::new();
    let first = world.start();
    let handle = "0123456789abcdef0123456789abcdef";
    first
        .store
        .ask(approval(&first, handle), first.clock.now())
        .await
        .expect("stored");
    let running = approval(&first, handle).with_state(ApprovalState::Running { round: 0 });
    assert_eq!(
        first.store.replace(&ApprovalState::Pending, running).await,
        Ok(true)
    );
    let second = world.start();
    assert!(second.ledger.unknown(10).await.is_empty(), "its gateway may live");
    drop(first);
    world.hand.advance(SqlStore::<SqliteDatabase>::LEASE);
    let third = world.start();
    let unknown = third.ledger.unknown(10).await;
    assert_eq!(unknown.len(), 1);
    assert_eq!(unknown[0].id.to_string(), handle);
    assert_eq!((&*unknown[0].tool, &*unknown[0].principal), ("pay", "ada"));
    assert!(
        matches!(&unknown[0].state, LedgerState::Unknown(error) if error.kind() == ErrorKind::OutcomeUnknown)
    );
    assert_eq!(third.store.get(handle).await, Ok(None), "it is used up");
    // Another approval is asked for, and does not hide the outcome.
    let again = third
        .store
        .ask(approval(&third, "b"), third.clock.now())
        .await
        .expect("stored");
    assert_eq!(&*again.handle, "b");
    world.hand.advance(2 * HOUR);
    assert_eq!(
        world.start().ledger.unknown(10).await.len(),
        1,
        "it outlives the approval"
    );
}

#[tokio::test]
async fn an_approved_call_with_an_intent_is_one_unknown_outcome() {
    let world = World::new();
    let first = world.start();
    first
        .store
        .ask(approval(&first, "aa"), first.clock.now())
        .await
        .expect("stored");
    let running = approval(&first, "aa").with_state(ApprovalState::Running { round: 0 });
    assert_eq!(
        first.store.replace(&ApprovalState::Pending, running).await,
        Ok(true)
    );
    first.ledger.intend(&claim(5, None)).await.expect("recorded");
    drop(first);
    world.hand.advance(SqlStore::<SqliteDatabase>::LEASE);
    let unknown = world.start().ledger.unknown(10).await;
    let ids: Vec<u128> = unknown.iter().map(|entry| entry.id.0).collect();
    assert_eq!(ids, [5]);
}

#[tokio::test]
async fn the_key_of_a_dead_gateways_call_is_free_only_if_the_call_may_be_repeated() {
    let world = World::new();
    let first = world.start();
    assert!(is_granted(
        &first.ledger.claim(&claim(1, Some("k"))).await.expect("has room")
    ));
    let second = world.start();
    let result = second.ledger.claim(&claim(2, Some("k"))).await.expect("has room");
    assert!(matches!(result, ClaimResult::Running(_)), "{result:?}");
    world.hand.advance(SqlStore::<SqliteDatabase>::LEASE);
    let result = second.ledger.claim(&claim(2, Some("k"))).await.expect("has room");
    let ClaimResult::Ended(entry) = result else {
        panic!("nobody knows: {result:?}");
    };
    assert!(
        matches!(&entry.state, LedgerState::Unknown(error) if error.ledger_id() == Some(CorrelationId(1)))
    );
    assert_eq!(second.ledger.unknown(10).await.len(), 1);
    // The gateway lives after all, and its answer counts.
    first.ledger.settle(
        CorrelationId(1),
        CallEnd::Answered(Some(Reply::from(RawJson::object()))),
    );
    let found = first.ledger.find(CorrelationId(1)).await.expect("known");
    assert!(
        matches!(found.state, LedgerState::Answered(Some(_))),
        "{:?}",
        found.state
    );
    assert!(second.ledger.unknown(10).await.is_empty());

    assert!(is_granted(
        &first.ledger.claim(&claim(3, Some("r"))).await.expect("has room")
    ));
    world.hand.advance(2 * SqlStore::<SqliteDatabase>::LEASE);
    let mut repeatable = claim(4, Some("r"));
    repeatable.may_repeat = true;
    let result = second.ledger.claim(&repeatable).await.expect("has room");
    assert!(
        matches!(result, ClaimResult::Granted(CorrelationId(3))),
        "{result:?}"
    );
    // The end of the first attempt says nothing about the second one.
    first.ledger.settle(CorrelationId(3), CallEnd::Free);
    let found = first.ledger.find(CorrelationId(3)).await.expect("still claimed");
    assert!(matches!(found.state, LedgerState::Running), "{:?}", found.state);
}

#[tokio::test]
async fn an_intent_is_an_unknown_outcome_unless_it_is_settled() {
    let world = World::new();
    let gateway = world.start();
    for id in 1..=5 {
        gateway.ledger.intend(&claim(id, None)).await.expect("recorded");
        // Durable at once: another gateway sees it.
        let found = world
            .start()
            .ledger
            .find(CorrelationId(id))
            .await
            .expect("recorded");
        assert!(matches!(found.state, LedgerState::Running), "{:?}", found.state);
    }
    let error = |kind| ToolError::new(kind, "no");
    gateway.ledger.settle_intent(CorrelationId(1), CallEnd::Free);
    gateway
        .ledger
        .settle_intent(CorrelationId(2), CallEnd::Answered(None));
    gateway
        .ledger
        .settle_intent(CorrelationId(3), CallEnd::Failed(error(ErrorKind::UpstreamError)));
    gateway.ledger.settle_intent(
        CorrelationId(4),
        CallEnd::Unknown(error(ErrorKind::OutcomeUnknown)),
    );
    // The idempotency layer records it as well: it is one outcome.
    gateway
        .ledger
        .record(claim(4, None), error(ErrorKind::OutcomeUnknown));
    assert!(
        gateway.ledger.find(CorrelationId(1)).await.is_none(),
        "nothing was sent"
    );
    let other = world.start();
    let listed = |entries: Vec<tool_core::LedgerEntry>| {
        let mut ids: Vec<u128> = entries.iter().map(|entry| entry.id.0).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(listed(other.ledger.unknown(10).await), [4]);
    gateway.ledger.close().await;
    assert_eq!(
        listed(other.ledger.unknown(10).await),
        [4, 5],
        "it gave up its calls"
    );
    world.hand.advance(25 * HOUR);
    assert!(
        other.ledger.unknown(10).await.is_empty(),
        "outcomes are kept for a day"
    );
}

/// Returns the end of the only lease, as time of the hand clock.
async fn lease_end(gateway: &Gateway) -> Duration {
    let mut transaction = gateway
        .store
        .database()
        .read()
        .await
        .expect("readable")
        .expect("there");
    let mut rows = transaction
        .fetch("SELECT lease_until FROM gateways", Vec::new())
        .await
        .expect("readable");
    assert_eq!(rows.len(), 1);
    Duration::from_millis(rows[0].int(0).expect("a number").try_into().expect("positive"))
}

/// The time of day is set by hand; the task that renews the lease runs every 20 ms.
#[tokio::test]
async fn the_lease_is_kept_while_calls_run() {
    const LEASE: Duration = Duration::from_millis(60);
    let world = World::new();
    let (gateway, other) = (world.start_with_lease(LEASE), world.start_with_lease(LEASE));
    gateway.ledger.intend(&claim(1, None)).await.expect("recorded");
    for _ in 0..3 {
        world.hand.advance(LEASE - Duration::from_millis(1));
        let renewed = *world.hand.0.lock() + LEASE;
        while lease_end(&other).await != renewed {
            tokio::task::yield_now().await;
        }
        assert!(other.ledger.unknown(10).await.is_empty(), "the call still runs");
    }
    drop(gateway);
    // One renewal may have begun before.
    while other.ledger.unknown(10).await.is_empty() {
        world.hand.advance(LEASE);
    }
}

/// Promise R16: no call without its record.
#[tokio::test]
async fn a_call_is_refused_while_the_ledger_cannot_be_written_and_ends_are_written_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("toolplane.db");
    let options = || SqliteOptions::new(&path).with_busy_timeout(Duration::from_millis(20));
    let ledger = SqlLedger::new(Arc::new(sqlite_store(options())));
    ledger.intend(&claim(1, None)).await.expect("recorded");
    let blocker = SqliteDatabase::new(options());
    let blocking = blocker.write().await.expect("begun");
    ledger.settle_intent(CorrelationId(1), CallEnd::Answered(None));
    let refused = ledger
        .intend(&claim(2, None))
        .await
        .expect_err("another process writes");
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(!refused.counts_for_health(), "the tool is not at fault");
    assert!(ledger.claim(&claim(3, Some("k"))).await.is_err());
    drop(blocking);
    ledger.intend(&claim(4, None)).await.expect("recorded");
    let found = ledger.find(CorrelationId(1)).await.expect("recorded");
    assert!(
        matches!(found.state, LedgerState::Answered(None)),
        "the end was not lost: {:?}",
        found.state
    );
    assert!(ledger.find(CorrelationId(2)).await.is_none());
}

#[tokio::test]
async fn a_reply_beyond_the_limit_is_not_stored_and_its_call_is_still_not_made_twice() {
    let world = World::new();
    let gateway = world.start();
    let ledger = SqlLedger::with_max_reply(gateway.store.clone(), 10);
    assert!(is_granted(
        &ledger.claim(&claim(1, Some("k"))).await.expect("has room")
    ));
    let large = RawJson::parse("[1,2,3,4,5,6]".to_owned()).expect("JSON");
    ledger.settle(CorrelationId(1), CallEnd::Answered(Some(Reply::from(large))));
    let found = ledger.find(CorrelationId(1)).await.expect("known");
    assert!(
        matches!(found.state, LedgerState::Answered(None)),
        "{:?}",
        found.state
    );
}

#[tokio::test]
async fn all_gateways_have_one_secret_of_a_name_from_the_first_use_on() {
    let world = World::new();
    let mut asks = Vec::new();
    for _ in 0..8 {
        let store = world.start().store;
        asks.push(tokio::spawn(async move {
            store.secret("request_state").await.expect("created")
        }));
    }
    let mut secrets = Vec::new();
    for ask in asks {
        secrets.push(ask.await.expect("no panic"));
    }
    secrets.dedup();
    assert_eq!(secrets.len(), 1);
    assert_ne!(secrets[0], [0; 32]);
    let store = world.start().store;
    assert_eq!(store.secret("request_state").await.expect("readable"), secrets[0]);
    assert_ne!(store.secret("other").await.expect("created"), secrets[0]);
    assert!(!format!("{store:?}").contains(&format!("{}, {}", secrets[0][0], secrets[0][1])));
}

#[tokio::test]
async fn uses_of_tools_are_added_up_over_gateways_and_apart_for_tenants() {
    let world = World::new();
    let one = SqlUsage::load(world.start().store).await.expect("readable");
    let other = SqlUsage::load(world.start().store).await.expect("readable");
    let records = |usage: &SqlUsage<SqliteDatabase>, tenant: &str| {
        let records = usage.records(tenant);
        records
            .into_iter()
            .map(|(tool, query, n)| format!("{tool} {query} {n}"))
            .collect::<Vec<_>>()
    };
    one.record("acme", "pay", "pay a bill");
    one.record("acme", "pay", "pay a bill");
    one.record("other", "pay", &"é".repeat(1000));
    assert_eq!(records(&one, "acme"), ["pay pay a bill 2"], "at once");
    let revision = one.revision("acme");
    one.refresh().await.expect("written");
    assert_eq!(one.revision("acme"), revision, "nobody else wrote");
    other.record("acme", "pay", "pay a bill");
    other.refresh().await.expect("written");
    one.refresh().await.expect("readable");
    for usage in [&one, &other] {
        assert_eq!(records(usage, "acme"), ["pay pay a bill 3"]);
        assert_eq!(usage.records("other")[0].1.len(), 256, "long queries are cut");
        assert!(usage.records("nobody").is_empty());
    }
    assert_ne!(one.revision("acme"), revision);
    let later = SqlUsage::load(world.start().store).await.expect("readable");
    assert_eq!(records(&later, "acme"), ["pay pay a bill 3"]);
}
