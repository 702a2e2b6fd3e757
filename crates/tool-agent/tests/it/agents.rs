//! Agents: scripted models and scripted tools.

use std::{
    collections::{HashMap, VecDeque},
    future::{Future as _, poll_fn},
    pin::pin,
    sync::Mutex,
    task::Poll,
};

use tool_agent::{
    Agent, AgentEnd, AgentError, AgentLimits, AgentTools, AgentWatch, CallOutput, Conversation,
    DefinitionOptions, Model as _, ModelCall, ModelToolChoice, ProviderFormat, RawJson, ScriptedModel,
    ToolDefinitions, ToolSpec,
    serde_json::{Value, json},
    tool_core::{BoxFuture, ErrorKind, Outcome, PendingCall, Reply, ToolError},
};

/// Tools whose results are scripted, by their names; without a script they echo. They record the turns.
#[derive(Default)]
struct Tools {
    results: Mutex<HashMap<&'static str, VecDeque<Result<Outcome, ToolError>>>>,
    turns: Mutex<Vec<Vec<String>>>,
    hangs: bool,
}

impl Tools {
    fn with(tool: &'static str, results: impl IntoIterator<Item = Result<Outcome, ToolError>>) -> Self {
        let tools = Self::default();
        let mut known = tools.results.lock().expect("nothing panics with it");
        known.insert(tool, results.into_iter().collect());
        drop(known);
        tools
    }

    fn turns(&self) -> Vec<Vec<String>> {
        self.turns.lock().expect("nothing panics with it").clone()
    }
}

impl AgentTools for Tools {
    fn call_turn<'a>(&'a self, calls: &'a [ModelCall]) -> BoxFuture<'a, Vec<Result<Outcome, ToolError>>> {
        Box::pin(async move {
            let names = calls.iter().map(|call| call.name.clone()).collect();
            self.turns.lock().expect("nothing panics with it").push(names);
            if self.hangs {
                std::future::pending::<()>().await;
            }
            let mut results = self.results.lock().expect("nothing panics with it");
            let result = calls.iter().map(|call| {
                let scripted = results.get_mut(&*call.name).and_then(VecDeque::pop_front);
                scripted.unwrap_or_else(|| Ok(Reply::value(call.arguments.clone()).into()))
            });
            result.collect()
        })
    }
}

fn definitions(format: ProviderFormat) -> ToolDefinitions {
    let any = RawJson::from(json!({"type": "object"}));
    let tools = ["weather", "pay"].map(|name| ToolSpec::new(name, "A tool.", any.clone()));
    ToolDefinitions::new(format, &tools, DefinitionOptions::default())
}

/// Runs a future that is never woken by anything else.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut cx) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits for something"),
    }
}

struct Run {
    conversation: Conversation,
    tools: Tools,
    limits: AgentLimits,
    choice: ModelToolChoice,
}

impl Run {
    fn new(format: ProviderFormat, tools: Tools) -> Self {
        let mut conversation = Conversation::new(format).with_system("Be brief.");
        conversation.user("What is it like?");
        Self {
            conversation,
            tools,
            limits: AgentLimits::default(),
            choice: ModelToolChoice::Auto,
        }
    }

    fn run(&mut self, script: &Value) -> Result<AgentEnd, AgentError> {
        let format = self.conversation.format();
        let model = ScriptedModel::from_json(format, script).expect("it can be read");
        let definitions = definitions(model.format());
        let agent = Agent::new(&model, &self.tools, &definitions)
            .with_limits(self.limits)
            .with_choice(self.choice.clone());
        block_on(agent.run(&mut self.conversation, &()))
    }
}

fn answer(end: Result<AgentEnd, AgentError>) -> String {
    match end {
        Ok(AgentEnd::Answered { text, .. }) => text,
        other => panic!("it answers: {other:?}"),
    }
}

#[test]
fn a_model_and_tools_take_turns_in_every_format() {
    for &format in ProviderFormat::ALL {
        let mut run = Run::new(format, Tools::default());
        let script = json!([
            {"text": "I look.", "calls": [
                {"tool": "weather", "arguments": {"city": "Oslo"}},
                {"tool": "weather", "arguments": {"city": "Bergen"}},
            ]},
            {"expect": ["Oslo", "Bergen"], "calls": [{"tool": "pay"}, {"tool": "wether"}]},
            {"expect": ["there is no tool of this name"], "text": "Done."},
        ]);
        assert_eq!(answer(run.run(&script)), "Done.", "{format:?}");
        assert_eq!(
            run.tools.turns(),
            [vec!["weather", "weather"], vec!["pay"]],
            "{format:?}"
        );
        assert_eq!((run.conversation.n_rounds(), run.conversation.n_calls()), (3, 3));
        // It goes on with another question.
        run.conversation.user("And tomorrow?");
        assert_eq!(answer(run.run(&json!([{"text": "The same."}]))), "The same.");
    }
}

