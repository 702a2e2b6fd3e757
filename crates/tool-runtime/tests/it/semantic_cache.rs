//! Semantic cache: calls that are answered with the result of a call that means the same, and all others.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::future::join_all;
use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::advance;
use tool_core::{
    BoxFuture, CacheOutcome, CallContext, Caller, EmbedError, Embedder, Invoke, Layer, Mode, Observe,
    Outcome, Reply,
};
use tool_runtime::{Cache, CacheLayer, CacheScope, CacheSettings, SemanticCacheSettings, TokioClock};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

use crate::cache::{Counted, MINUTE, SECOND};

/// Embedder that counts the word `please`: each turns the vector by 10 degrees. Other words do not change it, so that the words alone
/// tell such texts apart.
struct Angles {
    model: &'static str,
    n_embedded: AtomicUsize,
    behavior: Mutex<Behavior>,
}

#[derive(Clone, Copy, PartialEq)]
enum Behavior {
    Works,
    Fails,
    Hangs,
    ReturnsNothing,
}

impl Angles {
    fn new(model: &'static str) -> Arc<Self> {
        Arc::new(Self {
            model,
            n_embedded: AtomicUsize::new(0),
            behavior: Mutex::new(Behavior::Works),
        })
    }
}

impl Embedder for Angles {
    fn model(&self) -> &str {
        self.model
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        self.n_embedded.fetch_add(texts.len(), Ordering::Relaxed);
        let behavior = *self.behavior.lock().unwrap();
        Box::pin(async move {
            let vector = |text: &String| {
                let n_turns = text.to_lowercase().matches("please").count();
                let angle = (10.0 * n_turns as f32).to_radians();
                vec![angle.cos(), angle.sin()]
            };
            match behavior {
                Behavior::Works => Ok(texts.iter().map(vector).collect()),
                Behavior::Fails => Err(EmbedError::new("the model is gone")),
                Behavior::Hangs => pending().await,
                Behavior::ReturnsNothing => Ok(Vec::new()),
            }
        })
    }
}

/// Stack of one cache whose tool tells the number of its execution.
struct Plane {
    layer: CacheLayer,
    embedder: Arc<Angles>,
    script: ScriptedExecutor,
    stack: Cache<ScriptedExecutor>,
    clock: Arc<TokioClock>,
    tool: TestTool,
}

impl Plane {
    fn new(settings: SemanticCacheSettings) -> Self {
        let layer = CacheLayer::new(1 << 20);
        let embedder = Angles::new("angles");
        layer.set_embedder(Some(embedder.clone()));
        let script = ScriptedExecutor::new((0..50).map(|number| ScriptStep::Value(json!(number))));
        let mut tool = TestTool::new("ask");
        tool.settings.set(CacheSettings::default());
        tool.settings.set(settings);
        Self {
            stack: layer.clone().layer(script.clone()),
            layer,
            embedder,
            script,
            clock: Arc::new(TokioClock::new()),
            tool,
        }
    }

    fn call(&self, arguments: Value) -> CallContext {
        let tool = self.tool.clone().build(ScriptedExecutor::new([]));
        call(tool, arguments, self.clock.clone())
    }

    async fn run(&self, mut cx: CallContext) -> (Value, Value) {
        told(self.stack.invoke(&mut cx).await.expect("a reply"))
    }

    /// Asks a question, and returns the number of its execution with the status of the cache.
    async fn ask(&self, question: &str) -> (Value, Option<String>) {
        let (value, record) = self.run(self.call(json!({"question": question}))).await;
        (value, record["status"].as_str().map(ToOwned::to_owned))
    }

    /// Makes a call, and returns the decisions of the cache.
    async fn explained(&self, mut cx: CallContext) -> Vec<String> {
        cx.record_decisions();
        let _ = self.stack.invoke(&mut cx).await;
        cx.decisions()
            .iter()
            .map(|decision| decision.decision.clone())
            .collect()
    }
}

fn plane() -> Plane {
    Plane::new(SemanticCacheSettings::new(["question"]))
}

fn told(outcome: Outcome) -> (Value, Value) {
    let reply = outcome.into_reply().expect("a reply");
    let record = reply.meta().iter().find(|(key, _)| *key == CacheLayer::META_KEY);
    let record = record.map(|(_, value)| value.to().unwrap());
    (reply.raw().to().unwrap(), record.unwrap_or_default())
}

