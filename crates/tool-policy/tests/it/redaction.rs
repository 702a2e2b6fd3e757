//! Redaction: secrets in what a tool returns.

use std::sync::{Arc, Mutex};

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{
    Ask, AskError, Asker, BoxFuture, CallContext, ClientKey, ErrorKind, InputRequest, Invoke, Layer, Outcome,
    Progress, Question, RedactedFields, Reference, Reply, Secret, SecretError, Secrets, Template, ToolError,
};
use tool_policy::RedactionMode;
use tool_policy::{RedactionLayer, Redactor};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};

use crate::context;

const SECRET: &str = "s3cr/t \"quoted\"+val=ue";

/// Source of secrets that has the same value for every reference.
struct One;

impl Secrets for One {
    fn get<'a>(&'a self, _: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async { Ok(Some(Secret::new(SECRET))) })
    }

    fn has(&self, _: &Reference) -> Result<bool, SecretError> {
        Ok(true)
    }
}

async fn knowing() -> Redactor {
    let redactor = Redactor::default();
    let secrets = redactor.wrap_secrets(Arc::new(One));
    let template = Template::parse("${secret:token}").expect("valid");
    template.resolve(&*secrets).await.expect("there is a value");
    redactor
}

async fn came(redactor: Redactor, redaction: RedactionMode, step: ScriptStep) -> Result<Outcome, ToolError> {
    let script = ScriptedExecutor::new([step]);
    let mut tool = TestTool::new("t");
    tool.settings.set(redaction);
    let mut cx = context(tool, &script, json!({}));
    RedactionLayer::new(redactor).layer(script).invoke(&mut cx).await
}

async fn shown(redactor: &Redactor, redaction: RedactionMode, result: &str) -> String {
    let reply = Reply::value(RawJson::parse(result.to_owned()).expect("JSON"));
    let outcome = came(redactor.clone(), redaction, ScriptStep::Reply(reply)).await;
    let Ok(Outcome::Reply(reply)) = outcome else {
        panic!("{outcome:?}")
    };
    reply.raw().to_string()
}