#[test]
fn failures_of_tools_are_for_the_model() {
    let failure = Err(ToolError::new(ErrorKind::RateLimited, "too often"));
    let mut run = Run::new(ProviderFormat::OpenAiChat, Tools::with("weather", [failure]));
    let script = json!([
        {"calls": [{"tool": "weather"}]},
        {"expect": ["rate_limited: too often"], "text": "Later, then."},
    ]);
    assert_eq!(answer(run.run(&script)), "Later, then.");
}

#[test]
fn a_call_without_a_result_is_told_as_unknown() {
    struct Forgetful;

    impl AgentTools for Forgetful {
        fn call_turn<'a>(&'a self, calls: &'a [ModelCall]) -> BoxFuture<'a, Vec<Result<Outcome, ToolError>>> {
            Box::pin(async {
                calls
                    .iter()
                    .take(1)
                    .map(|_| Ok(Reply::value(RawJson::from("rain")).into()))
                    .collect()
            })
        }
    }

    for &format in ProviderFormat::ALL {
        let script = json!([
            {"calls": [{"tool": "weather"}, {"tool": "pay"}]},
            {"expect": ["rain", "outcome_unknown: the call has no result"], "text": "I cannot tell."},
        ]);
        let model = ScriptedModel::from_json(format, &script).expect("it can be read");
        let definitions = definitions(format);
        let mut conversation = Conversation::new(format);
        conversation.user("Pay.");
        let agent = Agent::new(&model, &Forgetful, &definitions);
        assert_eq!(
            answer(block_on(agent.run(&mut conversation, &()))),
            "I cannot tell."
        );
    }
}

#[test]
fn a_call_that_waits_suspends_the_conversation() {
    for &format in ProviderFormat::ALL {
        let pending = PendingCall::new("7f", "a person decides");
        let waits = Ok(Outcome::Pending(Box::new(pending)));
        let mut run = Run::new(
            format,
            Tools::with("pay", [waits, Ok(Reply::from(json!("paid")).into())]),
        );
        let end = run.run(&json!([{"calls": [
            {"tool": "weather", "arguments": {"city": "Oslo"}},
            {"tool": "pay", "arguments": {"amount": 5}},
        ]}]));
        let Ok(AgentEnd::Waiting(waiting)) = end else {
            panic!("it waits: {end:?}")
        };
        assert_eq!(
            (&*waiting[0].tool, waiting[0].handle.as_deref()),
            ("pay", Some("7f"))
        );
        // Stored, and read by another process.
        let stored = RawJson::parse(run.conversation.to_json().as_str().to_owned()).expect("JSON");
        let read = Conversation::from_json(&stored).expect("it is one");
        assert_eq!(read, run.conversation);
        assert!(read.is_waiting());
        run.conversation = read;
        let script = json!([{"expect": ["Oslo", "paid"], "text": "Paid."}]);
        assert_eq!(answer(run.run(&script)), "Paid.", "{format:?}");
        // Nothing but the call that waited was made again.
        assert_eq!(
            run.tools.turns(),
            [vec!["weather", "pay"], vec!["pay"]],
            "{format:?}"
        );
        assert_eq!(run.conversation.n_calls(), 2);
    }
}

