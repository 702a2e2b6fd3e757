//! Credential refresh alone, on a paused clock.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use raw_json::RawJson;
use serde_json::json;
use tokio::time::advance;
use tool_core::{
    AlertKind, AlertPhase, Backend, CallContext, ErrorKind, Event, Invoke, Layer, Observe, Outcome, Refresh,
    Reply, Tool, ToolError,
};
use tool_policy::{CredentialRefreshLayer, CredentialSettings};
use tool_runtime::TokioClock;
use tool_testkit::{TestTool, call};

const SECOND: Duration = Duration::from_secs(1);

/// An upstream that accepts one credential, and the credential that a tool has.
#[derive(Clone, Default)]
struct Locked(Arc<Inner>);

#[derive(Default)]
struct Inner {
    accepted: AtomicUsize,
    held: AtomicUsize,
    refused: AtomicUsize,
    /// Credential that the next refresh returns.
    next: AtomicUsize,
    n_calls: AtomicUsize,
    n_renewals: AtomicUsize,
    /// `true` if new credentials do not help.
    is_final: bool,
}

impl Invoke for Locked {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.0.n_calls.fetch_add(1, Ordering::SeqCst);
        cx.dispatch().sent();
        cx.dispatch().answered();
        let held = self.0.held.load(Ordering::SeqCst);
        if held == self.0.accepted.load(Ordering::SeqCst) {
            return Ok(Reply::value(RawJson::object()).into());
        }
        self.0.refused.store(held, Ordering::SeqCst);
        let error = ToolError::new(ErrorKind::Auth, "401");
        Err(if self.0.is_final {
            error.with_no_retry()
        } else {
            error
        })
    }
}

impl Backend for Locked {
    async fn refresh_credentials(&self, refresh: Refresh) -> bool {
        if refresh == Refresh::Force
            && self.0.held.load(Ordering::SeqCst) == self.0.refused.load(Ordering::SeqCst)
        {
            self.0.n_renewals.fetch_add(1, Ordering::SeqCst);
            self.0
                .held
                .store(self.0.next.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        self.0.held.load(Ordering::SeqCst) != self.0.refused.load(Ordering::SeqCst)
    }
}

/// Alerts about disabled and enabled tools.
#[derive(Default)]
struct Seen(Mutex<Vec<AlertPhase>>);

impl Observe for Seen {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Alert { alert, .. } = event {
            assert_eq!(alert.kind, AlertKind::Disabled);
            self.0.lock().expect("no test panics with it").push(alert.phase);
        }
    }
}

struct Bench {
    locked: Locked,
    tool: Arc<Tool>,
    seen: Arc<Seen>,
    clock: Arc<TokioClock>,
}

impl Bench {
    fn new(locked: Inner) -> Self {
        let locked = Locked(Arc::new(locked));
        Self {
            tool: TestTool::new("t").build_on(locked.clone()),
            locked,
            seen: Arc::default(),
            clock: Arc::new(TokioClock::new()),
        }
    }

    async fn call(&self) -> Result<Outcome, ToolError> {
        let mut cx = call(self.tool.clone(), json!({}), self.clock.clone());
        cx.observers = [self.seen.clone() as Arc<dyn Observe>].into_iter().collect();
        let layer = CredentialRefreshLayer.layer(self.locked.clone());
        layer.invoke(&mut cx).await
    }

    fn counts(&self) -> (usize, usize) {
        let inner = &self.locked.0;
        let (calls, renewals) = (&inner.n_calls, &inner.n_renewals);
        (calls.load(Ordering::SeqCst), renewals.load(Ordering::SeqCst))
    }
}

fn expired(next: usize) -> Inner {
    Inner {
        accepted: 1.into(),
        next: next.into(),
        ..Inner::default()
    }
}

#[tokio::test(start_paused = true)]
async fn other_credentials_are_got_once_and_the_call_is_made_again() {
    let bench = Bench::new(expired(1));
    bench.call().await.expect("the new ones are accepted");
    bench.call().await.expect("and stay");
    assert_eq!(bench.counts(), (3, 1));
    assert!(bench.seen.0.lock().unwrap().is_empty() && bench.tool.state().disabled().is_none());
}

#[tokio::test(start_paused = true)]
async fn without_others_that_are_accepted_the_tool_is_switched_off() {
    // No new credentials, three times in a row; or new ones that are refused as well.
    for (next, n_calls, n_renewals) in [(0, 3, 3), (7, 2, 1)] {
        let bench = Bench::new(expired(next));
        while bench.counts().0 < n_calls {
            assert!(bench.tool.state().disabled().is_none(), "not at the first");
            let error = bench.call().await.expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Auth);
        }
        for _ in 0..10 {
            let error = bench.call().await.expect_err("it is off");
            assert!(
                error.message().contains("switched off") && !error.allows_retry(),
                "{error}"
            );
            assert!(error.retry_after().is_some());
        }
        let counts = (n_calls, n_renewals);
        assert_eq!(bench.counts(), counts, "nothing is sent, and nothing asked for");
        assert_eq!(*bench.seen.0.lock().unwrap(), [AlertPhase::Firing]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_on_again_when_its_credentials_change() {
    let bench = Bench::new(expired(0));
    for _ in 0..3 {
        bench.call().await.expect_err("refused");
    }
    bench.locked.0.held.store(1, Ordering::SeqCst);
    bench.call().await.expect("somebody renewed them");
    assert_eq!(
        *bench.seen.0.lock().unwrap(),
        [AlertPhase::Firing, AlertPhase::Resolved]
    );
    assert!(bench.tool.state().disabled().is_none());
}

#[tokio::test(start_paused = true)]
async fn one_call_in_a_while_tries_whether_they_are_accepted_again() {
    let bench = Bench::new(expired(0));
    for _ in 0..3 {
        bench.call().await.expect_err("refused");
    }
    advance(299 * SECOND).await;
    bench.call().await.expect_err("it is off");
    assert_eq!(bench.counts().0, 3);
    advance(SECOND).await;
    for _ in 0..3 {
        bench.call().await.expect_err("still refused");
    }
    assert_eq!(bench.counts().0, 4, "one tried");
    bench.locked.0.accepted.store(0, Ordering::SeqCst);
    advance(300 * SECOND).await;
    bench.call().await.expect("accepted again");
    assert_eq!(
        *bench.seen.0.lock().unwrap(),
        [AlertPhase::Firing, AlertPhase::Resolved]
    );
}

#[tokio::test(start_paused = true)]
async fn what_other_credentials_do_not_help_changes_nothing() {
    let bench = Bench::new(Inner {
        is_final: true,
        ..expired(1)
    });
    for _ in 0..3 {
        assert_eq!(bench.call().await.expect_err("403").message(), "401");
    }
    assert_eq!(bench.counts(), (3, 0));
    assert!(bench.tool.state().disabled().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_operator_keeps_tools_on_or_switches_them_on() {
    let mut bench = Bench::new(expired(0));
    for _ in 0..3 {
        bench.call().await.expect_err("refused");
    }
    assert!(bench.tool.state().enable());
    bench.call().await.expect_err("refused once more");
    assert_eq!(bench.counts().0, 4);
    let mut tool = TestTool::new("t");
    tool.settings.set(CredentialSettings::new(Duration::ZERO));
    bench.tool = tool.build_on(bench.locked.clone());
    for _ in 0..3 {
        bench.call().await.expect_err("refused");
    }
    assert_eq!(bench.counts().0, 7);
}
