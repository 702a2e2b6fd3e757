//! Use of the crate alone: a tool, a call and an observer without any other crate.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use tool_core::{
    AnyJson, Arguments, CallContext, CheckError, CheckJson, Clock, Descriptor, DispatchState, DynInvoke,
    ErrorKind, Event, ExecutorSpec, InputRequest, Invoke, Layers, NoSecrets, Observe, Observers, Outcome,
    PendingCall, RawJson, Reference, Reply, Secrets, Setting, Settings, SystemClock, TargetBackend, Template,
    Tool, ToolBuilder, ToolError, UpstreamState, invoke_fn, observe_fn,
    serde_json::{Value, json},
};

/// Runs a future that never waits.
fn run<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

fn raw(value: Value) -> RawJson {
    RawJson::from(value)
}

#[test]
fn a_closure_runs_as_a_tool() {
    let tool = Tool::builder("add").run(invoke_fn(|arguments: Arc<Arguments>| async move {
        let terms: Vec<i64> = arguments.to::<Terms>()?.terms;
        Ok::<_, ToolError>(json!(terms.iter().sum::<i64>()))
    }));
    let arguments = Arguments::from_serialize(&Terms { terms: vec![2, 40] }).unwrap();
    let mut cx = CallContext::local(&tool, arguments);
    let reply = run(TargetBackend.invoke(&mut cx)).unwrap().into_reply().unwrap();
    assert_eq!(reply.json::<i64>().unwrap(), 42);
    assert_eq!(cx.dispatch().state(), DispatchState::Answered);
    assert_eq!(&*cx.origin.caller.principal, "local");

    let mut wrong = CallContext::local(&tool, Arguments::none());
    let error = run(TargetBackend.invoke(&mut wrong)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert!(error.message().contains("missing field `terms`"), "{error}");
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Terms {
    terms: Vec<i64>,
}

#[test]
fn a_dropped_closure_may_have_run() {
    let tool = Tool::builder("hang").run(invoke_fn(|_| async {
        std::future::pending::<()>().await;
        Ok::<_, ToolError>(json!(null))
    }));
    let mut cx = CallContext::local(&tool, Arguments::none());
    {
        let mut future = pin!(TargetBackend.invoke(&mut cx));
        assert!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }
    assert_eq!(cx.dispatch().state(), DispatchState::Sent);
    assert!(cx.may_have_run());
}

#[test]
fn layers_and_closures_wrap_a_boxed_callable() {
    struct Double(Arc<dyn DynInvoke>);
    impl Invoke for Double {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            let once = self.0.invoke(cx).await?.into_reply()?.json::<i64>()?;
            Ok(json!(once * 2).into())
        }
    }
    let tool = Tool::builder("seven").run(invoke_fn(|_| async { Ok::<_, ToolError>(json!(7)) }));
    let inner: Arc<dyn DynInvoke> = Arc::new(TargetBackend);
    let stack = Layers::outermost(Double).then(|inner| inner).around(inner);
    let outcome = run(stack.invoke(&mut CallContext::local(&tool, Arguments::none()))).unwrap();
    assert_eq!(outcome.into_reply().unwrap().json::<i64>().unwrap(), 14);
}

#[test]
fn arguments_come_from_any_object() {
    /// Object that writes one key twice.
    struct Twice;
    impl serde::Serialize for Twice {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([("a", 1), ("a", 2)])
        }
    }
    for refused in [
        Arguments::from_serialize(&Twice),
        Arguments::from_serialize("text"),
        Arguments::from_serialize(&[1, 2]),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArguments);
    }
}

#[test]
fn an_outcome_without_a_reply_is_an_error_that_says_what_is_needed() {
    let input = Outcome::NeedsInput(Box::new(InputRequest::new(raw(
        json!({"name": {"method": "ask"}}),
    ))));
    let error = input.into_reply().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MissingCapability);
    assert!(error.message().contains("asks for input"), "{error}");
    assert_eq!(error.detail().unwrap().as_str(), r#"{"name":{"method":"ask"}}"#);

    let pending = Outcome::Pending(Box::new(PendingCall::new("h-1", "a person must approve")));
    let error = pending.into_reply().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(
        error.message().contains("a person must approve") && error.message().contains("`h-1`"),
        "{error}"
    );
}

