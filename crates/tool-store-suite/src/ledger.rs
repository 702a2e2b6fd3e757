//! Tests of ledgers of calls.

use std::{error::Error as _, sync::Arc, time::Duration};

use raw_json::RawJson;
use tool_core::{
    CallEnd, Claim, ClaimResult, CorrelationId, ErrorKind, Ledger, LedgerEntry, LedgerState, Reply, ToolError,
};

fn claim(id: u128, key: &str) -> Claim {
    let mut claim = Claim::new(CorrelationId(id), "acme", "ada", "pay");
    claim.key = Some(key.into());
    claim.arguments = [7; 32];
    claim
}

/// Claims a key once, and waits for no running call.
async fn try_claim(ledger: &Arc<dyn Ledger>, claim: &Claim) -> ClaimResult {
    ledger.claim(claim).await.expect("it has room")
}

/// Claims a key, and waits for the end of a running call with it.
async fn claimed(ledger: &Arc<dyn Ledger>, claim: &Claim) -> ClaimResult {
    loop {
        match try_claim(ledger, claim).await {
            ClaimResult::Running(end) => end.await,
            result => return result,
        }
    }
}

fn granted(result: ClaimResult) -> CorrelationId {
    match result {
        ClaimResult::Granted(id) => id,
        other => panic!("not granted: {other:?}"),
    }
}

fn ended(result: ClaimResult) -> LedgerEntry {
    match result {
        ClaimResult::Ended(entry) => *entry,
        other => panic!("not ended: {other:?}"),
    }
}

fn unknown() -> ToolError {
    ToolError::new(ErrorKind::OutcomeUnknown, "nobody answered")
}

/// Of claims that are made at once, one is granted, and the others wait for its call.
pub async fn one_of_many_claims_is_granted(one: Arc<dyn Ledger>, other: Arc<dyn Ledger>) {
    let mut claims = Vec::new();
    for n in 1..=8 {
        let ledger = if n % 2 == 0 { one.clone() } else { other.clone() };
        claims.push(tokio::spawn(
            async move { try_claim(&ledger, &claim(n, "k")).await },
        ));
    }
    let mut n_granted = 0;
    for result in claims {
        match result.await.expect("no panic") {
            ClaimResult::Granted(_) => n_granted += 1,
            ClaimResult::Running(_) => {}
            other => panic!("neither granted nor running: {other:?}"),
        }
    }
    assert_eq!(n_granted, 1);
}

