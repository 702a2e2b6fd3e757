//! Approval: calls that somebody must approve.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::advance;
use tool_core::{
    ApprovalListener, ApprovalRecord, ApprovalState, Approvals, ApprovalsError, Ask, AskError, Asker,
    BoxFuture, CallContext, Caller, ClientKey, Clock, ErrorKind, InputRequest, Instant, Invoke, Layer, Mode,
    Outcome, Pattern, PendingCall, Question, Resume, Tool, ToolError,
};
use tool_policy::ApprovalRule;
use tool_policy::{
    Approval, ApprovalDesk, ApprovalLayer, ApprovalRules, ApprovalVerdict, DecideError, MemoryApprovals,
    Rules, SharedRules,
};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

const SOUND: &str = "no test panics with it";
const JSON: &str = "a test writes JSON";
const MINUTE: Duration = Duration::from_secs(60);

/// The layer around a scripted tool, with everything that it uses.
struct Bench {
    stack: Approval<ScriptedExecutor>,
    script: ScriptedExecutor,
    desk: ApprovalDesk,
    clock: Arc<dyn Clock>,
    news: Arc<News>,
}

/// Texts of all notifications.
#[derive(Default)]
struct News(Mutex<Vec<String>>);

impl ApprovalListener for News {
    fn approval_changed(&self, approval: &ApprovalRecord) {
        let mut news = self.0.lock().expect(SOUND);
        news.push(format!("{} {}", approval.state.as_str(), approval.call.tool));
    }
}

fn rules(change: impl FnOnce(&mut ApprovalRules)) -> Rules {
    let mut approval = ApprovalRules::default().with_required(vec![Pattern::new("pay*")]);
    change(&mut approval);
    Rules::default().with_approval(approval)
}

impl Bench {
    fn new() -> Self {
        Self::with(
            rules(|_| {}),
            Arc::new(MemoryApprovals::default()),
            [ScriptStep::Echo],
        )
    }

    fn with(rules: Rules, store: Arc<dyn Approvals>, steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let news = Arc::new(News::default());
        let desk = ApprovalDesk::new(store, [news.clone() as _], clock.clone());
        let script = ScriptedExecutor::new(steps);
        Self {
            stack: ApprovalLayer::new(rules, desk.clone()).layer(script.clone()),
            script,
            desk,
            clock,
            news,
        }
    }

    fn tool(&self) -> Arc<Tool> {
        TestTool::new("pay").build(self.script.clone())
    }

    fn context(&self, tool: &Arc<Tool>, arguments: Value) -> CallContext {
        call(tool.clone(), arguments, self.clock.clone())
    }

    async fn call(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.stack.invoke(cx).await
    }

    /// Makes a call whose client cannot be asked, and returns the handle of the pending approval.
    async fn pending(&self, amount: u32) -> Arc<str> {
        let mut cx = self.context(&self.tool(), json!({ "amount": amount }));
        handle(&self.call(&mut cx).await)
    }

    async fn decide(&self, handle: &str, verdict: ApprovalVerdict) {
        self.desk
            .decide(handle, verdict, "operator")
            .await
            .expect("can be decided");
    }
}

fn handle(result: &Result<Outcome, ToolError>) -> Arc<str> {
    match result {
        Ok(Outcome::Pending(pending)) => pending.handle.clone(),
        other => panic!("expected to wait, got {other:?}"),
    }
}

fn kind(result: Result<Outcome, ToolError>) -> Option<ErrorKind> {
    match result {
        Ok(Outcome::Reply(_)) => None,
        Ok(other) => panic!("expected an end, got {other:?}"),
        Err(error) => Some(error.kind()),
    }
}

fn with_handle(mut cx: CallContext, handle: &str) -> CallContext {
    let meta =
        json!({ApprovalLayer::META_KEY: handle, "dev.toolplane/turn": "t", "other": 1, "traceparent": "00"});
    cx.extras.meta = Some(RawJson::from(meta));
    cx
}

