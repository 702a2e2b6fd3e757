//! Storage, secrets, sources and observers of the host program.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use serde_json::json;
use tokio::{sync::watch, time::sleep};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{
        ApprovalRecord, ApprovalState, Approvals, ApprovalsError, BoxFuture, CallEnd, Catalogue, Claim,
        ClaimResult, CorrelationId, ErrorKind, Event, Feature, Instant, Ledger, LedgerEntry, LedgerState,
        Outcome, Source, SourceState, SourceStatus, ToolError,
    },
    policy::{ApprovalRule, ApprovalVerdict},
};

/// Ledger in a list.
#[derive(Default)]
struct ListLedger(Mutex<Vec<(Claim, LedgerState)>>);

impl ListLedger {
    fn entries(&self) -> Vec<LedgerEntry> {
        let entries = self.0.lock();
        let entry = |(claim, state): &(Claim, LedgerState)| {
            LedgerEntry::new(claim, SystemTime::UNIX_EPOCH, state.clone())
        };
        entries.iter().map(entry).collect()
    }
}

impl Ledger for ListLedger {
    fn claim<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<ClaimResult, ToolError>> {
        Box::pin(async move {
            let mut entries = self.0.lock();
            let known = entries.iter_mut().find(|(known, _)| known.key == claim.key);
            let Some((known, state)) = known else {
                entries.push((claim.clone(), LedgerState::Running));
                return Ok(ClaimResult::Granted(claim.id));
            };
            if (&known.tool, known.arguments) != (&claim.tool, claim.arguments) {
                return Ok(ClaimResult::Conflict);
            }
            Ok(match state {
                LedgerState::Running => ClaimResult::Running(Box::pin(sleep(Duration::from_millis(50)))),
                LedgerState::Open => {
                    *state = LedgerState::Running;
                    ClaimResult::Granted(known.id)
                }
                state => {
                    let entry = LedgerEntry::new(known, SystemTime::UNIX_EPOCH, state.clone());
                    ClaimResult::Ended(Box::new(entry))
                }
            })
        })
    }

    fn settle(&self, id: CorrelationId, end: CallEnd) {
        let mut entries = self.0.lock();
        if let CallEnd::Free = end {
            entries.retain(|(claim, _)| claim.id != id);
            return;
        }
        if let Some((_, state)) = entries.iter_mut().find(|(claim, _)| claim.id == id) {
            *state = match end {
                CallEnd::Answered(reply) => LedgerState::Answered(reply),
                CallEnd::Failed(error) => LedgerState::Failed(error),
                CallEnd::Unknown(error) => LedgerState::Unknown(error),
                _ => LedgerState::Open,
            };
        }
    }

    fn record(&self, claim: Claim, unknown: ToolError) {
        self.0
            .lock()
            .push((claim.unkeyed(), LedgerState::Unknown(unknown)));
    }

    fn find(&self, id: CorrelationId) -> BoxFuture<'_, Option<LedgerEntry>> {
        Box::pin(async move { self.entries().into_iter().find(|entry| entry.id == id) })
    }

    fn unknown(&self, limit: usize) -> BoxFuture<'_, Vec<LedgerEntry>> {
        Box::pin(async move {
            let unknown = self.entries().into_iter().rev();
            let unknown = unknown.filter(|entry| matches!(entry.state, LedgerState::Unknown(_)));
            unknown.take(limit).collect()
        })
    }
}

/// Approvals in a list.
#[derive(Default)]
struct ListApprovals(Mutex<Vec<ApprovalRecord>>);