#[test]
fn a_reply_reads_as_json_and_as_text() {
    let structured =
        json!({"content": [{"type": "text", "text": "clear"}], "structuredContent": {"sky": "clear"}});
    let texts = json!({"content": [
        {"type": "text", "text": "{\"a\":"}, {"type": "image", "data": "", "mimeType": "image/png"}, {"type": "text", "text": "1}"}
    ]});
    let prose = json!({"content": [{"type": "text", "text": "it rains"}]});
    for (reply, text, value) in [
        (Reply::from(json!("plain")), "plain", Some(json!("plain"))),
        (Reply::from(json!({"a": 1})), r#"{"a":1}"#, Some(json!({"a": 1}))),
        (
            Reply::result(raw(structured), false),
            "clear",
            Some(json!({"sky": "clear"})),
        ),
        (
            Reply::result(raw(texts), false),
            "{\"a\":\n1}",
            Some(json!({"a": 1})),
        ),
        (Reply::result(raw(prose), false), "it rains", None),
        (
            Reply::result(raw(json!({"odd": 1})), false),
            r#"{"odd":1}"#,
            Some(json!({"odd": 1})),
        ),
    ] {
        assert_eq!(reply.text(), text);
        let read = reply.json::<Value>();
        match value {
            Some(value) => assert_eq!(read.unwrap(), value),
            None => assert_eq!(read.unwrap_err().kind(), ErrorKind::ResultInvalid),
        }
    }
    let shape = Reply::from(json!({"a": "x"})).json::<Terms>().unwrap_err();
    assert!(shape.message().contains("missing field `terms`"), "{shape}");
    let failed = Reply::result(
        raw(json!({"content": [{"type": "text", "text": "no such city"}]})),
        true,
    );
    let error = failed.json::<Value>().unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::UpstreamError, "no such city")
    );
}

#[test]
fn a_builder_sets_every_part_of_a_tool() {
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct OnlyIdempotent;
    impl Setting for OnlyIdempotent {
        fn settled(&self, tool: &Descriptor) -> Option<Self> {
            (tool.metadata.idempotent == Some(true)).then_some(Self)
        }
    }
    /// Schema that refuses every value.
    struct Never(RawJson);
    impl CheckJson for Never {
        fn check(&self, _: &Value) -> Result<(), CheckError> {
            Err(CheckError::Schema("never".to_owned()))
        }
        fn document(&self) -> Option<&RawJson> {
            Some(&self.0)
        }
    }
    let backend = || invoke_fn(|_| async { Ok::<_, ToolError>(json!(1)) });
    let upstream = Arc::new(UpstreamState::new("api"));
    let tool = Tool::builder("job")
        .description("Does it.")
        .input(Never(raw(json!({"not": {}}))))
        .setting(OnlyIdempotent)
        .idempotent(true)
        .read_only(false)
        .timeouts(Duration::from_secs(9), Duration::from_secs(3))
        .upstream(&upstream)
        .run_on(backend());
    assert_eq!(
        tool.definition().as_str(),
        r#"{"name":"job","description":"Does it.","inputSchema":{"not":{}},"annotations":{"readOnlyHint":false,"idempotentHint":true}}"#
    );
    assert!(tool.input().check(&json!({})).is_err());
    assert_eq!(tool.settings().get::<OnlyIdempotent>(), Some(&OnlyIdempotent));
    assert_eq!(tool.settings().attempt_timeout, Duration::from_secs(3));
    assert!(Arc::ptr_eq(tool.state().upstream().unwrap(), &upstream));

    let descriptor = Descriptor::new("other", ExecutorSpec::new("function"));
    let other = ToolBuilder::from_descriptor(descriptor)
        .settings(Settings::default())
        .setting(OnlyIdempotent)
        .state(tool.state().clone())
        .run(backend());
    assert_eq!(
        other.settings().get::<OnlyIdempotent>(),
        None,
        "it does not fit the tool"
    );
    assert!(Arc::ptr_eq(other.state(), tool.state()));
    assert!(
        AnyJson
            .check(other.descriptor().input_schema.to::<Value>().as_ref().unwrap())
            .is_ok()
    );
}

#[test]
fn events_have_a_name_and_their_call() {
    let tool = Tool::builder("job").run(invoke_fn(|_| async { Ok::<_, ToolError>(json!(1)) }));
    let n_events = Arc::new(AtomicU32::new(0));
    let counted = n_events.clone();
    let observer = observe_fn(move |event| {
        assert_eq!((event.name(), event.cx().is_some()), ("refused", true));
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let mut cx = CallContext::local(&tool, Arguments::none());
    cx.observers = Observers::from_iter([Arc::new(observer) as Arc<dyn Observe>]);
    cx.emit_refused("own", "size");
    assert_eq!(n_events.load(Ordering::Relaxed), 1);
    assert!(Event::switched("job", false, None).cx().is_none());
}

#[test]
fn a_program_without_secrets_has_none() {
    let template = Template::parse("Bearer ${TOKEN}").unwrap();
    let error = run(template.resolve(&NoSecrets)).unwrap_err();
    assert_eq!(error.reference, "${TOKEN}");
    let reference: &Reference = template.references().next().unwrap();
    assert!(!NoSecrets.has(reference).unwrap());
}

#[test]
fn the_system_clock_goes_forward() {
    let clock = SystemClock::new();
    let first = clock.now();
    assert!(clock.now() >= first);
}
