//! Tests of storages of approvals. They keep at least 256 approvals, and refuse the 33rd of one principal.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use raw_json::RawJson;
use tool_core::{
    ApprovalCall, ApprovalRecord, ApprovalState, Approvals, ApprovalsError, Caller, Clock, Instant,
    SystemClock,
};

const HOUR: Duration = Duration::from_secs(3600);

fn now() -> Instant {
    SystemClock::new().now()
}

/// Returns the present time of day, as exactly as storages keep it.
fn wall() -> SystemTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

fn call(principal: &str, arguments: &str) -> ApprovalCall {
    let raw = RawJson::parse(arguments.to_owned()).expect("JSON");
    let mut call = ApprovalCall::new(
        "pay".into(),
        raw.clone(),
        &Caller::new(principal),
        wall(),
        wall() + HOUR,
    );
    call.version = Some("1.2.0".to_owned());
    call.risks = vec!["it \"pays\"".to_owned(), "é".to_owned()];
    call.details = "publishes `greet`\nwith code".to_owned();
    call.reason = "the policy\nsays so".to_owned();
    call.tool_digest = [1; 32];
    call.arguments_digest = raw_json::digest(&raw);
    call.policy_digest = [255; 32];
    call
}

fn record(handle: &str, call: ApprovalCall) -> ApprovalRecord {
    ApprovalRecord::new(
        handle.into(),
        Arc::new(call),
        now() + HOUR,
        ApprovalState::Pending,
    )
}

/// Asks for an approval that is stored.
async fn ask(approvals: &Arc<dyn Approvals>, approval: ApprovalRecord) -> ApprovalRecord {
    approvals.ask(approval, now()).await.expect("stored")
}

/// Returns the stored approval. Its expiry is near the one that was asked for.
async fn get(approvals: &Arc<dyn Approvals>, handle: &str) -> ApprovalRecord {
    approvals.get(handle).await.expect("readable").expect("known")
}

/// An approval has all its fields, and its arguments byte for byte.
pub async fn an_approval_comes_back_as_it_was_asked_for(one: Arc<dyn Approvals>, other: Arc<dyn Approvals>) {
    assert_eq!(other.get("a").await, Ok(None));
    assert_eq!(other.list().await, Ok(Vec::new()));
    let mut call = call("ada", r#"{"to": "é",  "amount": 1e2}"#);
    call.tenant = "acme".into();
    call.by_another = true;
    let asked = ask(&one, record("a", call)).await;
    let found = get(&other, "a").await;
    assert_eq!((&found.call, &found.state), (&asked.call, &asked.state));
    let difference = found.expiry.since(asked.expiry) + asked.expiry.since(found.expiry);
    assert!(difference < HOUR / 60, "{difference:?}");
    let listed = other.list().await.expect("readable");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].call, asked.call);
}

/// A second request for an open approval returns the first one, whoever asks.
pub async fn an_open_approval_is_not_asked_for_twice(one: Arc<dyn Approvals>, other: Arc<dyn Approvals>) {
    ask(&one, record("a", call("ada", "{}"))).await;
    assert_eq!(&*ask(&other, record("b", call("ada", "{}"))).await.handle, "a");
    assert_eq!(&*ask(&other, record("c", call("ada", "[]"))).await.handle, "c");
    assert_eq!(&*ask(&other, record("d", call("bob", "{}"))).await.handle, "d");
    let denied = ApprovalState::Denied {
        by: "eve".into(),
        reason: None,
    };
    let first = get(&one, "a").await;
    assert_eq!(
        other
            .replace(&ApprovalState::Pending, first.with_state(denied))
            .await,
        Ok(true)
    );
    assert_eq!(
        &*ask(&one, record("e", call("ada", "{}"))).await.handle,
        "a",
        "it is denied"
    );
    assert_eq!(one.list().await.expect("readable").len(), 3);
}

/// Of requests for one call that are made at once, one is stored.
pub async fn requests_at_once_share_one_approval(one: Arc<dyn Approvals>, other: Arc<dyn Approvals>) {
    let mut asks = Vec::new();
    for n in 0..8 {
        let approvals = if n % 2 == 0 { one.clone() } else { other.clone() };
        asks.push(tokio::spawn(async move {
            ask(&approvals, record(&format!("h{n}"), call("ada", "{}")))
                .await
                .handle
        }));
    }
    let mut handles = Vec::new();
    for asked in asks {
        handles.push(asked.await.expect("no panic"));
    }
    handles.dedup();
    assert_eq!(handles.len(), 1, "{handles:?}");
    assert_eq!(one.list().await.expect("readable").len(), 1);
}