impl Approvals for ListApprovals {
    fn ask(
        &self,
        approval: ApprovalRecord,
        now: Instant,
    ) -> BoxFuture<'_, Result<ApprovalRecord, ApprovalsError>> {
        Box::pin(async move {
            let mut all = self.0.lock();
            let same = all.iter().find(|known| {
                known.call.is_same(&approval.call) && known.state.is_open() && known.expiry > now
            });
            if let Some(same) = same {
                return Ok(same.clone());
            }
            all.push(approval.clone());
            Ok(approval)
        })
    }

    fn get<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<Option<ApprovalRecord>, ApprovalsError>> {
        Box::pin(async move {
            let all = self.0.lock();
            Ok(all.iter().find(|approval| &*approval.handle == handle).cloned())
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<ApprovalRecord>, ApprovalsError>> {
        Box::pin(async move { Ok(self.0.lock().clone()) })
    }

    fn replace<'a>(
        &'a self,
        known: &'a ApprovalState,
        new: ApprovalRecord,
    ) -> BoxFuture<'a, Result<bool, ApprovalsError>> {
        Box::pin(async move {
            let mut all = self.0.lock();
            let stored = all.iter_mut().find(|approval| approval.handle == new.handle);
            let stored = stored.filter(|approval| approval.state == *known);
            Ok(stored.map(|stored| *stored = new).is_some())
        })
    }
}

/// Source whose tools change on their own.
struct Plugins(watch::Sender<Arc<Catalogue>>);

impl Plugins {
    fn set(&self, revision: u64, names: &[&str]) {
        let tools = names.iter().map(|name| Arc::new(TestTool::new(name).descriptor));
        self.0
            .send_replace(Arc::new(Catalogue::new(revision, tools.collect())));
    }
}

impl Source for Plugins {
    fn name(&self) -> &str {
        "plugins"
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.0.borrow().clone()
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        let mut receiver = self.0.subscribe();
        Box::pin(async move {
            // Ends with the source.
            let _ = receiver.wait_for(|catalogue| catalogue.revision != seen).await;
        })
    }

    fn may_hold(&self, _: Feature, _: &str) -> bool {
        false
    }

    fn status(&self) -> SourceStatus {
        SourceStatus::new(SourceState::Ready)
    }
}

fn text(result: Result<Outcome, ToolError>) -> String {
    result.expect("answered").into_reply().expect("a reply").text()
}