#[test]
fn a_cancelled_call_is_not_made_again() {
    let mut run = Run::new(ProviderFormat::Anthropic, Tools::default());
    run.tools.hangs = true;
    let model = ScriptedModel::from_json(
        ProviderFormat::Anthropic,
        &json!([
            {"calls": [{"tool": "pay"}]},
            {"expect": ["whether it had its effect is not known"], "text": "I must check."},
        ]),
    );
    let model = model.expect("it can be read");
    let definitions = definitions(ProviderFormat::Anthropic);
    {
        let agent = Agent::new(&model, &run.tools, &definitions);
        let mut running = pin!(agent.run(&mut run.conversation, &()));
        block_on(poll_fn(|cx| {
            assert!(running.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        }));
    }
    run.tools.hangs = false;
    let agent = Agent::new(&model, &run.tools, &definitions);
    let end = block_on(agent.run(&mut run.conversation, &()));
    assert_eq!(answer(end), "I must check.");
    assert_eq!(run.tools.turns().len(), 1);
}

#[test]
fn limits_are_told_to_the_model() {
    let call = json!({"tool": "weather", "arguments": {"city": "Oslo"}});
    let other = |n: u32| json!({"tool": "weather", "arguments": {"n": n}});
    let mut run = Run::new(ProviderFormat::Gemini, Tools::default());
    run.limits.max_calls_per_turn = 2;
    run.limits.max_calls = 5;
    run.limits.max_identical_calls = 1;
    let script = json!([
        {"calls": [call, other(1), other(2)]},
        {"expect": ["more than 2 calls in one turn"], "calls": [call, other(3)]},
        {"expect": ["the same call was made 1 times already"], "calls": [other(4), other(5)]},
        {"calls": [other(6)]},
        {"expect": ["more than 5 calls in one conversation"], "text": "Enough."},
    ]);
    assert_eq!(answer(run.run(&script)), "Enough.");
    assert_eq!(
        run.tools.turns().iter().map(Vec::len).collect::<Vec<_>>(),
        [2, 1, 2]
    );
}

#[test]
fn the_rounds_are_bounded() {
    let mut run = Run::new(ProviderFormat::Ollama, Tools::default());
    run.limits.max_rounds = 2;
    let calls = json!({"calls": [{"tool": "pay"}]});
    let end = run.run(&json!([calls, calls, {"text": "never"}]));
    assert_eq!(end, Err(AgentError::TooManyRounds(2)));
    assert_eq!(run.tools.turns().len(), 2);
}

#[test]
fn a_model_that_must_call_a_tool_is_asked_again() {
    let mut run = Run::new(ProviderFormat::OpenAiResponses, Tools::default());
    run.choice = ModelToolChoice::Required;
    let script = json!([
        {"text": "I know it."},
        {"expect": ["Call one of the tools"], "calls": [{"tool": "weather"}]},
        {"text": "Now I know it."},
    ]);
    assert_eq!(answer(run.run(&script)), "Now I know it.");
    let mut run = Run::new(ProviderFormat::OpenAiResponses, Tools::default());
    run.choice = ModelToolChoice::Required;
    run.limits.max_rounds = 2;
    assert_eq!(
        run.run(&json!([{"text": "no"}, {"text": "no"}])),
        Err(AgentError::NoCall)
    );
}

#[test]
fn long_results_are_cut_and_say_so() {
    let long = Ok(Reply::from(json!("é".repeat(100))).into());
    let mut run = Run::new(ProviderFormat::OpenAiChat, Tools::with("weather", [long]));
    run.limits.max_result_tokens = Some(10);
    let script = json!([
        {"calls": [{"tool": "weather"}]},
        {"expect": ["[cut: 160 more bytes were left out]"], "text": "Long."},
    ]);
    assert_eq!(answer(run.run(&script)), "Long.");
    let rows = Ok(Reply::from(json!({"rows": vec![1; 50]})).into());
    let mut run = Run::new(ProviderFormat::Gemini, Tools::with("weather", [rows]));
    run.limits.max_result_tokens = Some(5);
    let script = json!([
        {"calls": [{"tool": "weather"}]},
        {"expect": ["more bytes were left out"], "text": "Long."},
    ]);
    assert_eq!(answer(run.run(&script)), "Long.");
}

/// Records what it sees.
#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl AgentWatch for Seen {
    fn says(&self, text: &str) {
        self.0
            .lock()
            .expect("nothing panics with it")
            .push(format!("says {text}"));
    }

    fn calls(&self, call: &ModelCall) {
        self.0
            .lock()
            .expect("nothing panics with it")
            .push(format!("calls {}", call.name));
    }

    fn ends(&self, call: &ModelCall, output: &CallOutput) {
        let end = if output.is_error { "failed" } else { "ended" };
        self.0
            .lock()
            .expect("nothing panics with it")
            .push(format!("{} {end}", call.name));
    }
}

#[test]
fn a_conversation_is_watched() {
    let script = json!([{"text": "Hm.", "calls": [{"tool": "pay"}, {"tool": "x"}]}, {"text": "Done."}]);
    let model = ScriptedModel::from_json(ProviderFormat::Anthropic, &script).expect("it can be read");
    let (tools, seen) = (Tools::default(), Seen::default());
    let definitions = definitions(ProviderFormat::Anthropic);
    let mut conversation = Conversation::new(ProviderFormat::Anthropic);
    conversation.user("Go.");
    let agent = Agent::new(&model, &tools, &definitions);
    answer(block_on(agent.run(&mut conversation, &seen)));
    let seen = seen.0.into_inner().expect("nothing panics with it");
    assert_eq!(
        seen,
        [
            "says Hm.",
            "calls pay",
            "calls x",
            "x failed",
            "pay ended",
            "says Done."
        ]
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    for (script, problem) in [
        (json!({}), "it is no list of turns"),
        (json!([1]), "turn 1: it is no map"),
        (json!([{}, {"txt": ""}]), "turn 2: unknown key `txt`"),
        (
            json!([{"calls": [{"name": "a"}]}]),
            "turn 1: a call has no `tool`",
        ),
    ] {
        let error = ScriptedModel::from_json(ProviderFormat::Ollama, &script).expect_err("it is wrong");
        assert!(error.message.contains(problem), "{error}");
    }
    let mut run = Run::new(ProviderFormat::Ollama, Tools::default());
    let end = run.run(&json!([{"expect": ["sunshine"], "text": "x"}]));
    let Err(AgentError::Model(error)) = end else {
        panic!("the script does not fit: {end:?}")
    };
    assert!(
        error.message.contains("turn 1 expects `sunshine` before it"),
        "{error}"
    );
    for wrong in [
        "1",
        "{}",
        r#"{"conversation":9}"#,
        r#"{"conversation":1,"format":"x"}"#,
    ] {
        assert!(Conversation::from_json(&crate::json(wrong)).is_err(), "{wrong}");
    }
    let model = ScriptedModel::from_json(ProviderFormat::Gemini, &json!([])).expect("it can be read");
    let definitions = definitions(ProviderFormat::Gemini);
    let agent = Agent::new(&model, &run.tools, &definitions);
    let end = block_on(agent.run(&mut run.conversation, &()));
    assert!(matches!(end, Err(AgentError::OtherFormat { .. })), "{end:?}");
}