#[tokio::test]
async fn a_secret_is_hidden_in_every_form_and_the_rest_keeps_its_bytes() {
    let redactor = knowing().await;
    let quoted = RawJson::from(SECRET).to_string();
    let within = RawJson::from(&*format!("{{\"a\": {quoted}}}")).to_string();
    let cases = [
        (
            format!("{{\"a\" : {quoted}, \"n\":1e2}}"),
            r#"{"a" : "[redacted]", "n":1e2}"#,
        ),
        (format!("[{within}]"), r#"["{\"a\": \"[redacted]\"}"]"#),
        (
            r#""s3cr%2Ft%20%22quoted%22%2Bval%3Due""#.to_owned(),
            r#""[redacted]""#,
        ),
        (
            r#""czNjci90ICJxdW90ZWQiK3ZhbD11ZQ==""#.to_owned(),
            r#""[redacted]""#,
        ),
        (
            r#"{"other":  12345678901234567890123}"#.to_owned(),
            r#"{"other":  12345678901234567890123}"#,
        ),
    ];
    for (result, expected) in cases {
        assert_eq!(
            shown(&redactor, RedactionMode::Secrets, &result).await,
            expected,
            "{result}"
        );
        assert_eq!(shown(&redactor, RedactionMode::Off, &result).await, result);
    }
}

#[tokio::test]
async fn a_secret_of_digits_leaves_json_behind() {
    let redactor = Redactor::default();
    redactor.learn("1234567890");
    redactor.learn("98765");
    let shown = shown(
        &redactor,
        RedactionMode::Secrets,
        r#"{"a":[-1234567890.5, 98765],"1234567890":"\u0041 1234567890"}"#,
    )
    .await;
    assert_eq!(
        shown,
        r#"{"a":["[redacted]", 98765],"[redacted]":"\u0041 [redacted]"}"#
    );
    assert_eq!(
        redactor.hide_in_text("pin 98765"),
        "pin [redacted]",
        "shorter ones are hidden in messages"
    );
    redactor.learn("abc");
    assert_eq!(
        redactor.hide_in_text("abc"),
        "abc",
        "too short to be told from chance"
    );
}

#[test]
fn messages_are_without_what_nobody_named_and_our_own_words_stay() {
    let redactor = Redactor::default();
    redactor.learn(SECRET);
    let text = format!("{SECRET} and api_key=A1b2C3");
    assert_eq!(redactor.hide_in_text(&text), "[redacted] and api_key=[redacted]");
    assert_eq!(redactor.hide_known(&text), "[redacted] and api_key=A1b2C3");
}

#[tokio::test]
async fn errors_are_without_them_in_words_and_data() {
    let quoted = RawJson::from(SECRET);
    let error = ToolError::new(ErrorKind::Auth, format!("`{SECRET}` is not accepted"))
        .with_detail(RawJson::parse(format!("{{\"token\":{quoted}}}")).expect("JSON"));
    // Errors go to logs, alerts and traces, so the setting for results does not matter.
    for redaction in [
        RedactionMode::Secrets,
        RedactionMode::Credentials,
        RedactionMode::Off,
    ] {
        let hidden = came(knowing().await, redaction, ScriptStep::Fail(error.clone()))
            .await
            .expect_err("it fails");
        assert_eq!(
            (hidden.kind(), hidden.message()),
            (ErrorKind::Auth, "`[redacted]` is not accepted")
        );
        assert_eq!(
            hidden.detail().map(RawJson::as_str),
            Some(r#"{"token":"[redacted]"}"#)
        );
    }
}

#[tokio::test]
async fn credentials_of_well_known_kinds_are_hidden_where_that_is_asked_for() {
    let digits = |n: usize| "a1B2c3D4e5".repeat(8)[..n].to_owned();
    let credentials = [
        format!("AKIA{}", "ABCDEFGH12345678"),
        format!("ghp_{}", digits(36)),
        format!("github_pat_{}", digits(40)),
        format!("glpat-{}", digits(20)),
        format!("xoxb-{}", digits(20)),
        format!("sk-ant-{}", digits(40)),
        format!("AIza{}", digits(35)),
        format!("sk_live_{}", digits(24)),
        format!("npm_{}", digits(36)),
        format!("eyJ{0}.eyJ{0}.{0}", digits(20)),
        format!("Bearer {}", digits(30)),
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----".to_owned(),
    ];
    let nothing = Redactor::default();
    for credential in credentials {
        let result = json!({ "text": format!("it is {credential}, they say"), "n": 1 }).to_string();
        let value: Value =
            serde_json::from_str(&shown(&nothing, RedactionMode::Credentials, &result).await).expect("JSON");
        assert_eq!(
            value,
            json!({"text": "it is [redacted], they say", "n": 1}),
            "{credential}"
        );
        assert_eq!(shown(&nothing, RedactionMode::Secrets, &result).await, result);
    }
    for plain in [
        "AKIA",
        "task-force-of-many-people-and-more",
        "a Bearer of news",
        "eyJust.a.word",
    ] {
        let result = json!({ "text": plain }).to_string();
        assert_eq!(shown(&nothing, RedactionMode::Credentials, &result).await, result);
    }
}

#[tokio::test]
async fn what_is_known_is_bounded_and_new_values_count() {
    let redactor = Redactor::default();
    for index in 0..1_100 {
        redactor.learn(&format!("secret-{index:05}"));
    }
    assert_eq!(redactor.hide_in_text("secret-01099"), "[redacted]");
    assert_eq!(
        redactor.hide_in_text("secret-00099"),
        "secret-00099",
        "the oldest is forgotten"
    );
}

#[tokio::test]
async fn fields_that_a_tool_names_are_hidden_in_results_and_in_the_data_of_errors() {
    let came = async |redaction, step| {
        let script = ScriptedExecutor::new([step]);
        let mut tool = TestTool::new("t");
        tool.settings.set(redaction);
        tool.settings.set(RedactedFields(["ssn".to_owned()].into()));
        let mut cx = context(tool, &script, json!({}));
        RedactionLayer::new(Redactor::default())
            .layer(script)
            .invoke(&mut cx)
            .await
    };
    let raw = |text: &str| RawJson::parse(text.to_owned()).expect("JSON");
    for redaction in [RedactionMode::Off, RedactionMode::Secrets] {
        let value = ScriptStep::Reply(Reply::value(raw(r#"{"ssn": 1, "n": 1e2}"#)));
        let result = raw(r#"{"structuredContent": {"ssn": 1}, "content": []}"#);
        for (step, expected) in [
            (value, r#"{"ssn": "[redacted]", "n": 1e2}"#),
            (
                ScriptStep::Reply(Reply::result(result, false)),
                r#"{"structuredContent": {"ssn": "[redacted]"}, "content": []}"#,
            ),
        ] {
            let outcome = came(redaction, step).await;
            let Ok(Outcome::Reply(reply)) = outcome else {
                panic!("{outcome:?}")
            };
            assert_eq!(reply.raw().as_str(), expected);
        }
        let error = ToolError::new(ErrorKind::UpstreamError, "no").with_detail(raw(r#"{"ssn":1}"#));
        let error = came(redaction, ScriptStep::Fail(error))
            .await
            .expect_err("it fails");
        assert_eq!(
            error.detail().map(RawJson::as_str),
            Some(r#"{"ssn":"[redacted]"}"#)
        );
    }
}

#[tokio::test]
async fn fields_are_hidden_in_json_within_texts_and_in_the_messages_of_errors() {
    let raw = |text: &str| RawJson::parse(text.to_owned()).expect("JSON");
    for (value, expected) in [
        (
            r#"{"t":"{\"ssn\":\"1\"}"}"#,
            r#"{"t":"{\"ssn\":\"[redacted]\"}"}"#,
        ),
        (
            r#"{"SSN":1,"ssn ":2}"#,
            r#"{"SSN":"[redacted]","ssn ":"[redacted]"}"#,
        ),
    ] {
        let script = ScriptedExecutor::new([ScriptStep::Reply(Reply::value(raw(value)))]);
        let mut tool = TestTool::new("t");
        tool.settings.set(RedactedFields(["ssn".to_owned()].into()));
        let mut cx = context(tool, &script, json!({}));
        let outcome = RedactionLayer::new(Redactor::default())
            .layer(script)
            .invoke(&mut cx)
            .await;
        let Ok(Outcome::Reply(reply)) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(reply.raw().as_str(), expected);
    }
    let error = ToolError::new(ErrorKind::UpstreamError, r#"refused: {"Ssn":"078-05-1120"}"#);
    let script = ScriptedExecutor::new([ScriptStep::Fail(error)]);
    let mut tool = TestTool::new("t");
    tool.settings.set(RedactedFields(["ssn".to_owned()].into()));
    let mut cx = context(tool, &script, json!({}));
    let layer = RedactionLayer::new(Redactor::default()).layer(script);
    let error = layer.invoke(&mut cx).await.expect_err("it fails");
    assert_eq!(error.message(), r#"refused: {"Ssn":"[redacted]"}"#);
}

/// Records what a client and the receiver of progress receive.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Told {
    fn note(&self, text: &RawJson) {
        self.0
            .lock()
            .expect("no test panics with it")
            .push(text.to_string());
    }
}

impl Progress for Told {
    fn report(&self, report: RawJson) {
        self.note(&report);
    }
}

impl Ask for Told {
    fn client(&self) -> ClientKey {
        ClientKey::Session("s".into())
    }

    fn capabilities(&self) -> RawJson {
        RawJson::object()
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        self.note(&question.params.expect("the test asks something"));
        Box::pin(async { Ok(RawJson::object()) })
    }

    fn log_level(&self) -> Option<Arc<str>> {
        None
    }

    fn log(&self, message: &RawJson) {
        self.note(message);
    }
}

/// Sends the secret in every way that a running tool can.
struct Talker;

impl Invoke for Talker {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let secret = RawJson::from(json!({ "message": SECRET }));
        cx.origin
            .progress
            .as_ref()
            .expect("somebody follows")
            .report(secret.clone());
        let ask = cx.origin.ask.clone().expect("there is a client");
        ask.client().log(&secret);
        let question = Question::new("elicitation/create".to_owned(), Some(secret));
        ask.ask(question).await.expect("it is answered");
        Ok(Reply::value(RawJson::object()).into())
    }
}

#[tokio::test]
async fn what_a_tool_says_while_it_runs_is_without_them() {
    let redactor = knowing().await;
    let plain = RawJson::from(json!({ "message": SECRET })).to_string();
    let hidden = r#"{"message":"[redacted]"}"#;
    for (redaction, expected) in [
        (RedactionMode::Secrets, hidden),
        (RedactionMode::Off, plain.as_str()),
    ] {
        let told = Arc::new(Told::default());
        let mut tool = TestTool::new("t");
        tool.settings.set(redaction);
        let mut cx = context(tool, &ScriptedExecutor::new([]), json!({}));
        cx.origin.progress = Some(told.clone());
        let clock = cx.clock.clone();
        cx.origin.ask = Some(Asker::new(told.clone(), clock));
        let layer = RedactionLayer::new(redactor.clone()).layer(Talker);
        layer.invoke(&mut cx).await.expect("it is answered");
        assert_eq!(*told.0.lock().expect("no test panics with it"), [expected; 3]);
        // A layer further out uses the client itself, and knows that it was asked.
        let ask = cx.origin.ask.expect("there is a client");
        assert!(ask.has_asked());
        ask.client().log(&RawJson::from(json!({ "message": SECRET })));
        assert_eq!(told.0.lock().expect("no test panics with it")[3], plain);
    }
}

/// Asks a question while it runs, and another one in its result.
struct Questioner(Value);

impl Invoke for Questioner {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let question = Question::new(
            "sampling/createMessage".to_owned(),
            Some(RawJson::from(self.0.clone())),
        );
        let ask = cx.origin.ask.clone().expect("there is a client");
        ask.ask(question).await.expect("it is answered");
        let requests = json!({"q": {"method": "elicitation/create", "params": self.0}});
        Ok(Outcome::NeedsInput(Box::new(InputRequest::new(RawJson::from(
            requests,
        )))))
    }
}

#[tokio::test]
async fn fields_are_hidden_in_questions_and_forms_keep_their_names() {
    let schema =
        |property: Value| json!({"type": "object", "properties": {"ssn": property}, "required": ["ssn"]});
    for (params, expected) in [
        (
            json!({"message": "is {\"ssn\": \"078\"} right?"}),
            json!({"message": "is {\"ssn\": \"[redacted]\"} right?"}),
        ),
        (
            json!({"message": "m", "requestedSchema": schema(json!({"type": "string", "default": "078", "title": "{\"SSN\":7}"}))}),
            json!({"message": "m", "requestedSchema": schema(json!({"type": "string", "title": "{\"SSN\":\"[redacted]\"}"}))}),
        ),
        (
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "[{\"S_s-n\":1}]"}}], "systemPrompt": "{\"ssn\":1}"}),
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "[{\"S_s-n\":\"[redacted]\"}]"}}], "systemPrompt": "{\"ssn\":\"[redacted]\"}"}),
        ),
        (
            json!({"messages": [{"role": "user", "content": [
                {"type": "tool_use", "input": {"ssn": 1}},
                {"type": "tool_result", "structuredContent": {"a": {"ssn": 1}}, "content": [{"type": "text", "text": "{\"ssn\":1}"}]},
            ]}], "metadata": {"ssn": "078"}}),
            json!({"messages": [{"role": "user", "content": [
                {"type": "tool_use", "input": {"ssn": "[redacted]"}},
                {"type": "tool_result", "structuredContent": {"a": {"ssn": "[redacted]"}}, "content": [{"type": "text", "text": "{\"ssn\":\"[redacted]\"}"}]},
            ]}], "metadata": {"ssn": "[redacted]"}}),
        ),
        (
            json!({"message": "no data", "requestedSchema": schema(json!({}))}),
            json!({"message": "no data", "requestedSchema": schema(json!({}))}),
        ),
    ] {
        let told = Arc::new(Told::default());
        let mut tool = TestTool::new("t");
        tool.settings.set(RedactionMode::Off);
        tool.settings.set(RedactedFields(vec!["ssn".to_owned()].into()));
        let mut cx = context(tool, &ScriptedExecutor::new([]), json!({}));
        let clock = cx.clock.clone();
        cx.origin.ask = Some(Asker::new(told.clone(), clock));
        let layer = RedactionLayer::new(Redactor::default()).layer(Questioner(params.clone()));
        let outcome = layer.invoke(&mut cx).await.expect("it is answered");
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("it is JSON");
        assert_eq!(read(&told.0.lock().expect("no test panics with it")[0]), expected);
        let Outcome::NeedsInput(needed) = outcome else {
            panic!("the result asks");
        };
        assert_eq!(read(needed.requests.as_str())["q"]["params"], expected);
    }
}