/// A further call with a key gets the reply of the first one: its bytes, and what layers added.
pub async fn a_reply_comes_back_as_it_was(one: Arc<dyn Ledger>, other: Arc<dyn Ledger>) {
    let raw = |text: &str| RawJson::parse(text.to_owned()).expect("JSON");
    let mut partial = Reply::value(raw(r#"{"a": 1e2,  "é": "\u0000"}"#));
    partial.mark_partial();
    partial.add_meta("dev.toolplane/test", raw(r#"{"n":  1.50}"#));
    let mut failed = Reply::value(raw("[1.0]"));
    failed.is_error = true;
    let result = Reply::result(raw(r#"{"content": [], "isError": true}"#), true);
    for (n, reply) in [(1, partial), (2, failed), (3, result)] {
        let key = format!("k{n}");
        assert_eq!(granted(claimed(&one, &claim(n, &key)).await), CorrelationId(n));
        one.settle(CorrelationId(n), CallEnd::Answered(Some(reply.clone())));
        for ledger in [&one, &other] {
            let entry = ended(claimed(ledger, &claim(9, &key)).await);
            assert_eq!(entry.id, CorrelationId(n));
            assert_eq!(
                (&*entry.tenant, &*entry.principal, &*entry.tool),
                ("acme", "ada", "pay")
            );
            assert_eq!(entry.key.as_deref(), Some(&*key));
            let LedgerState::Answered(Some(found)) = entry.state else {
                panic!("no reply: {:?}", entry.state);
            };
            assert_eq!(found.body, reply.body);
            assert_eq!(found.raw().as_str(), reply.raw().as_str());
            assert_eq!(
                (found.is_error, found.is_partial()),
                (reply.is_error, reply.is_partial())
            );
            assert_eq!(found.meta(), reply.meta());
        }
    }
    granted(claimed(&one, &claim(4, "task")).await);
    one.settle(CorrelationId(4), CallEnd::Answered(None));
    let entry = ended(claimed(&other, &claim(9, "task")).await);
    assert!(
        matches!(entry.state, LedgerState::Answered(None)),
        "{:?}",
        entry.state
    );
}

/// A further call with a key gets the failure of the first one, with everything that layers decide by.
pub async fn a_failure_comes_back_as_it_was(one: Arc<dyn Ledger>, other: Arc<dyn Ledger>) {
    let detail = RawJson::parse(r#"{"code":  1e2}"#).expect("JSON");
    let full = ToolError::new(ErrorKind::RateLimited, "sl\u{0}ow \"down\"")
        .with_retry_after(Duration::new(3, 5))
        .with_no_retry()
        .ignored_by_health()
        .with_may_have_run()
        .with_detail(detail)
        .with_ledger_id(CorrelationId(77))
        .with_advice("ask the operator".into())
        .with_log_message("slow down")
        .with_source(ToolError::new(ErrorKind::Internal, "outer").with_source(std::fmt::Error));
    let plain = ToolError::new(ErrorKind::Denied, "no");
    for (n, error) in [(1, full), (2, plain)] {
        let key = format!("k{n}");
        granted(claimed(&one, &claim(n, &key)).await);
        one.settle(CorrelationId(n), CallEnd::Failed(error.clone()));
        let LedgerState::Failed(found) = ended(claimed(&other, &claim(9, &key)).await).state else {
            panic!("it has failed");
        };
        assert_eq!((found.kind(), found.message()), (error.kind(), error.message()));
        assert_eq!(found.retry_after(), error.retry_after());
        assert_eq!(found.allows_retry(), error.allows_retry());
        assert_eq!(found.counts_for_health(), error.counts_for_health());
        assert_eq!(found.may_have_run(), error.may_have_run());
        let text = |error: &ToolError| error.detail().map(|detail| detail.as_str().to_owned());
        assert_eq!(text(&found), text(&error));
        assert_eq!(found.ledger_id(), error.ledger_id());
        assert_eq!(found.advice(), error.advice());
        assert_eq!(found.log_message(), error.log_message());
        let causes = |error: &ToolError| {
            let (mut texts, mut cause) = (Vec::new(), error.source());
            while let Some(present) = cause {
                texts.push(present.to_string());
                cause = present.source();
            }
            texts
        };
        assert_eq!(causes(&found), causes(&error));
    }
}

/// A key is bound to a tool and its arguments, also while its call runs, and to a principal and tenant.
pub async fn a_key_belongs_to_one_call_of_one_principal(one: Arc<dyn Ledger>, other: Arc<dyn Ledger>) {
    granted(claimed(&one, &claim(1, "k")).await);
    let mut tool = claim(2, "k");
    tool.tool = "refund".into();
    let mut arguments = claim(3, "k");
    arguments.arguments = [8; 32];
    for conflict in [&tool, &arguments] {
        assert!(matches!(try_claim(&other, conflict).await, ClaimResult::Conflict));
    }
    let mut principal = claim(4, "k");
    principal.principal = "bob".into();
    let mut tenant = claim(5, "k");
    tenant.tenant = "other".into();
    for stranger in [principal, tenant] {
        assert_eq!(granted(claimed(&other, &stranger).await), stranger.id);
    }
    one.settle(CorrelationId(1), CallEnd::Answered(None));
    assert!(matches!(claimed(&other, &tool).await, ClaimResult::Conflict));
}

/// A call that did not run frees its key.
pub async fn a_freed_key_is_granted_again(one: Arc<dyn Ledger>, other: Arc<dyn Ledger>) {
    granted(claimed(&one, &claim(1, "k")).await);
    one.settle(CorrelationId(1), CallEnd::Free);
    assert_eq!(granted(claimed(&other, &claim(2, "k")).await), CorrelationId(2));
    assert!(one.find(CorrelationId(1)).await.is_none());
}

/// A further round of a call continues with the entry of the first one.
pub async fn an_open_call_continues_with_its_entry(one: Arc<dyn Ledger>, other: Arc<dyn Ledger>) {
    granted(claimed(&one, &claim(1, "k")).await);
    one.settle(CorrelationId(1), CallEnd::Open);
    let found = one.find(CorrelationId(1)).await.expect("known");
    assert!(matches!(found.state, LedgerState::Open), "{:?}", found.state);
    assert_eq!(granted(claimed(&other, &claim(2, "k")).await), CorrelationId(1));
    assert!(matches!(
        try_claim(&one, &claim(3, "k")).await,
        ClaimResult::Running(_)
    ));
    other.settle(CorrelationId(1), CallEnd::Answered(None));
    assert_eq!(ended(claimed(&one, &claim(4, "k")).await).id, CorrelationId(1));
}

/// After an unknown outcome, nothing runs with the key, unless the tool may run again.
pub async fn an_unknown_outcome_keeps_its_key_unless_the_call_may_be_repeated(
    one: Arc<dyn Ledger>,
    other: Arc<dyn Ledger>,
) {
    granted(claimed(&one, &claim(1, "k")).await);
    one.settle(CorrelationId(1), CallEnd::Unknown(unknown()));
    for ledger in [&one, &other] {
        let LedgerState::Unknown(error) = ended(claimed(ledger, &claim(2, "k")).await).state else {
            panic!("it is unknown");
        };
        assert_eq!(error.message(), "nobody answered");
    }
    let mut repeatable = claim(3, "k");
    repeatable.may_repeat = true;
    assert_eq!(granted(claimed(&other, &repeatable).await), CorrelationId(1));
    other.settle(CorrelationId(1), CallEnd::Answered(None));
    let entry = ended(claimed(&one, &repeatable).await);
    assert!(
        matches!(entry.state, LedgerState::Answered(None)),
        "{:?}",
        entry.state
    );
}

/// A call waits for a running one with the same key, also on another handle.
pub async fn a_waiting_claim_learns_of_the_end(one: Arc<dyn Ledger>, other: Arc<dyn Ledger>) {
    granted(claimed(&one, &claim(1, "k")).await);
    let wait = |ledger: &Arc<dyn Ledger>, id| {
        let ledger = ledger.clone();
        tokio::spawn(async move { claimed(&ledger, &claim(id, "k")).await })
    };
    let waiting = [wait(&one, 2), wait(&other, 3)];
    one.settle(CorrelationId(1), CallEnd::Answered(None));
    for result in waiting {
        assert_eq!(ended(result.await.expect("no panic")).id, CorrelationId(1));
    }
}

/// Unknown outcomes of calls with and without keys are listed, the most recent first, and found by their ids.
pub async fn unknown_outcomes_are_listed_and_found(one: Arc<dyn Ledger>, other: Arc<dyn Ledger>) {
    assert!(other.unknown(10).await.is_empty());
    assert!(other.find(CorrelationId(1)).await.is_none());
    granted(claimed(&one, &claim(1, "k")).await);
    one.settle(CorrelationId(1), CallEnd::Unknown(unknown()));
    granted(claimed(&one, &claim(2, "answered")).await);
    one.settle(CorrelationId(2), CallEnd::Answered(None));
    // Its key is not claimed by it.
    one.record(claim(3, "unclaimed"), unknown());
    for ledger in [&one, &other] {
        // The handle that wrote has nothing left to write then.
        let mut own: Vec<u128> = one.unknown(10).await.iter().map(|entry| entry.id.0).collect();
        own.sort_unstable();
        let mut listed: Vec<u128> = ledger.unknown(10).await.iter().map(|entry| entry.id.0).collect();
        listed.sort_unstable();
        assert_eq!((own, listed), (vec![1, 3], vec![1, 3]));
        assert_eq!(ledger.unknown(1).await.len(), 1);
        let found = ledger.find(CorrelationId(3)).await.expect("known");
        assert_eq!((found.key, &*found.tool), (None, "pay"));
        let LedgerState::Unknown(error) = found.state else {
            panic!("it is unknown");
        };
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    }
    assert_eq!(
        granted(claimed(&other, &claim(4, "unclaimed")).await),
        CorrelationId(4)
    );
}

/// An entry is forgotten after its time, and its key is free for any call.
pub async fn an_entry_is_forgotten_after_its_time(one: Arc<dyn Ledger>, other: Arc<dyn Ledger>) {
    let mut short = claim(1, "k");
    short.ttl = Duration::ZERO;
    granted(claimed(&one, &short).await);
    assert!(
        matches!(try_claim(&other, &claim(2, "k")).await, ClaimResult::Running(_)),
        "it runs"
    );
    one.settle(CorrelationId(1), CallEnd::Unknown(unknown()));
    let mut next = claim(3, "k");
    next.tool = "refund".into();
    let granted_id = loop {
        // Until the end is written, the key belongs to the running call.
        match try_claim(&other, &next).await {
            ClaimResult::Granted(id) => break id,
            ClaimResult::Conflict => tokio::task::yield_now().await,
            other => panic!("neither granted nor in use: {other:?}"),
        }
    };
    assert_eq!(granted_id, CorrelationId(3));
    assert!(one.unknown(10).await.is_empty());
}