#[tokio::test]
async fn only_what_the_rules_or_settings_name_needs_approval() {
    let set = |name, rule| {
        let mut tool = TestTool::new(name);
        tool.settings.set(rule);
        tool
    };
    for (tool, needs) in [
        (set("read", ApprovalRule::Never), false),
        (set("read", ApprovalRule::Required), true),
        // A tool's own settings do not exempt it from the policy's rules.
        (set("pay", ApprovalRule::Never), true),
        (set("payments", ApprovalRule::Never), true),
    ] {
        let bench = Bench::new();
        let name = tool.descriptor.name.clone();
        let mut cx = bench.context(&tool.build(bench.script.clone()), json!({}));
        let result = bench.call(&mut cx).await;
        assert_eq!(matches!(result, Ok(Outcome::Pending(_))), needs, "{name}");
        assert_eq!(bench.script.n_calls(), usize::from(!needs), "{name}");
    }
}

/// A tool that goes on to work has not used up its approval: the same call waits for the same work.
#[tokio::test]
async fn an_approval_lasts_until_the_work_has_ended() {
    let at_work = PendingCall::new("operation-1", "the result").with_retry_after(MINUTE);
    let steps = [
        ScriptStep::Outcome(Outcome::Pending(Box::new(at_work))),
        ScriptStep::Echo,
    ];
    let bench = Bench::with(rules(|_| {}), Arc::new(MemoryApprovals::default()), steps);
    let asked = bench.pending(5).await;
    bench.decide(&asked, ApprovalVerdict::Approve).await;
    assert_eq!(&*bench.pending(5).await, "operation-1");
    let mut again = bench.context(&bench.tool(), json!({"amount": 5}));
    assert_eq!(kind(bench.call(&mut again).await), None);
    assert_ne!(bench.pending(5).await, asked, "now it is used up");
    assert_eq!(bench.script.n_calls(), 2);
}

#[tokio::test]
async fn what_is_approved_is_called_once() {
    let bench = Bench::new();
    let handle = bench.pending(5).await;
    assert_eq!(bench.pending(5).await, handle, "the same call does not ask twice");
    assert_ne!(bench.pending(6).await, handle);
    bench.decide(&handle, ApprovalVerdict::Approve).await;
    let mut cx = with_handle(bench.context(&bench.tool(), json!({"amount": 5})), &handle);
    cx.extras.extra_params = Some(RawJson::from(json!({"limit": "none"})));
    assert_eq!(kind(bench.call(&mut cx).await), None);
    let meta = cx.extras.meta.unwrap();
    let left = r#"{"dev.toolplane/turn":"t","traceparent":"00"}"#;
    assert_eq!(
        meta.as_str(),
        left,
        "nobody was shown the rest, and the handle is spent"
    );
    assert_eq!(cx.extras.extra_params, None, "nobody approved that");
    let mut again = with_handle(bench.context(&bench.tool(), json!({"amount": 5})), &handle);
    assert_eq!(kind(bench.call(&mut again).await), Some(ErrorKind::Denied));
    assert_eq!(bench.script.n_calls(), 1);
    assert_eq!(
        *bench.news.0.lock().unwrap(),
        ["pending pay", "pending pay", "approved pay"]
    );
}