#[tokio::test(start_paused = true)]
async fn keys_are_kept_in_a_ledger_of_the_program() {
    let ledger = Arc::new(ListLedger::default());
    let script = ScriptedExecutor::new([
        ScriptStep::After(Duration::from_secs(1), json!("paid")),
        ScriptStep::Hang(true),
    ]);
    let plane = Toolplane::builder()
        .executor(Arc::new(script.clone()))
        .tool(TestTool::new("pay").descriptor)
        .ledger(ledger.clone())
        .build()
        .expect("usable");
    let pay = CallRequest::new("pay").idempotency_key("k");
    // The second one waits for the first, and the third one finds its answer.
    let (first, second) = tokio::join!(plane.call(pay.clone()), plane.call(pay.clone()));
    assert_eq!(
        (text(first), text(second)),
        ("paid".to_owned(), "paid".to_owned())
    );
    assert_eq!(text(plane.call(pay.clone()).await), "paid");
    let other = pay.args(&json!({"n": 1})).expect("an object");
    assert!(plane.call(other).await.is_err(), "another call with this key");
    assert_eq!(script.n_calls(), 1);
    assert!(matches!(ledger.entries()[0].state, LedgerState::Answered(_)));
    // Without a key it is recorded if nobody knows whether it ran.
    let hung = plane
        .call(CallRequest::new("pay").deadline(Duration::from_secs(1)))
        .await;
    let id = hung.expect_err("unanswered").ledger_id().expect("recorded");
    assert!(plane.ledger_entry(id).await.is_some());
    assert_eq!(plane.unknown_outcomes(10).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn approvals_are_kept_in_a_storage_of_the_program() {
    let approvals = Arc::new(ListApprovals::default());
    let script = ScriptedExecutor::new([ScriptStep::Value(json!("paid"))]);
    let mut tool = TestTool::new("pay");
    tool.descriptor.overrides.set(ApprovalRule::Required);
    let plane = Toolplane::builder()
        .executor(Arc::new(script.clone()))
        .tool(tool.descriptor)
        .approvals(approvals.clone())
        .build()
        .expect("usable");
    let Ok(Outcome::Pending(pending)) = plane.call(CallRequest::new("pay")).await else {
        panic!("it needs an approval");
    };
    assert_eq!(approvals.0.lock()[0].handle, pending.handle);
    let decided = plane
        .approvals()
        .decide(&pending.handle, ApprovalVerdict::Approve, "ann");
    decided.await.expect("decided");
    let approved = CallRequest::new("pay").approval(&pending.handle);
    assert_eq!(text(plane.call(approved).await), "paid");
    let state = approvals.0.lock().first().map(|approval| approval.state.clone());
    assert_eq!(state, Some(ApprovalState::Ended));
    assert_eq!(script.n_calls(), 1);
}

#[cfg(feature = "exec-http")]
mod secrets {
    use toolplane::{
        core::{Reference, Secret, SecretError, Secrets},
        manifest::{LoadOptions, Syntax, load},
    };

    use super::*;

    /// Vault that knows one value, and counts how often it is asked.
    #[derive(Default)]
    struct Vault(AtomicUsize);

    impl Secrets for Vault {
        fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let known = reference.to_string().contains("token");
            Box::pin(async move { Ok(known.then(|| Secret::new("hunter2-hunter2"))) })
        }

        fn has(&self, _: &Reference) -> Result<bool, SecretError> {
            Ok(true)
        }
    }

    #[tokio::test]
    async fn a_vault_of_the_program_precedes_and_outlives_configurations() {
        const TOOL: &str = "tools: {t: {description: d, executor: \
                            {kind: http, url: 'http://127.0.0.1:1/', allow_private: true, headers: {x-key: '${secret:token}'}}}}";
        let loaded = load(&LoadOptions::new().text("c", Syntax::Yaml, TOOL)).expect("usable");
        let vault = Arc::new(Vault::default());
        let plane = Toolplane::builder()
            .secrets(vault.clone())
            .yaml(TOOL)
            .expect("usable")
            .build()
            .expect("usable");
        let mut n_before = 0;
        for _ in 0..2 {
            // Nobody listens there, but the header is made first.
            let error = plane
                .call(CallRequest::new("t"))
                .await
                .expect_err("nobody listens");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            let n_asked = vault.0.load(Ordering::Relaxed);
            assert!(n_asked > n_before, "the vault is asked");
            n_before = n_asked;
            plane.reload(&loaded).expect("usable");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tools_of_a_source_of_the_program_come_and_go() {
    let plugins = Arc::new(Plugins(watch::Sender::default()));
    plugins.set(1, &["one"]);
    let script = ScriptedExecutor::new([ScriptStep::Value(json!("done"))]);
    let plane = Toolplane::builder()
        .executor(Arc::new(script))
        .source(plugins.clone())
        .build()
        .expect("usable");
    assert_eq!(text(plane.call(CallRequest::new("one")).await), "done");
    let mut changes = plane.changes();
    changes.mark_unchanged();
    plugins.set(2, &["two"]);
    changes.changed().await.expect("the toolplane exists");
    assert_eq!(text(plane.call(CallRequest::new("two")).await), "done");
    let gone = plane.call(CallRequest::new("one")).await;
    assert_eq!(gone.expect_err("gone").kind(), ErrorKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_closure_observes_events() {
    let n_events = Arc::new(AtomicUsize::new(0));
    let counter = n_events.clone();
    let plane = Toolplane::builder()
        .executor(Arc::new(ScriptedExecutor::new([])))
        .tool(TestTool::new("t").descriptor)
        .on_event(move |event| {
            if let Event::CallFinished { cx, .. } = event
                && &**cx.tool().name() == "t"
            {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        })
        .build()
        .expect("usable");
    for _ in 0..3 {
        plane.call(CallRequest::new("t")).await.expect("answered");
    }
    assert_eq!(n_events.load(Ordering::Relaxed), 3);
}
