use std::sync::Arc;

use serde_json::json;
use toolplane::{
    BuildError, CallRequest, Toolplane,
    core::{Caller, ErrorKind, Outcome},
};

const CONFIGURATION: &str = r#"
tools:
  static:
    description: Always the same.
    input_schema: {type: object}
    executor: {kind: mock, result: {temperature: 72, conditions: Sunny}}
  scripted:
    description: As asked.
    input_schema: {type: object, properties: {city: {type: string}}, required: [city]}
    executor: {kind: mock, template: '{"city": {{ city }}}'}
  unusable:
    description: No such executor.
    input_schema: {type: object}
    executor: {kind: carrier-pigeon}
policy:
  blocklist: [stat*]
"#;

#[tokio::test]
async fn a_configuration_gives_tools_that_can_be_called() {
    let plane = Toolplane::from_yaml(CONFIGURATION).expect("usable");
    let request = CallRequest::new("scripted")
        .json(json!({"city": "Tromsø \"north\""}).to_string())
        .expect("valid");
    let Outcome::Reply(reply) = plane.call(request).await.expect("answers") else {
        panic!("no reply")
    };
    let value: serde_json::Value = reply.raw().to().expect("JSON");
    assert_eq!(value, json!({"city": "Tromsø \"north\""}));
}

#[tokio::test]
async fn a_tool_that_cannot_be_used_does_not_sink_the_rest() {
    let plane = Toolplane::from_yaml(CONFIGURATION).expect("usable");
    let view = plane.view(&Caller::local()).await;
    let names: Vec<_> = view.tools().iter().map(|tool| tool.name().to_string()).collect();
    assert_eq!(names, ["scripted"], "one is blocked and one cannot be run");
    let refused = plane.refused();
    assert_eq!(refused.len(), 1);
    assert!(
        refused[0].reason.contains("no executor `carrier-pigeon`"),
        "{}",
        refused[0].reason
    );
}

#[tokio::test]
async fn a_tool_that_cannot_be_used_says_why_to_the_operator_only() {
    let plane = Toolplane::from_yaml(CONFIGURATION).expect("usable");
    let error = plane
        .call(CallRequest::new("unusable"))
        .await
        .expect_err("it cannot be run");
    assert_eq!(
        (error.kind(), error.allows_retry()),
        (ErrorKind::Unavailable, false)
    );
    assert_eq!(error.message(), "the tool `unusable` is there but cannot be used");
    let cause = std::error::Error::source(&error).expect("the reason").to_string();
    assert!(cause.contains("no executor `carrier-pigeon`"), "{cause}");
}

#[tokio::test]
async fn a_configuration_that_is_not_usable_says_where() {
    let error = Toolplane::from_yaml("tools:\n  a:\n    descripton: x\n").expect_err("a typing error");
    let BuildError::Configuration(problems) = error else {
        panic!("{error}")
    };
    let text = format!("{problems:?}");
    assert!(
        text.contains("descripton") && text.contains("description"),
        "{text}"
    );
}