/// A question to a client is for one call only.
pub async fn two_questions_to_clients_are_two_approvals(one: Arc<dyn Approvals>, other: Arc<dyn Approvals>) {
    for handle in ["a", "b"] {
        let asked = record(handle, call("ada", "{}")).with_state(ApprovalState::Asked);
        assert_eq!(&*ask(&one, asked).await.handle, handle);
    }
    let listed = other.list().await.expect("readable");
    let handles: Vec<&str> = listed.iter().map(|approval| &*approval.handle).collect();
    assert_eq!(handles, ["a", "b"], "the oldest is first");
}

/// Every state is stored with its details, and only from the known state.
pub async fn a_state_is_replaced_only_if_it_is_the_known_one(
    one: Arc<dyn Approvals>,
    other: Arc<dyn Approvals>,
) {
    let asked = ask(&one, record("a", call("ada", "{}"))).await;
    let by = || Arc::from("eve \"e\"");
    let mut known = ApprovalState::Pending;
    for state in [
        ApprovalState::Asked,
        ApprovalState::Pending,
        ApprovalState::Denied {
            by: by(),
            reason: Some("no\u{0}".to_owned()),
        },
        ApprovalState::Denied {
            by: by(),
            reason: None,
        },
        ApprovalState::Approved { by: by() },
        ApprovalState::Running { round: 0 },
        ApprovalState::Waiting { round: 1 },
        ApprovalState::Running { round: u32::MAX },
    ] {
        let wrong = ApprovalState::Waiting { round: 7 };
        let new = asked.clone().with_state(state.clone());
        assert_eq!(other.replace(&wrong, new.clone()).await, Ok(false));
        assert_eq!(get(&one, "a").await.state, known);
        assert_eq!(other.replace(&known, new).await, Ok(true), "{state:?}");
        assert_eq!(get(&one, "a").await.state, state);
        known = state;
    }
    let ended = asked.clone().with_state(ApprovalState::Ended);
    assert_eq!(other.replace(&known, ended.clone()).await, Ok(true));
    assert_eq!(one.replace(&known, ended).await, Ok(false));
    let unknown = record("b", call("ada", "{}"));
    assert_eq!(one.replace(&ApprovalState::Pending, unknown).await, Ok(false));
    assert_eq!(
        &*ask(&one, record("c", call("ada", "{}"))).await.handle,
        "c",
        "the first one has ended"
    );
}

/// Of calls that claim one approval at once, one succeeds.
pub async fn one_of_many_claims_succeeds(one: Arc<dyn Approvals>, other: Arc<dyn Approvals>) {
    let by = ApprovalState::Approved { by: "eve".into() };
    ask(&one, record("a", call("ada", "{}")).with_state(by.clone())).await;
    let mut claims = Vec::new();
    for n in 0..8 {
        let (approvals, by) = (if n % 2 == 0 { one.clone() } else { other.clone() }, by.clone());
        claims.push(tokio::spawn(async move {
            let running = get(&approvals, "a")
                .await
                .with_state(ApprovalState::Running { round: 0 });
            approvals.replace(&by, running).await.expect("works")
        }));
    }
    let mut n_claimed = 0;
    for claimed in claims {
        n_claimed += u32::from(claimed.await.expect("no panic"));
    }
    assert_eq!(n_claimed, 1);
}

/// An expired approval makes room, and its call can be asked for again.
pub async fn an_expired_approval_is_forgotten(one: Arc<dyn Approvals>, other: Arc<dyn Approvals>) {
    ask(&one, record("a", call("ada", "{}"))).await;
    let later = now() + 2 * HOUR;
    let again = other
        .ask(record("b", call("ada", "{}")), later)
        .await
        .expect("stored");
    assert_eq!(&*again.handle, "b");
    assert_eq!(one.get("a").await, Ok(None));
}

/// One principal cannot take the room of others, and nothing is evicted for a new request.
pub async fn the_number_of_approvals_is_limited(one: Arc<dyn Approvals>, other: Arc<dyn Approvals>) {
    for principal in 0..8 {
        let name = format!("p{principal}");
        for n in 0..32 {
            let handle = format!("{name}-{n}");
            ask(&one, record(&handle, call(&name, &n.to_string()))).await;
        }
        let refused = other.ask(record("more", call(&name, "99")), now()).await;
        let whose = "this caller";
        assert_eq!(refused, Err(ApprovalsError::Full { waiting: 32, whose }));
    }
    let refused = one.ask(record("more", call("other", "1")), now()).await;
    let whose = "all callers";
    assert_eq!(refused, Err(ApprovalsError::Full { waiting: 256, whose }));
    assert_eq!(
        &*ask(&one, record("again", call("p0", "0"))).await.handle,
        "p0-0",
        "it needs no room"
    );
}