#[tokio::test]
async fn who_repeats_the_call_unchanged_needs_no_handle() {
    let bench = Bench::new();
    let handle = bench.pending(5).await;
    bench.decide(&handle, ApprovalVerdict::Approve).await;
    // Another spelling of the same arguments.
    let mut cx = bench.context(&bench.tool(), json!({}));
    cx.arguments = Arc::new(tool_core::Arguments::parse(r#"{ "amount" : 5.0 }"#).unwrap());
    assert_eq!(kind(bench.call(&mut cx).await), None);
    assert_ne!(bench.pending(5).await, handle, "the next one is asked for anew");
}

#[tokio::test]
async fn of_a_thousand_that_come_with_it_one_passes() {
    let bench = Arc::new(Bench::new());
    let handle = bench.pending(5).await;
    bench.decide(&handle, ApprovalVerdict::Approve).await;
    let n_refused = Arc::new(AtomicUsize::new(0));
    let calls: Vec<_> = (0..1000)
        .map(|_| {
            let (bench, handle, n_refused) = (bench.clone(), handle.clone(), n_refused.clone());
            tokio::spawn(async move {
                let mut cx = with_handle(bench.context(&bench.tool(), json!({"amount": 5})), &handle);
                if kind(bench.call(&mut cx).await) == Some(ErrorKind::Denied) {
                    n_refused.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(
        (bench.script.n_calls(), n_refused.load(Ordering::SeqCst)),
        (1, 999)
    );
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_good_for_the_very_call_that_it_was_given_for() {
    type Change = fn(&Bench, &mut CallContext);
    let cases: [(&str, Change, ErrorKind); 6] = [
        (
            "principal",
            |_, cx| cx.origin.caller = Arc::new(Caller::new("eve")),
            ErrorKind::Denied,
        ),
        (
            "tenant",
            |_, cx| {
                cx.origin.caller = Arc::new({
                    let mut new = Caller::local();
                    new.tenant = "other".into();
                    new
                });
            },
            ErrorKind::Denied,
        ),
        (
            "arguments",
            |_, cx| cx.arguments = Arc::new(tool_core::Arguments::parse(r#"{"amount":50}"#).unwrap()),
            ErrorKind::Denied,
        ),
        (
            "tool",
            |bench, cx| {
                let other = TestTool::new("pay_all").build(bench.script.clone());
                cx.target = tool_core::Target::Tool(other);
            },
            ErrorKind::Denied,
        ),
        (
            "definition",
            |bench, cx| {
                let changed = TestTool::new("pay").input(json!({"type": "object", "title": "x"}));
                cx.target = tool_core::Target::Tool(changed.build(bench.script.clone()));
            },
            ErrorKind::ToolChanged,
        ),
        (
            "what runs it",
            |bench, cx| {
                let mut changed = TestTool::new("pay");
                changed.descriptor.executor.config = json!({"url": "https://elsewhere.example"});
                cx.target = tool_core::Target::Tool(changed.build(bench.script.clone()));
            },
            ErrorKind::ToolChanged,
        ),
    ];
    for (what, change, expected) in cases {
        let bench = Bench::new();
        let handle = bench.pending(5).await;
        bench.decide(&handle, ApprovalVerdict::Approve).await;
        let mut cx = with_handle(bench.context(&bench.tool(), json!({"amount": 5})), &handle);
        change(&bench, &mut cx);
        assert_eq!(kind(bench.call(&mut cx).await), Some(expected), "{what}");
        // Without the handle, this call is not approved.
        let mut cx = bench.context(&bench.tool(), json!({"amount": 5}));
        change(&bench, &mut cx);
        assert!(
            matches!(bench.call(&mut cx).await, Ok(Outcome::Pending(_))),
            "{what}"
        );
        assert_eq!(bench.script.n_calls(), 0, "{what}");
    }
}

#[tokio::test]
async fn an_approval_from_before_the_policy_changed_is_good_for_nothing() {
    let store = Arc::new(MemoryApprovals::default());
    let before = Bench::with(rules(|_| {}), store.clone(), [ScriptStep::Echo]);
    let handle = before.pending(5).await;
    before.decide(&handle, ApprovalVerdict::Approve).await;
    let mut changed = rules(|_| {});
    changed.blocklist = vec![Pattern::new("other")];
    let after = Bench::with(changed, store, [ScriptStep::Echo]);
    let mut cx = with_handle(after.context(&after.tool(), json!({"amount": 5})), &handle);
    let error = after.call(&mut cx).await.expect_err("it is refused");
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("before the policy changed"), "{error}");
    assert_ne!(after.pending(5).await, handle);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_decides_expires() {
    let bench = Bench::new();
    let handle = bench.pending(5).await;
    advance(10 * MINUTE - Duration::from_secs(1)).await;
    assert_eq!(bench.desk.list().await.unwrap().len(), 1);
    bench.decide(&handle, ApprovalVerdict::Approve).await;
    advance(Duration::from_secs(1)).await;
    assert!(bench.desk.list().await.unwrap().is_empty());
    let late = bench
        .desk
        .decide(&handle, ApprovalVerdict::Approve, "operator")
        .await;
    assert!(matches!(late, Err(DecideError::Unknown { .. })), "{late:?}");
    let mut cx = with_handle(bench.context(&bench.tool(), json!({"amount": 5})), &handle);
    assert_eq!(kind(bench.call(&mut cx).await), Some(ErrorKind::Denied));
    assert_ne!(bench.pending(5).await, handle);
}

#[tokio::test]
async fn what_is_denied_stays_denied_and_says_why() {
    let bench = Bench::new();
    let handle = bench.pending(5).await;
    let reason = Some("too much".to_owned());
    bench.decide(&handle, ApprovalVerdict::Deny { reason }).await;
    let again = bench
        .desk
        .decide(&handle, ApprovalVerdict::Approve, "operator")
        .await;
    assert!(
        matches!(again, Err(DecideError::Decided { state: "denied", .. })),
        "{again:?}"
    );
    for cx in [
        bench.context(&bench.tool(), json!({"amount": 5})),
        with_handle(bench.context(&bench.tool(), json!({"amount": 5})), &handle),
    ] {
        let mut cx = cx;
        let error = bench.call(&mut cx).await.expect_err("it is denied");
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert_eq!(error.message(), "`operator` denied the call: too much");
    }
    assert_eq!(bench.script.n_calls(), 0);
}

#[tokio::test]
async fn whoever_asks_must_not_decide_where_another_must() {
    let bench = Bench::with(
        rules(|approval| approval.separate_approver = true),
        Arc::new(MemoryApprovals::default()),
        [ScriptStep::Echo],
    );
    let client = Arc::new(Client::that_says(
        r#"{"action":"accept","content":{"approve":true}}"#,
    ));
    let mut cx = client.context(&bench, 5);
    let handle = handle(&bench.call(&mut cx).await);
    assert_eq!(client.n_asked(), 0, "its client is not asked");
    let own = bench
        .desk
        .decide(&handle, ApprovalVerdict::Approve, "local")
        .await;
    assert!(matches!(own, Err(DecideError::OwnCall { .. })), "{own:?}");
    // An answer to a question that was not asked approves nothing either.
    let mut cx = bench.context(&bench.tool(), json!({"amount": 5}));
    cx.extras.resume = Some(Arc::new(
        Resume::new(RawJson::from(
            json!({"approval": {"action": "accept", "content": {"approve": true}}}),
        ))
        .with_state(Some(RawJson::from(
            json!({ApprovalLayer::META_KEY: {"handle": &*handle}}),
        ))),
    ));
    assert!(matches!(bench.call(&mut cx).await, Ok(Outcome::Pending(_))));
    bench.decide(&handle, ApprovalVerdict::Approve).await;
    assert_eq!(kind(bench.call(&mut client.context(&bench, 5)).await), None);
}

/// A client that gives this answer to every question.
struct Client {
    answer: Result<RawJson, AskError>,
    capabilities: &'static str,
    takes_rounds: bool,
    asked: Mutex<Vec<Question>>,
}

impl Client {
    fn that_says(answer: &str) -> Self {
        Self {
            answer: Ok(RawJson::parse(answer.to_owned()).expect(JSON)),
            capabilities: r#"{"elicitation":{}}"#,
            takes_rounds: false,
            asked: Mutex::default(),
        }
    }

    fn n_asked(&self) -> usize {
        self.asked.lock().expect(SOUND).len()
    }

    /// Makes a context for a call of this client.
    fn context(self: &Arc<Self>, bench: &Bench, amount: u32) -> CallContext {
        let mut cx = bench.context(&bench.tool(), json!({ "amount": amount }));
        cx.origin.ask = Some(Asker::new(self.clone(), bench.clock.clone()));
        cx
    }
}

impl Ask for Client {
    fn client(&self) -> ClientKey {
        ClientKey::Session("1".into())
    }

    fn capabilities(&self) -> RawJson {
        RawJson::parse(self.capabilities).expect(JSON)
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        self.asked.lock().expect(SOUND).push(question);
        Box::pin(async { self.answer.clone() })
    }

    fn takes_rounds(&self) -> bool {
        self.takes_rounds
    }

    fn log_level(&self) -> Option<Arc<str>> {
        None
    }

    fn log(&self, _: &RawJson) {}
}

#[tokio::test]
async fn the_person_at_a_client_decides_by_a_form() {
    let accepted = r#"{"action":"accept","content":{"approve":true}}"#;
    for (answer, expected) in [
        (accepted, None),
        (
            r#"{"action":"accept","content":{"approve":false}}"#,
            Some(ErrorKind::Denied),
        ),
        (
            r#"{"action":"accept","content":{"approve":"true"}}"#,
            Some(ErrorKind::Denied),
        ),
        (r#"{"action":"accept","content":{}}"#, Some(ErrorKind::Denied)),
        (r#"{"action":"accept"}"#, Some(ErrorKind::Denied)),
        (r#"{"action":"decline"}"#, Some(ErrorKind::Denied)),
        (r#"{"action":"cancel"}"#, Some(ErrorKind::Denied)),
        (r#"{"content":{"approve":true}}"#, Some(ErrorKind::Denied)),
        ("null", Some(ErrorKind::Denied)),
    ] {
        let bench = Bench::new();
        let client = Arc::new(Client::that_says(answer));
        for n_before in 0..2 {
            assert_eq!(
                kind(bench.call(&mut client.context(&bench, 5)).await),
                expected,
                "{answer}"
            );
            assert_eq!(
                client.n_asked(),
                n_before + 1,
                "each call is a question of its own"
            );
        }
        assert_eq!(
            bench.script.n_calls(),
            if expected.is_none() { 2 } else { 0 },
            "{answer}"
        );
        assert!(
            bench.desk.list().await.unwrap().is_empty(),
            "nothing is left over: {answer}"
        );
        let decided = if expected.is_none() {
            "approved pay"
        } else {
            "denied pay"
        };
        let news = bench.news.0.lock().unwrap();
        assert_eq!(
            news.iter().filter(|told| *told == decided).count(),
            2,
            "{answer}: {news:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_says_what_is_to_be_approved() {
    let bench = Bench::new();
    let client = Arc::new(Client::that_says(r#"{"action":"decline"}"#));
    let mut cx = client.context(&bench, 5);
    cx.arguments = Arc::new(tool_core::Arguments::parse("{\"to\":\"ann\u{202e}\",\"amount\":1e2}").unwrap());
    cx.origin.caller = Arc::new(Caller::new("bob\n\nArguments: none"));
    let _ = bench.call(&mut cx).await;
    let asked = client.asked.lock().unwrap();
    assert_eq!(asked[0].method, "elicitation/create");
    let params = asked[0].params.as_ref().unwrap();
    assert_eq!(
        params.get("message").unwrap().string().unwrap(),
        "Approve this call? It needs approval because of the policy rule `pay*`.\n\n\
         Tool: pay\nAsked by: bob\\u000a\\u000aArguments: none\nNote: may change something\nArguments:\n\n    \
         {\n      \"to\": \"ann\\u202e\",\n      \"amount\": 1e2\n    }\n\nIt can be approved for 10 min."
    );
    let schema = params.get("requestedSchema").unwrap();
    assert_eq!(schema.get("required").unwrap().as_str(), r#"["approve"]"#);
}

#[tokio::test]
async fn who_cannot_be_asked_waits_for_the_desk() {
    let long = "x".repeat(5000);
    for (capabilities, answer, arguments) in [
        ("{}", Ok(()), "{}".to_owned()),
        (r#"{"elicitation":{"url":{}}}"#, Ok(()), "{}".to_owned()),
        // Arguments too large for a question are not approved through one.
        (
            r#"{"elicitation":{"form":{}}}"#,
            Ok(()),
            format!(r#"{{"a":"{long}"}}"#),
        ),
        (
            r#"{"elicitation":{}}"#,
            Err(AskError::Unanswered),
            "{}".to_owned(),
        ),
        (
            r#"{"elicitation":{}}"#,
            Err(AskError::Refused(RawJson::object())),
            "{}".to_owned(),
        ),
    ] {
        let bench = Bench::new();
        let client = Arc::new(Client {
            answer: answer
                .map(|()| RawJson::parse(r#"{"action":"accept","content":{"approve":true}}"#).unwrap()),
            capabilities,
            ..Client::that_says("null")
        });
        let context = || {
            let mut cx = client.context(&bench, 5);
            cx.arguments = Arc::new(tool_core::Arguments::parse(arguments.clone()).unwrap());
            cx
        };
        let handle = handle(&bench.call(&mut context()).await);
        bench.decide(&handle, ApprovalVerdict::Approve).await;
        assert_eq!(kind(bench.call(&mut context()).await), None, "{capabilities}");
    }
}

/// A tool that asks its caller for input twice and then answers.
struct Rounds(AtomicUsize);

impl Invoke for Rounds {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let n = self.0.fetch_add(1, Ordering::SeqCst);
        let brought = cx
            .extras
            .resume
            .as_ref()
            .map(|resume| resume.state.clone().expect("a state").to_string());
        assert_eq!(
            brought,
            (n > 0).then(|| format!(r#"{{"n":{n}}}"#)),
            "its own state, and nothing else"
        );
        if n == 2 {
            return Ok(tool_core::Reply::value(RawJson::from(true)).into());
        }
        Ok(Outcome::NeedsInput(Box::new(
            InputRequest::new(RawJson::from(json!({"q": {"method": "elicitation/create"}})))
                .with_state(Some(RawJson::from(json!({ "n": n + 1 })))),
        )))
    }
}

fn needed(result: Result<Outcome, ToolError>) -> InputRequest {
    match result {
        Ok(Outcome::NeedsInput(input)) => *input,
        other => panic!("expected a question, got {other:?}"),
    }
}

#[tokio::test]
async fn a_client_that_takes_rounds_is_asked_once_for_all_of_them() {
    let bench = Bench::new();
    let client = Arc::new(Client {
        takes_rounds: true,
        ..Client::that_says("null")
    });
    let tool = Rounds(AtomicUsize::new(0));
    let stack = ApprovalLayer::new(rules(|_| {}), bench.desk.clone()).layer(tool);
    let round = |responses: Value, state: &Option<RawJson>| {
        let mut cx = client.context(&bench, 5);
        cx.extras.resume = Some(Arc::new(
            Resume::new(RawJson::from(responses)).with_state(state.clone()),
        ));
        cx
    };
    let asked = needed(stack.invoke(&mut client.context(&bench, 5)).await);
    assert!(asked.requests.get("approval").is_some(), "{asked:?}");
    // A response to another question is no answer.
    let asked = needed(stack.invoke(&mut round(json!({"q": {}}), &asked.state)).await);
    let yes = json!({"approval": {"action": "accept", "content": {"approve": true}}});
    let first = needed(stack.invoke(&mut round(yes.clone(), &asked.state)).await);
    assert!(
        first.requests.get("q").is_some(),
        "the tool's own question: {first:?}"
    );
    // The same answer again, and the same round again: both are used up.
    let again = stack.invoke(&mut round(yes, &asked.state)).await;
    assert_eq!(kind(again), Some(ErrorKind::Denied));
    let second = needed(stack.invoke(&mut round(json!({"q": {}}), &first.state)).await);
    let again = stack.invoke(&mut round(json!({"q": {}}), &first.state)).await;
    assert_eq!(kind(again), Some(ErrorKind::Denied));
    let last = stack.invoke(&mut round(json!({"q": {}}), &second.state)).await;
    assert_eq!(kind(last), None);
    assert_eq!(client.n_asked(), 0, "nobody waits in the middle of a call");
}

#[tokio::test]
async fn where_the_rules_ask_for_nothing_any_more_a_tool_has_its_own_round() {
    let bench = Bench::new();
    let client = Arc::new(Client {
        takes_rounds: true,
        ..Client::that_says("null")
    });
    let round = |answer: Value, state: &Option<RawJson>| {
        let mut cx = client.context(&bench, 5);
        cx.extras.resume = Some(Arc::new(
            Resume::new(RawJson::from(json!({ "approval": answer }))).with_state(state.clone()),
        ));
        cx
    };
    let yes = json!({"action": "accept", "content": {"approve": true}});
    // The rules change while the tool's own question is open.
    let shared = SharedRules::new(rules(|_| {}));
    let stack = ApprovalLayer::new(shared.clone(), bench.desk.clone()).layer(Rounds(AtomicUsize::new(0)));
    let asked = needed(stack.invoke(&mut client.context(&bench, 5)).await);
    let first = needed(stack.invoke(&mut round(yes.clone(), &asked.state)).await);
    shared.store(&rules(|approval| approval.required.clear()));
    let second = needed(stack.invoke(&mut round(json!({}), &first.state)).await);
    assert_eq!(second.state.unwrap().as_str(), r#"{"n":2}"#);
    // The rules change while our question is open: a user who declines still prevents the call.
    for (answer, refused) in [
        (yes, None),
        (json!({"action": "decline"}), Some(ErrorKind::Denied)),
    ] {
        let shared = SharedRules::new(rules(|_| {}));
        let stack = ApprovalLayer::new(shared.clone(), bench.desk.clone()).layer(bench.script.clone());
        let asked = needed(stack.invoke(&mut client.context(&bench, 5)).await);
        shared.store(&rules(|approval| approval.required.clear()));
        let mut cx = round(answer, &asked.state);
        assert_eq!(kind(stack.invoke(&mut cx).await), refused);
        assert!(refused.is_some() || cx.extras.resume.is_none(), "nothing of ours");
    }
}

/// A tool that runs for this long, and then asks for input.
struct AsksAfter(Duration);

impl Invoke for AsksAfter {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if cx.extras.resume.is_some() {
            return Ok(tool_core::Reply::value(RawJson::from(true)).into());
        }
        tokio::time::sleep(self.0).await;
        Ok(Outcome::NeedsInput(Box::new(
            InputRequest::new(RawJson::object()),
        )))
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_kept_as_long_as_its_call_runs() {
    let bench = Bench::new();
    let stack = ApprovalLayer::new(rules(|_| {}), bench.desk.clone()).layer(AsksAfter(MINUTE / 2));
    let handle = bench.pending(5).await;
    bench.decide(&handle, ApprovalVerdict::Approve).await;
    advance(10 * MINUTE - Duration::from_secs(1)).await;
    let mut cx = bench.context(&bench.tool(), json!({"amount": 5}));
    let others = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        bench.pending(7).await
    };
    let (asked, _) = tokio::join!(stack.invoke(&mut cx), others);
    let mut cx = bench.context(&bench.tool(), json!({"amount": 5}));
    cx.extras.resume = Some(Arc::new(
        Resume::new(RawJson::object()).with_state(needed(asked).state),
    ));
    assert_eq!(kind(stack.invoke(&mut cx).await), None);
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_is_given_back_is_none_for_longer() {
    let fails = ScriptStep::Fail(ToolError::new(ErrorKind::RateLimited, "it failed"));
    let bench = Bench::with(rules(|_| {}), Arc::new(MemoryApprovals::default()), [fails]);
    let handle = bench.pending(5).await;
    bench.decide(&handle, ApprovalVerdict::Approve).await;
    advance(10 * MINUTE - Duration::from_secs(1)).await;
    let mut cx = bench.context(&bench.tool(), json!({"amount": 5}));
    assert_eq!(kind(bench.call(&mut cx).await), Some(ErrorKind::RateLimited));
    advance(Duration::from_secs(1)).await;
    assert_ne!(bench.pending(5).await, handle);
}

#[tokio::test]
async fn an_approval_is_given_back_only_when_nothing_was_begun() {
    let error = |kind| ToolError::new(kind, "it failed");
    for (step, is_back) in [
        (ScriptStep::Fail(error(ErrorKind::RateLimited)), true),
        (ScriptStep::FailSent(error(ErrorKind::Timeout)), false),
    ] {
        let bench = Bench::with(
            rules(|_| {}),
            Arc::new(MemoryApprovals::default()),
            [step, ScriptStep::Echo],
        );
        let handle = bench.pending(5).await;
        bench.decide(&handle, ApprovalVerdict::Approve).await;
        let context = || with_handle(bench.context(&bench.tool(), json!({"amount": 5})), &handle);
        assert!(bench.call(&mut context()).await.is_err());
        let again = kind(bench.call(&mut context()).await);
        assert_eq!(again, (!is_back).then_some(ErrorKind::Denied));
    }
}

#[tokio::test]
async fn an_approval_of_a_call_that_was_dropped_is_gone() {
    let bench = Bench::with(
        rules(|_| {}),
        Arc::new(MemoryApprovals::default()),
        [ScriptStep::Hang(true)],
    );
    let handle = bench.pending(5).await;
    bench.decide(&handle, ApprovalVerdict::Approve).await;
    let mut cx = bench.context(&bench.tool(), json!({"amount": 5}));
    let dropped = tokio::time::timeout(Duration::from_millis(1), bench.call(&mut cx)).await;
    assert!(dropped.is_err(), "it hangs");
    let mut cx = with_handle(bench.context(&bench.tool(), json!({"amount": 5})), &handle);
    assert_eq!(kind(bench.call(&mut cx).await), Some(ErrorKind::Denied));
    assert_ne!(bench.pending(5).await, handle);
}

/// A store that always fails.
struct Broken;

impl Approvals for Broken {
    fn ask(&self, _: ApprovalRecord, _: Instant) -> BoxFuture<'_, Result<ApprovalRecord, ApprovalsError>> {
        Box::pin(async { Err(ApprovalsError::Unavailable("the disk is full".to_owned())) })
    }

    fn get<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<ApprovalRecord>, ApprovalsError>> {
        Box::pin(async { Err(ApprovalsError::Unavailable("the disk is full".to_owned())) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<ApprovalRecord>, ApprovalsError>> {
        Box::pin(async { Err(ApprovalsError::Unavailable("the disk is full".to_owned())) })
    }

    fn replace<'a>(
        &'a self,
        _: &'a ApprovalState,
        _: ApprovalRecord,
    ) -> BoxFuture<'a, Result<bool, ApprovalsError>> {
        Box::pin(async { Err(ApprovalsError::Unavailable("the disk is full".to_owned())) })
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_can_be_kept_nothing_is_approved() {
    let full = || Arc::new(MemoryApprovals::new(3, 2)) as Arc<dyn Approvals>;
    let bench = Bench::with(rules(|_| {}), full(), [ScriptStep::Echo]);
    let call = |principal: &'static str, amount: u32| {
        let mut cx = bench.context(&bench.tool(), json!({ "amount": amount }));
        cx.origin.caller = Arc::new(Caller::new(principal));
        cx
    };
    for (principal, amount, is_kept) in [
        ("ann", 1, true),
        ("ann", 2, true),
        ("ann", 3, false),
        ("bob", 1, true),
        ("eve", 1, false),
        // An approval that is stored already needs no room.
        ("ann", 2, true),
    ] {
        let result = bench.call(&mut call(principal, amount)).await;
        match result {
            Ok(Outcome::Pending(_)) => assert!(is_kept, "{principal} {amount}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Overloaded);
                assert!(!is_kept, "{principal} {amount}: {error}");
            }
            other => panic!("{other:?}"),
        }
    }
    advance(10 * MINUTE).await;
    assert!(
        matches!(bench.call(&mut call("eve", 1)).await, Ok(Outcome::Pending(_))),
        "room again"
    );

    let bench = Bench::with(rules(|_| {}), Arc::new(Broken), [ScriptStep::Echo]);
    for mut cx in [
        bench.context(&bench.tool(), json!({})),
        with_handle(bench.context(&bench.tool(), json!({})), "h"),
    ] {
        assert_eq!(kind(bench.call(&mut cx).await), Some(ErrorKind::Unavailable));
    }
    assert_eq!(bench.script.n_calls(), 0);

    let bench = Bench::new();
    let large = json!({ "text": "x".repeat(70_000) });
    assert_eq!(
        kind(bench.call(&mut bench.context(&bench.tool(), large)).await),
        Some(ErrorKind::Denied),
        "nobody can look at it"
    );
}

#[tokio::test]
async fn a_dry_run_asks_nobody_and_says_that_it_would() {
    let bench = Bench::new();
    let stack = ApprovalLayer::new(rules(|_| {}), bench.desk.clone()).layer(bench.script.clone());
    let mut cx = bench.context(&bench.tool(), json!({}));
    cx.mode = Mode::DryRun;
    cx.record_decisions();
    assert_eq!(kind(stack.invoke(&mut cx).await), None);
    assert_eq!(
        cx.decisions()[0].decision,
        "would ask for approval, because of the policy rule `pay*`"
    );
    assert!(bench.desk.list().await.unwrap().is_empty());
}