fn fetched(number: u32) -> (Value, Option<String>) {
    (json!(number), None)
}

fn shared(number: u32, status: &str) -> (Value, Option<String>) {
    (json!(number), Some(status.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn other_words_of_the_same_meaning_get_the_same_answer_which_tells_its_distance() {
    let plane = plane();
    let first = json!({"question": "What is the weather in Oslo?"});
    assert_eq!(
        plane.run(plane.call(first.clone())).await,
        (json!(0), Value::Null)
    );
    advance(10 * SECOND).await;
    let again = || plane.call(json!({"question": "please show me the weather in Oslo"}));
    let record = json!({"status": "semantic", "age_ms": 10_000, "distance": 0.0152});
    assert_eq!(plane.run(again()).await, (json!(0), record.clone()));
    assert_eq!(plane.run(again()).await, (json!(0), record));
    assert_eq!(
        plane.embedder.n_embedded.load(Ordering::Relaxed),
        2,
        "each text once"
    );
    // Equal calls need no meaning.
    assert_eq!(plane.run(plane.call(first)).await.1["status"], "hit");
    assert_eq!(plane.script.n_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_cosine_must_reach_the_threshold() {
    for (threshold, question, expected) in [
        (0.9, "please, please: weather in Oslo", shared(0, "semantic")),
        (0.9, "please, please, please: weather in Oslo", fetched(1)),
        (
            0.85,
            "please, please, please: weather in Oslo",
            shared(0, "semantic"),
        ),
    ] {
        let plane = Plane::new(SemanticCacheSettings::new(["question"]).with_threshold(threshold));
        plane.ask("weather in Oslo").await;
        assert_eq!(plane.ask(question).await, expected, "{threshold}, {question}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_nearest_of_several_answers_and_words_that_tell_something_else_are_another_question() {
    let plane = plane();
    for (number, question) in [
        "please, please: weather in Oslo",
        "weather in Rome",
        "weather in Oslo in May",
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(plane.ask(question).await, fetched(u32::try_from(number).unwrap()));
    }
    assert_eq!(
        plane.ask("could you tell me the weather in Oslo").await,
        shared(0, "semantic")
    );
    assert_eq!(
        plane
            .ask("weather in Oslo, please, please, please, please, please, please")
            .await,
        fetched(3)
    );
    assert_eq!(
        plane
            .ask("weather in Oslo, please, please, please, please, please")
            .await,
        shared(3, "semantic"),
        "nearer than the first"
    );
}

#[tokio::test(start_paused = true)]
async fn everything_else_must_be_equal() {
    let plane = plane();
    let arguments = json!({"question": "weather in Oslo", "days": 3, "units": {"temperature": "C"}});
    plane.run(plane.call(arguments.clone())).await;
    let other = |change: &dyn Fn(&mut Value)| {
        let mut arguments = arguments.clone();
        arguments["question"] = json!("please tell me the weather in Oslo");
        change(&mut arguments);
        plane.call(arguments)
    };
    assert_eq!(plane.run(other(&|_| ())).await.1["status"], "semantic");
    let changes: [&dyn Fn(&mut Value); 4] = [
        &|arguments| arguments["days"] = json!(4),
        &|arguments| arguments["units"]["temperature"] = json!("F"),
        &|arguments| arguments["more"] = json!(null),
        &|arguments| drop(arguments.as_object_mut().unwrap().remove("days")),
    ];
    for change in changes {
        assert_eq!(plane.run(other(change)).await.1, Value::Null);
    }
    let callers: [fn(&mut Caller); 2] = [
        |caller| caller.principal = "somebody else".into(),
        |caller| caller.tenant = "elsewhere".into(),
    ];
    for change in callers {
        let mut cx = other(&|_| ());
        change(Arc::make_mut(&mut cx.origin.caller));
        assert_eq!(plane.run(cx).await.1, Value::Null);
    }
    let tools: [fn(&mut TestTool); 4] = [
        |tool| tool.descriptor.version = Some("2".to_owned()),
        |tool| tool.descriptor.description = "Another description.".to_owned(),
        |tool| tool.descriptor.executor.config = json!({"url": "elsewhere"}),
        |tool| tool.descriptor.name = "another".into(),
    ];
    for change in tools {
        let mut tool = plane.tool.clone();
        change(&mut tool);
        let cx = call(
            tool.build(ScriptedExecutor::new([])),
            json!({"question": "please tell me the weather in Oslo", "days": 3, "units": {"temperature": "C"}}),
            plane.clock.clone(),
        );
        assert_eq!(plane.run(cx).await.1, Value::Null);
    }
}

#[tokio::test(start_paused = true)]
async fn principals_share_answers_only_where_results_are_shared_and_tenants_never() {
    let mut plane = plane();
    plane
        .tool
        .settings
        .set(CacheSettings::default().with_scope(CacheScope::Shared));
    plane.ask("weather in Oslo").await;
    let mut cx = plane.call(json!({"question": "please, weather in Oslo"}));
    Arc::make_mut(&mut cx.origin.caller).principal = "somebody else".into();
    assert_eq!(plane.run(cx).await.1["status"], "semantic");
    let mut cx = plane.call(json!({"question": "please, weather in Oslo"}));
    Arc::make_mut(&mut cx.origin.caller).tenant = "elsewhere".into();
    assert_eq!(plane.run(cx).await.1, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_old_is_not_used_and_the_new_one_is() {
    let plane = plane();
    plane.ask("weather in Oslo").await;
    advance(MINUTE).await;
    assert_eq!(plane.ask("please, weather in Oslo").await, fetched(1));
    assert_eq!(
        plane.ask("please, please, weather in Oslo").await,
        shared(1, "semantic")
    );
    assert_eq!(plane.ask("weather in Oslo").await, shared(1, "semantic"));
}

#[tokio::test(start_paused = true)]
async fn failures_and_incomplete_results_answer_nothing() {
    let plane = plane();
    let failure = json!({"content": [{"type": "text", "text": "no such town"}]});
    let failure = Reply::result(failure.into(), true);
    let script = ScriptedExecutor::new([ScriptStep::Reply(failure), ScriptStep::Value(json!("found"))]);
    let stack = plane.layer.clone().layer(script);
    let asked = |question: &str| plane.call(json!({"question": question}));
    let _ = stack.invoke(&mut asked("weather in Oslo")).await;
    let outcome = stack
        .invoke(&mut asked("please, weather in Oslo"))
        .await
        .expect("a reply");
    assert_eq!(told(outcome), (json!("found"), Value::Null));
}

#[tokio::test(start_paused = true)]
async fn an_embedder_that_does_not_work_costs_a_quarter_of_the_time_and_no_call() {
    for (behavior, reason) in [
        (
            Behavior::Fails,
            "not compared by meaning: the embedder failed: the model is gone",
        ),
        (
            Behavior::Hangs,
            "not compared by meaning: the embedder failed: it did not answer within 1s",
        ),
        (
            Behavior::ReturnsNothing,
            "not compared by meaning: the embedder failed: it returned 0 vectors for one text",
        ),
    ] {
        let plane = plane();
        *plane.embedder.behavior.lock().unwrap() = behavior;
        let mut cx = plane.call(json!({"question": "weather in Oslo"}));
        cx.deadline = Some(cx.clock.now() + 4 * SECOND);
        assert_eq!(plane.explained(cx).await[0], reason);
        assert_eq!(plane.script.n_calls(), 1);
        // It works again, and the call that was not compared is found by equal calls alone.
        *plane.embedder.behavior.lock().unwrap() = Behavior::Works;
        assert_eq!(plane.ask("please, weather in Oslo").await, fetched(1));
        assert_eq!(plane.ask("weather in Oslo").await, shared(0, "hit"));
    }
}

#[tokio::test(start_paused = true)]
async fn equal_calls_at_once_are_embedded_and_made_once() {
    let plane = plane();
    let calls = (0..100).map(|_| plane.ask("weather in Oslo"));
    let answers = join_all(calls).await;
    assert!(answers.iter().all(|(value, _)| *value == json!(0)), "{answers:?}");
    assert_eq!(plane.embedder.n_embedded.load(Ordering::Relaxed), 1);
    assert_eq!(plane.script.n_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_that_cannot_be_compared_are_answered_with_results_of_equal_calls() {
    let plane = plane();
    let long = "x".repeat(501);
    for (arguments, reason) in [
        (json!({"question": long}), "`question` has more than 500 bytes"),
        (json!({"other": 1}), "the call has none of its texts"),
        (
            json!({"question": ["weather in Oslo"]}),
            "the call has none of its texts",
        ),
    ] {
        let decisions = plane.explained(plane.call(arguments.clone())).await;
        assert_eq!(decisions[0], format!("not compared by meaning: {reason}"));
        assert_eq!(plane.run(plane.call(arguments)).await.1["status"], "hit");
    }
    assert_eq!(plane.embedder.n_embedded.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn decisions_say_how_near_the_nearest_call_was() {
    let plane = plane();
    let ask = |question: &str| plane.explained(plane.call(json!({"question": question})));
    assert_eq!(ask("weather in Oslo").await[0], "miss");
    assert_eq!(
        ask("please, weather in Rome").await[0],
        "no earlier call means the same: the nearest, at 0.015, has other words or no fresh result"
    );
    assert_eq!(
        ask("please, please, please, please, please, please, weather in Bern").await[0],
        "no earlier call means the same: the nearest is at 0.357"
    );
    assert_eq!(
        ask("please, please, weather in Oslo").await[0],
        "semantic hit: 0 s old, of a call that means the same, at the distance 0.060"
    );
}

#[tokio::test(start_paused = true)]
async fn another_model_knows_nothing_of_the_calls_before() {
    let plane = plane();
    plane.ask("weather in Oslo").await;
    plane.layer.set_embedder(Some(Angles::new("another model")));
    assert_eq!(plane.ask("please, weather in Oslo").await, fetched(1));
    plane.layer.set_embedder(None);
    assert_eq!(plane.ask("please, please, weather in Oslo").await, fetched(2));
    plane.layer.set_embedder(Some(plane.embedder.clone()));
    assert_eq!(
        plane.ask("please, please, please, weather in Oslo").await,
        shared(0, "semantic")
    );
}

#[tokio::test(start_paused = true)]
async fn all_texts_must_mean_the_same() {
    let plane = Plane::new(SemanticCacheSettings::new(["question", "place"]));
    let call = |question: &str, place: &str| plane.call(json!({"question": question, "place": place}));
    plane.run(call("the weather", "in Oslo")).await;
    let (value, record) = plane
        .run(call("please, the weather", "please, please, in Oslo"))
        .await;
    assert_eq!(
        (value, &record["distance"]),
        (json!(0), &json!(0.0603)),
        "of the text that differs most"
    );
    assert_eq!(
        plane.run(call("please, the weather", "in Rome")).await.1,
        Value::Null
    );
    assert_eq!(plane.run(call("in Oslo", "the weather")).await.1, Value::Null);
    // A text that is no text must be equal: here both calls have none.
    plane.run(plane.call(json!({"question": "the weather"}))).await;
    let without = plane.call(json!({"question": "please, the weather"}));
    assert_eq!(plane.run(without).await.1["status"], "semantic");
}

#[tokio::test(start_paused = true)]
async fn a_bypass_a_dry_run_and_a_tool_without_the_setting_compare_nothing() {
    let mut plane = plane();
    plane.ask("weather in Oslo").await;
    let mut cx = plane.call(json!({"question": "please, weather in Oslo"}));
    cx.extras.meta = Some(RawJson::from(json!({CacheLayer::META_KEY: CacheLayer::BYPASS})));
    assert_eq!(plane.run(cx).await.1, Value::Null);
    let mut cx = plane.call(json!({"question": "please, weather in Oslo"}));
    cx.mode = Mode::DryRun;
    assert_eq!(plane.run(cx).await.1, Value::Null);
    plane
        .tool
        .settings
        .set(SemanticCacheSettings::new([] as [&str; 0]));
    assert_eq!(plane.ask("please, weather in Oslo").await.1, None);
    assert_eq!(plane.embedder.n_embedded.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn each_answer_is_observed_once() {
    let (plane, counted) = (plane(), Arc::new(Counted::default()));
    for question in ["weather in Oslo", "please, weather in Oslo", "weather in Rome"] {
        let mut cx = plane.call(json!({"question": question}));
        cx.observers = [counted.clone() as Arc<dyn Observe>].into_iter().collect();
        plane.run(cx).await;
    }
    assert_eq!(
        *counted.0.lock().unwrap(),
        [CacheOutcome::Miss, CacheOutcome::Semantic, CacheOutcome::Miss]
    );
}