#[tokio::test]
async fn arguments_that_nearly_fit_are_taken_where_the_configuration_says_so() {
    const NEARLY: &str = r#"
defaults: {arguments: coerce}
tools:
  mended:
    description: As asked.
    input_schema: {type: object, properties: {n: {type: integer, maximum: 9}}}
    executor: {kind: mock, template: '{"n": {{ n }}}'}
  refused:
    description: As asked.
    arguments: strict
    input_schema: {type: object, properties: {n: {type: integer}}}
    executor: {kind: mock, template: '{"n": {{ n }}}'}
  bounded:
    description: As asked.
    arguments: sanitize
    input_schema: {type: object, properties: {n: {type: integer, maximum: 9}}}
    executor: {kind: mock, template: '{"n": {{ n }}}'}
"#;
    let plane = Toolplane::from_yaml(NEARLY).expect("usable");
    let request =
        |tool: &str, arguments: &str| CallRequest::new(tool).json(arguments.to_owned()).expect("valid");
    for (tool, arguments, expected) in [
        ("mended", r#"{"n":"5"}"#, Some(5)),
        ("mended", r#"{"n":"50"}"#, None),
        ("refused", r#"{"n":"5"}"#, None),
        ("bounded", r#"{"n":"50","m":1}"#, Some(9)),
    ] {
        match (plane.call(request(tool, arguments)).await, expected) {
            (Ok(Outcome::Reply(reply)), Some(n)) => {
                let value: serde_json::Value = reply.raw().to().expect("JSON");
                assert_eq!(value, json!({ "n": n }), "{tool} {arguments}");
                assert_eq!(reply.meta()[0].0, "dev.toolplane/arguments");
            }
            (Err(error), None) => assert_eq!(error.kind(), ErrorKind::InvalidArguments),
            (came, _) => panic!("{tool} {arguments}: {came:?}"),
        }
    }
    let explained = plane.call_explained(request("mended", r#"{"n":"5"}"#)).await;
    let said: Vec<_> = explained
        .decisions
        .iter()
        .map(|note| note.decision.as_str())
        .collect();
    assert!(said.contains(&"`/n` was coerced (string to integer)"), "{said:?}");
}

#[tokio::test]
async fn a_secret_that_was_used_is_hidden_wherever_it_comes_back() {
    use std::{collections::BTreeMap, sync::Arc};
    use toolplane::{
        core::Template,
        manifest::{LoadOptions, ProcessSecrets, Syntax, load},
    };

    const TOOLS: &str = r#"
secrets: {token: "${env:TOKEN}"}
tools:
  echo:
    description: Says it back.
    input_schema: {type: object}
    executor: {kind: mock, template: '{"said": {{ said }}}'}
  open:
    description: Says it back.
    redaction: "off"
    input_schema: {type: object}
    executor: {kind: mock, template: '{"said": {{ said }}}'}
"#;

    let loaded = load(&LoadOptions::new().text("configuration", Syntax::Yaml, TOOLS)).expect("usable");
    let redactor = toolplane::policy::Redactor::default();
    let secrets = ProcessSecrets::fixed(
        [("TOKEN", "hunter2-hunter2")],
        loaded.configuration.secrets.clone(),
    );
    // An executor does this on first use.
    let known = redactor.wrap_secrets(Arc::new(secrets));
    let template = Template::parse("${secret:token}").expect("valid");
    template.resolve(&*known).await.expect("there is a value");
    let plane = Toolplane::builder()
        .loaded(&loaded)
        .secrets(Arc::new(ProcessSecrets::fixed([("A", "b")], BTreeMap::new())))
        .redactor(redactor)
        .build()
        .expect("usable");
    for (tool, expected) in [("echo", "it is [redacted]"), ("open", "it is hunter2-hunter2")] {
        let request = CallRequest::new(tool)
            .json(json!({"said": "it is hunter2-hunter2"}).to_string())
            .expect("valid");
        let Ok(Outcome::Reply(reply)) = plane.call(request).await else {
            panic!("no reply")
        };
        assert_eq!(
            reply.raw().to::<serde_json::Value>().expect("JSON"),
            json!({ "said": expected })
        );
    }
}

#[tokio::test]
async fn what_a_pattern_of_tools_requires_holds_for_lists_and_calls() {
    let plane = Toolplane::from_yaml(
        r#"
tools:
  files_read: {description: Reads., executor: {kind: mock, result: text}}
  files_delete: {description: Deletes., executor: {kind: mock, result: gone}, required_permissions: [files]}
policy:
  permissions: {local: [files, files.write], guest: [files]}
  required_permissions: {"files_del*": [files.write], "other*": [nothing.has.this]}
"#,
    )
    .expect("usable");
    let names = async |caller: &Caller| {
        let view = plane.view(caller).await;
        let names = view.tools().iter().map(|tool| tool.name().to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&plane.local_caller()).await, ["files_delete", "files_read"]);
    assert_eq!(names(&plane.anonymous_caller()).await, ["files_read"]);
    let guest = {
        let mut new = Caller::new("guest");
        new.permissions = ["files".into()].into();
        new
    };
    let request = || CallRequest::new("files_delete").caller(Arc::new(guest.clone()));
    let error = plane.call(request()).await.expect_err("it lacks one of the two");
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("`files.write`"), "{}", error.message());
    let request = CallRequest::new("files_delete").caller(plane.local_caller());
    assert!(plane.call(request).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn how_long_a_call_may_take_is_said_for_a_tool_or_by_default() {
    let plane = Toolplane::from_yaml(
        r#"
defaults: {call_timeout: 40s, retry: {max_attempts: 9}}
tools:
  usual: {description: As all., executor: {kind: mock, result: 1}}
  quick:
    description: Must end soon, however many attempts it has.
    call_timeout: 3s
    timeout_ms: 2000
    read_only: true
    executor: {kind: mock, result: 1, latency_ms: 60000}
  long: {description: One attempt is long., timeout_ms: 50000, executor: {kind: mock, result: 1}}
"#,
    )
    .expect("usable");
    let seconds = |name: &str| {
        let tool = plane.known_tool(name).expect("known");
        tool.settings().call_timeout.as_secs()
    };
    assert_eq!([seconds("usual"), seconds("quick"), seconds("long")], [40, 3, 50]);
    let start = tokio::time::Instant::now();
    let error = plane.call(CallRequest::new("quick")).await.expect_err("too slow");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let took = start.elapsed().as_millis();
    assert!((2_999..=3_001).contains(&took), "{took} ms");
}

#[cfg(feature = "exec-mcp")]
#[tokio::test]
async fn how_long_a_call_may_take_is_said_for_a_server() {
    let plane = Toolplane::from_yaml(
        r#"
defaults: {call_timeout: 40s}
servers:
  web: {url: "http://127.0.0.1:9/mcp", call_timeout: 3s}
tools:
  search: {description: Its server's time., executor: {kind: mcp, server: web, tool: search}}
  crawl: {description: Its own time., call_timeout: 20s, executor: {kind: mcp, server: web, tool: crawl}}
"#,
    )
    .expect("usable");
    let seconds = |name: &str| {
        let tool = plane.known_tool(name).expect("known");
        tool.settings().call_timeout.as_secs()
    };
    assert_eq!([seconds("search"), seconds("crawl")], [3, 20]);
}

#[tokio::test]
async fn fields_are_hidden_that_are_named_by_default_for_a_server_or_for_a_tool() {
    #[cfg(feature = "exec-mcp")]
    use mcp_mock::{MockServer, MockTool};

    let yaml = "
defaults: {redact: [ssn]}
tools:
  usual: {description: d, executor: {kind: mock, result: {iban: 2, ssn: 1}}}
  own: {description: d, redact: [iban], executor: {kind: mock, result: {iban: 2, ssn: 1}}}
  open: {description: d, redact: [], executor: {kind: mock, result: {iban: 2, ssn: 1}}}
"
    .to_owned();
    let expected = vec![
        ("usual", r#"{"iban":2,"ssn":"[redacted]"}"#),
        ("own", r#"{"iban":"[redacted]","ssn":1}"#),
        ("open", r#"{"iban":2,"ssn":1}"#),
    ];
    #[cfg(feature = "exec-mcp")]
    let server = {
        let text = mcp_mock::MockReply::text(r#"{"iban": 2}"#);
        let tool = MockTool::new("look").reply(text);
        MockServer::builder()
            .tool(tool)
            .build()
            .http()
            .await
            .expect("it listens")
    };
    #[cfg(feature = "exec-mcp")]
    let (yaml, expected) = (
        format!(
            "{yaml}servers: {{up: {{url: '{}', redact: [iban]}}}}\n",
            server.url()
        ),
        [expected, vec![("up__look", r#"{\"iban\": \"[redacted]\"}"#)]].concat(),
    );
    let plane = Toolplane::from_yaml(yaml).expect("usable");
    for (tool, expected) in expected {
        let outcome = plane.call(CallRequest::new(tool)).await.expect("answers");
        let Outcome::Reply(reply) = outcome else {
            panic!("no reply")
        };
        assert!(reply.raw().as_str().contains(expected), "{tool}: {reply:?}");
    }
    plane.shutdown().await;
}