#[tokio::test]
async fn credentials_in_the_url_of_a_proxy_that_is_written_out_are_hidden() {
    let redactor = Redactor::default();
    let secrets = redactor.wrap_secrets(Arc::new(One));
    secrets.learn_written("https_proxy", "http://ada:pr%40xy-pass@proxy:3128");
    secrets.learn_written("npm_config_proxy", "http://proxy:3128");
    for text in [
        "pr%40xy-pass",
        "pr@xy-pass",
        "ada:pr@xy-pass",
        "YWRhOnByQHh5LXBhc3M=",
    ] {
        assert_eq!(redactor.hide_in_text(text), "[redacted]", "{text}");
    }
    assert_eq!(redactor.hide_in_text("at proxy:3128"), "at proxy:3128");
}

#[tokio::test]
async fn what_is_written_under_the_name_of_a_secret_is_hidden() {
    let redactor = Redactor::default();
    let secrets = redactor.wrap_secrets(Arc::new(One));
    secrets.learn_written("API_TOKEN", "written-0815");
    secrets.learn_written("MODE", "another-4711");
    assert_eq!(
        redactor.hide_in_text("777269747465 written-0815 d3JpdHRlbi0wODE1 another-4711"),
        "777269747465 [redacted] [redacted] another-4711"
    );
}
