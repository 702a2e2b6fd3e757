//! Intents alone, around a scripted executor.

use std::{future::ready, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::timeout;
use tool_core::{
    BoxFuture, CallContext, CallEnd, Claim, ClaimResult, CorrelationId, ErrorKind, InputRequest, Invoke,
    Layer, Ledger, LedgerEntry, Metadata, Mode, Outcome, Tool, ToolError,
};
use tool_runtime::{IntentLayer, IntentSettings, TokioClock};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

/// Ledger that only records the intents that it is asked for.
struct IntentLog {
    lines: Mutex<Vec<String>>,
    is_durable: bool,
    /// `None` if the write of an intent never ends.
    result: Option<Result<(), ToolError>>,
}

impl IntentLog {
    fn new() -> Self {
        Self {
            lines: Mutex::default(),
            is_durable: true,
            result: Some(Ok(())),
        }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }
}

impl Ledger for IntentLog {
    fn claim<'a>(&'a self, _: &'a Claim) -> BoxFuture<'a, Result<ClaimResult, ToolError>> {
        panic!("the layer claims no keys")
    }

    fn settle(&self, _: CorrelationId, _: CallEnd) {
        panic!("the layer settles no keys")
    }

    fn record(&self, _: Claim, _: ToolError) {
        panic!("the idempotency layer records unknown outcomes")
    }

    fn find(&self, _: CorrelationId) -> BoxFuture<'_, Option<LedgerEntry>> {
        Box::pin(ready(None))
    }

    fn unknown(&self, _: usize) -> BoxFuture<'_, Vec<LedgerEntry>> {
        Box::pin(ready(Vec::new()))
    }

    fn is_durable(&self) -> bool {
        self.is_durable
    }

    fn intend<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), ToolError>> {
        assert_eq!((claim.key.as_deref(), claim.may_repeat), (None, false));
        self.lines.lock().push(format!("{} {}", claim.id.0, claim.tool));
        match self.result.clone() {
            Some(result) => Box::pin(ready(result)),
            None => Box::pin(std::future::pending()),
        }
    }

    fn settle_intent(&self, id: CorrelationId, end: CallEnd) {
        let word = match end {
            CallEnd::Free => "free",
            CallEnd::Open => "open",
            CallEnd::Answered(_) => "answered",
            CallEnd::Failed(_) => "failed",
            CallEnd::Unknown(_) => "unknown",
        };
        self.lines.lock().push(format!("{} {word}", id.0));
    }
}

fn tool(change: impl FnOnce(&mut Metadata)) -> Arc<Tool> {
    let mut metadata = Metadata::default();
    change(&mut metadata);
    let mut tool = TestTool::new("pay").metadata(metadata);
    tool.settings.set(IntentSettings::new(true));
    tool.build(ScriptedExecutor::new([]))
}

fn context(tool: Arc<Tool>) -> CallContext {
    let mut cx = call(tool, json!({}), Arc::new(TokioClock::new()));
    cx.correlation_id = CorrelationId(7);
    cx
}

async fn run(
    log: &Arc<IntentLog>,
    step: ScriptStep,
    cx: &mut CallContext,
) -> (Result<Outcome, ToolError>, usize) {
    let script = ScriptedExecutor::new([step]);
    let layer = IntentLayer::new(log.clone()).layer(script.clone());
    (layer.invoke(cx).await, script.n_calls())
}

fn error(kind: ErrorKind) -> ToolError {
    ToolError::new(kind, "no")
}

#[tokio::test]
async fn a_call_is_recorded_before_it_is_sent_and_settled_by_its_end() {
    let input = InputRequest::new(tool_core::RawJson::object());
    for (step, end) in [
        (ScriptStep::Echo, "7 answered"),
        (
            ScriptStep::Outcome(Outcome::NeedsInput(Box::new(input))),
            "7 open",
        ),
        (ScriptStep::Fail(error(ErrorKind::Unavailable)), "7 free"),
        (ScriptStep::FailNotTaken(error(ErrorKind::Overloaded)), "7 free"),
        (
            ScriptStep::FailAnswered(error(ErrorKind::UpstreamError)),
            "7 failed",
        ),
        (
            ScriptStep::FailSent(error(ErrorKind::OutcomeUnknown)),
            "7 unknown",
        ),
    ] {
        let log = Arc::new(IntentLog::new());
        let (_, n_calls) = run(&log, step.clone(), &mut context(tool(|_| {}))).await;
        assert_eq!(
            (log.lines(), n_calls),
            (vec!["7 pay".to_owned(), end.to_owned()], 1),
            "{step:?}"
        );
    }
}

#[tokio::test]
async fn a_call_whose_record_cannot_be_written_is_not_made() {
    let mut log = IntentLog::new();
    log.result = Some(Err(error(ErrorKind::Unavailable)));
    let log = Arc::new(log);
    let (result, n_calls) = run(&log, ScriptStep::Echo, &mut context(tool(|_| {}))).await;
    assert_eq!(result.expect_err("refused").kind(), ErrorKind::Unavailable);
    // Nobody knows whether a failed commit was made after all.
    assert_eq!(
        (log.lines(), n_calls),
        (vec!["7 pay".to_owned(), "7 free".to_owned()], 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_unknown_if_it_was_sent() {
    let second = Duration::from_secs(1);
    for (step, never_recorded, end) in [
        (ScriptStep::Hang(true), false, "7 unknown"),
        (ScriptStep::Hang(false), false, "7 free"),
        (ScriptStep::Echo, true, "7 free"),
    ] {
        let mut log = IntentLog::new();
        if never_recorded {
            log.result = None;
        }
        let log = Arc::new(log);
        let mut cx = context(tool(|_| {}));
        let ended = timeout(second, run(&log, step.clone(), &mut cx)).await;
        assert!(ended.is_err(), "{step:?}");
        assert_eq!(log.lines(), ["7 pay", end], "{step:?}");
    }
}

#[tokio::test]
async fn calls_that_need_no_record_have_none() {
    let off = TestTool::new("pay").build(ScriptedExecutor::new([]));
    let mut keyed = context(tool(|_| {}));
    keyed.extras.ledger_entry_id = Some(CorrelationId(3));
    let mut dry = context(tool(|_| {}));
    dry.mode = Mode::DryRun;
    for (what, mut cx) in [
        ("it is off by default", context(off)),
        (
            "idempotent",
            context(tool(|metadata| metadata.idempotent = Some(true))),
        ),
        (
            "read-only",
            context(tool(|metadata| metadata.read_only = Some(true))),
        ),
        ("its key has an entry", keyed),
        ("a dry run", dry),
    ] {
        let log = Arc::new(IntentLog::new());
        let (result, n_calls) = run(&log, ScriptStep::Echo, &mut cx).await;
        assert!(result.is_ok() && n_calls == 1, "{what}: {result:?}");
        assert_eq!(log.lines(), [""; 0], "{what}");
    }
    let mut log = IntentLog::new();
    log.is_durable = false;
    let log = Arc::new(log);
    let (result, _) = run(&log, ScriptStep::Echo, &mut context(tool(|_| {}))).await;
    assert!(
        result.is_ok() && log.lines().is_empty(),
        "nothing would outlive the process"
    );
}
