//! What arrives at a collector, read by OpenTelemetry's own definitions.

use std::{
    collections::VecDeque,
    io::Read,
    sync::{Arc, Mutex},
    time::Duration,
};

use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{Span, span::SpanKind},
};
use prost::Message;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};
use tool_core::{
    CallContext, Caller, ClientKey, ErrorKind, Event, Invoke, Layers, Outcome, Secret, Target, Task,
    TaskRequest, ToolError, TraceContext,
};
use tool_observe::{Otlp, OtlpEnvironment, OtlpSettings, Sampler, Tracer, Watch, WatchAttempt};
use tool_runtime::TokioClock;
use tool_testkit::{Script, Step, TestTool, call};

const LONG: Duration = Duration::from_secs(30);

/// A collector on loopback, which answers as it is told and with 200 then.
struct Collector {
    endpoint: String,
    requests: mpsc::UnboundedReceiver<Received>,
}

struct Received {
    head: String,
    request: ExportTraceServiceRequest,
}

impl Collector {
    async fn start(answers: impl IntoIterator<Item = &'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://user:hunter2@{}/v1/traces", listener.local_addr().unwrap());
        let answers: VecDeque<_> = answers.into_iter().collect();
        let answers = Arc::new(Mutex::new(answers));
        let (told, requests) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, told.clone(), answers.clone()));
            }
        });
        Self { endpoint, requests }
    }

    fn settings(&self) -> OtlpSettings {
        let mut settings = OtlpSettings::new(&self.endpoint);
        settings.resource = vec![("service.name".to_owned(), "test".to_owned())];
        settings
    }

    async fn next(&mut self) -> Received {
        timeout(LONG, self.requests.recv())
            .await
            .expect("nothing is exported")
            .unwrap()
    }
}

async fn serve(
    mut stream: TcpStream,
    told: mpsc::UnboundedSender<Received>,
    answers: Arc<Mutex<VecDeque<&'static str>>>,
) {
    let mut bytes = Vec::new();
    loop {
        let (head, length) = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8(bytes.drain(..end + 4).collect())
                    .unwrap()
                    .to_lowercase();
                let length = head.split_once("content-length: ").unwrap().1;
                break (
                    head.clone(),
                    length.split_once("\r\n").unwrap().0.parse().unwrap(),
                );
            }
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
        };
        while bytes.len() < length {
            stream.read_buf(&mut bytes).await.unwrap();
        }
        let body: Vec<u8> = bytes.drain(..length).collect();
        let mut plain = Vec::new();
        if head.contains("content-encoding: gzip") {
            GzDecoder::new(&*body).read_to_end(&mut plain).unwrap();
        } else {
            plain = body;
        }
        let request = ExportTraceServiceRequest::decode(&*plain).expect("it is OTLP");
        let status = answers.lock().unwrap().pop_front().unwrap_or("200 OK");
        let _ = told.send(Received { head, request });
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

impl Received {
    fn spans(&self) -> &[Span] {
        &self.request.resource_spans[0].scope_spans[0].spans
    }
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let value = attributes
        .iter()
        .find(|attribute| attribute.key == key)?
        .value
        .as_ref()?;
    match value.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        other => panic!("{other:?}"),
    }
}

fn number(attributes: &[KeyValue], key: &str) -> Option<i64> {
    let value = attributes
        .iter()
        .find(|attribute| attribute.key == key)?
        .value
        .as_ref()?;
    match value.value.as_ref()? {
        Value::IntValue(number) => Some(*number),
        other => panic!("{other:?}"),
    }
}

/// Makes a call that is traced.
async fn run(tracer: &Tracer, step: Step, parent: Option<&str>) {
    let script = Script::new([step]);
    let stack = Layers::outermost(Watch::default().tracer(Some(tracer.clone())))
        .then(WatchAttempt::default().tracer(Some(tracer.clone())))
        .around(script.clone());
    let mut cx = call(
        TestTool::new("echo").build(script),
        json!({}),
        Arc::new(TokioClock::new()),
    );
    cx.trace = parent.and_then(|parent| TraceContext::parse(parent, Some("a=b")));
    cx.client = parent.map(|_| ClientKey::Principal("p".into()));
    cx.correlation_id = tool_core::CorrelationId(7 << 64 | 5);
    let _ = stack.invoke(&mut cx).await;
}

#[tokio::test]
async fn a_call_and_its_attempt_arrive_as_parent_and_child() {
    let mut collector = Collector::start([]).await;
    let mut settings = collector.settings();
    settings.headers = vec![("x-key".to_owned(), Secret::new("k-1"))];
    let otlp = Otlp::start(settings);
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    run(&otlp.tracer(Sampler::DEFAULT), Step::Echo, Some(parent)).await;
    otlp.shutdown(LONG).await;
    let received = collector.next().await;
    assert!(received.head.starts_with("post /v1/traces "), "{}", received.head);
    assert!(received.head.contains("x-key: k-1") && received.head.contains("application/x-protobuf"));
    let resource = received.request.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(text(&resource.attributes, "service.name"), Some("test"));
    let scope = received.request.resource_spans[0].scope_spans[0]
        .scope
        .as_ref()
        .unwrap();
    assert_eq!(scope.name, "toolplane");
    let [attempt, call] = received.spans() else {
        panic!("two spans")
    };
    let trace = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes();
    assert_eq!((&*call.trace_id, &*attempt.trace_id), (&trace[..], &trace[..]));
    assert_eq!(call.parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!(attempt.parent_span_id, call.span_id);
    assert_ne!(attempt.span_id, call.span_id);
    assert_eq!(
        (&*call.name, &*attempt.name),
        ("tools/call echo", "execute_tool echo")
    );
    assert_eq!(
        (call.kind(), attempt.kind()),
        (SpanKind::Server, SpanKind::Internal)
    );
    assert_eq!((call.flags, attempt.flags), (0x301, 0x101));
    assert_eq!(call.trace_state, "a=b");
    assert!(call.start_time_unix_nano <= attempt.start_time_unix_nano + 1_000_000);
    assert!(call.end_time_unix_nano >= call.start_time_unix_nano);
    assert_eq!(text(&call.attributes, "mcp.method.name"), Some("tools/call"));
    assert_eq!(text(&call.attributes, "gen_ai.tool.name"), Some("echo"));
    assert_eq!(text(&call.attributes, "toolplane.outcome"), Some("ok"));
    assert_eq!(number(&call.attributes, "toolplane.attempts"), Some(1));
    assert_eq!(number(&call.attributes, "toolplane.result.bytes"), Some(2));
    assert_eq!(text(&attempt.attributes, "toolplane.dispatch"), Some("answered"));
    assert_eq!((&call.status, &attempt.status), (&None, &None));
}

#[tokio::test]
async fn spans_of_many_tools_that_end_in_many_ways_keep_their_own_words() {
    let mut collector = Collector::start([]).await;
    let otlp = Otlp::start(collector.settings());
    let tracer = otlp.tracer(Sampler::DEFAULT);
    let tools: Vec<_> = (0..100)
        .map(|number| TestTool::new(&format!("tool{number}")).build(Script::new([])))
        .collect();
    for round in 0..3 {
        for (number, tool) in tools.iter().enumerate() {
            let step = match (number + round) % 3 {
                0 => Step::Echo,
                1 => Step::Value(json!("x".repeat(200 * round))),
                _ => Step::Fail(ToolError::new(ErrorKind::Unavailable, format!("not {number}"))),
            };
            let stack = Layers::outermost(Watch::default().tracer(Some(tracer.clone())))
                .then(WatchAttempt::default().tracer(Some(tracer.clone())))
                .around(Script::new([step]));
            let mut cx = call(tool.clone(), json!({}), Arc::new(TokioClock::new()));
            cx.caller = Arc::new(Caller::new(format!("p{}", number % 7)));
            let _ = stack.invoke(&mut cx).await;
        }
    }
    otlp.shutdown(LONG).await;
    let mut spans = Vec::new();
    while spans.len() < 600 {
        spans.extend(collector.next().await.spans().to_vec());
    }
    for (at, pair) in spans.chunks(2).enumerate() {
        let [attempt, call] = pair else {
            panic!("two spans")
        };
        let of_tool = at % 100;
        let name = format!("tool{of_tool}");
        assert_eq!(call.name, format!("tools/call {name}"));
        assert_eq!(attempt.name, format!("execute_tool {name}"));
        assert_eq!(
            text(&call.attributes, "toolplane.principal"),
            Some(&*format!("p{}", of_tool % 7))
        );
        for span in pair {
            assert_eq!(text(&span.attributes, "gen_ai.tool.name"), Some(&*name));
            let error = match (of_tool + at / 100) % 3 {
                2 => Some("unavailable"),
                _ => None,
            };
            assert_eq!(text(&span.attributes, "error.type"), error, "{name}");
            let said = span.status.as_ref().map(|status| &*status.message);
            assert_eq!(said, error.map(|_| format!("not {of_tool}")).as_deref());
            let n_bytes = number(&span.attributes, "toolplane.result.bytes");
            let expected = match (of_tool + at / 100) % 3 {
                0 => Some(2),
                1 => Some(200 * (at as i64 / 100) + 2),
                _ => None,
            };
            assert_eq!(n_bytes, expected, "{name}");
        }
        let outcome = if call.status.is_some() {
            "unavailable"
        } else {
            "ok"
        };
        assert_eq!(text(&call.attributes, "toolplane.outcome"), Some(outcome));
    }
}

/// What runs a tool, or works on a task, by this protocol, or in this process.
#[derive(Clone, Copy)]
struct Spoken(Option<&'static str>);

impl Invoke for Spoken {
    async fn invoke(&self, _: &mut CallContext) -> Result<Outcome, ToolError> {
        Err(ToolError::new(ErrorKind::Unavailable, "nobody answers"))
    }

    fn protocol(&self) -> Option<&'static str> {
        self.0
    }
}

#[tokio::test]
async fn an_attempt_is_a_clients_only_where_something_leaves_the_process() {
    for (protocol, expected) in [
        (Some("http"), SpanKind::Client),
        (Some("mcp"), SpanKind::Client),
        (None, SpanKind::Internal),
    ] {
        let spoken = Spoken(protocol);
        // The tool is another's by now: it is the task that is asked about.
        let followed = |tool| Target::Task {
            tool,
            task: Task {
                id: "t1".into(),
                runner: Arc::new(spoken),
            },
            request: TaskRequest::Look,
        };
        let others = if protocol.is_some() { None } else { Some("mcp") };
        let [own, other] = [spoken, Spoken(others)].map(|runs| TestTool::new("echo").build(runs));
        for target in [Target::Tool(own), followed(other)] {
            let mut collector = Collector::start([]).await;
            let otlp = Otlp::start(collector.settings());
            let tracer = otlp.tracer(Sampler::DEFAULT);
            let tool = target.tool().clone();
            let mut cx = call(tool, json!({}), Arc::new(TokioClock::new()));
            cx.target = target;
            let stack = Layers::outermost(WatchAttempt::default().tracer(Some(tracer))).around(spoken);
            stack.invoke(&mut cx).await.unwrap_err();
            otlp.shutdown(LONG).await;
            let received = collector.next().await;
            assert_eq!(received.spans()[0].kind(), expected, "{protocol:?}");
        }
    }
}

/// Tells of 33 pauses before it fails.
struct Pausing;

impl Invoke for Pausing {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let error = ToolError::new(ErrorKind::Unavailable, "nobody answers");
        for _ in 0..33 {
            let pause = Duration::from_millis(1500);
            let error = &error;
            cx.observers.tell(&Event::Retried { cx, error, pause });
        }
        Err(error)
    }
}

#[tokio::test]
async fn what_happened_to_a_call_arrives_as_events_of_its_span() {
    let mut collector = Collector::start([]).await;
    let otlp = Otlp::start(collector.settings());
    let tracer = otlp.tracer(Sampler::DEFAULT);
    let stack = Layers::outermost(Watch::default().tracer(Some(tracer))).around(Pausing);
    let tool = TestTool::new("echo").build(Script::new([]));
    let mut cx = call(tool, json!({}), Arc::new(TokioClock::new()));
    stack.invoke(&mut cx).await.unwrap_err();
    otlp.shutdown(LONG).await;
    let received = collector.next().await;
    let [span] = received.spans() else {
        panic!("one span")
    };
    assert_eq!((span.events.len(), span.dropped_events_count), (32, 1));
    let within = span.start_time_unix_nano..=span.end_time_unix_nano;
    for event in &span.events {
        assert_eq!(event.name, "toolplane.retry");
        assert_eq!(text(&event.attributes, "error.type"), Some("unavailable"));
        assert_eq!(number(&event.attributes, "toolplane.pause_ms"), Some(1500));
        assert!(within.contains(&event.time_unix_nano), "{event:?} {within:?}");
    }
    assert_eq!(span.status.as_ref().unwrap().message, "nobody answers");
}

#[tokio::test]
async fn a_failure_is_one_and_bodies_can_be_compressed() {
    let mut collector = Collector::start([]).await;
    let mut settings = collector.settings();
    settings.gzip = true;
    let otlp = Otlp::start(settings);
    let error = ToolError::new(ErrorKind::Unavailable, "x".repeat(1000));
    run(&otlp.tracer(Sampler::DEFAULT), Step::Fail(error), None).await;
    otlp.shutdown(LONG).await;
    let received = collector.next().await;
    for span in received.spans() {
        let status = span.status.as_ref().unwrap();
        assert_eq!((status.code, status.message.len()), (2, 256));
        assert_eq!(text(&span.attributes, "error.type"), Some("unavailable"));
        assert_eq!(span.trace_id, (7_u128 << 64 | 5).to_be_bytes());
    }
    let call = &received.spans()[1];
    assert_eq!((call.kind(), call.parent_span_id.len()), (SpanKind::Internal, 0));
}

#[tokio::test]
async fn spans_go_together_and_before_their_time_when_there_are_enough() {
    let mut collector = Collector::start([]).await;
    let mut settings = collector.settings();
    settings.max_batch = 4;
    settings.delay = Duration::from_secs(3600);
    let otlp = Otlp::start(settings);
    let tracer = otlp.tracer(Sampler::DEFAULT);
    for _ in 0..5 {
        run(&tracer, Step::Echo, None).await;
    }
    for _ in 0..2 {
        assert_eq!(collector.next().await.spans().len(), 4);
    }
    otlp.shutdown(LONG).await;
    assert_eq!(collector.next().await.spans().len(), 2);
}

#[tokio::test]
async fn what_a_collector_may_take_later_is_sent_again_and_what_it_refuses_is_not() {
    let mut collector = Collector::start(["503 Busy", "429 Slow", "200 OK", "400 Bad", "200 OK"]).await;
    let mut settings = collector.settings();
    settings.delay = Duration::from_millis(10);
    let otlp = Otlp::start(settings);
    let tracer = otlp.tracer(Sampler::DEFAULT);
    run(&tracer, Step::Echo, None).await;
    let first = collector.next().await.spans()[0].span_id.clone();
    for _ in 0..2 {
        assert_eq!(collector.next().await.spans()[0].span_id, first);
    }
    run(&tracer, Step::Echo, None).await;
    let refused = collector.next().await.spans()[0].span_id.clone();
    assert_ne!(refused, first);
    run(&tracer, Step::Echo, None).await;
    assert_ne!(collector.next().await.spans()[0].span_id, refused);
    otlp.shutdown(LONG).await;
}

#[tokio::test]
async fn a_collector_that_wants_to_be_left_alone_for_ever_has_the_next_spans() {
    for forever in ["18446744073709551615", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        let busy: &'static str = format!("503 Busy\r\nretry-after: {forever}").leak();
        let mut collector = Collector::start([busy]).await;
        let mut settings = collector.settings();
        settings.delay = Duration::from_millis(10);
        let otlp = Otlp::start(settings);
        let tracer = otlp.tracer(Sampler::DEFAULT);
        run(&tracer, Step::Echo, None).await;
        let refused = collector.next().await.spans()[0].span_id.clone();
        run(&tracer, Step::Echo, None).await;
        assert_ne!(collector.next().await.spans()[0].span_id, refused, "{forever}");
        otlp.shutdown(LONG).await;
    }
}

#[tokio::test]
async fn a_collector_that_says_nothing_holds_up_no_call_and_no_end() {
    // It takes connections and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let mut settings = OtlpSettings::new(endpoint);
    settings.max_queue = 10;
    settings.max_batch = 5;
    let otlp = Otlp::start(settings);
    let tracer = otlp.tracer(Sampler::DEFAULT);
    let calls = async {
        for _ in 0..1000 {
            run(&tracer, Step::Echo, None).await;
        }
    };
    timeout(LONG, calls).await.expect("calls go on");
    timeout(LONG, otlp.shutdown(Duration::from_millis(50)))
        .await
        .expect("the end comes");
}

/// What variables ask for.
fn read(variables: &[(&str, &str)]) -> OtlpEnvironment {
    OtlpEnvironment::read("1.2.3", |name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/");

#[test]
fn nothing_is_exported_unless_an_endpoint_is_set_and_nothing_turns_it_off() {
    let off = [
        vec![],
        vec![("OTEL_SERVICE_NAME", "x"), ("OTEL_TRACES_SAMPLER", "always_on")],
        vec![ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")],
        vec![ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
        vec![("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
    ];
    for variables in off {
        let asked = read(&variables);
        assert!(
            asked.settings.is_none() && asked.problems.is_empty(),
            "{variables:?}"
        );
    }
    let asked = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "hunter2@host")]);
    assert!(asked.settings.is_none());
    assert!(asked.problems.len() == 1 && !asked.problems[0].contains("hunter2"));
    assert!(
        read(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "console")])
            .settings
            .is_none()
    );
}

#[test]
fn variables_say_how_to_export() {
    let asked = read(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%3D, x=1"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "3000"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "64"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "16"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=no,deployment.environment=a%2Cb",
        ),
        ("OTEL_SERVICE_NAME", "tools"),
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.01"),
    ]);
    assert_eq!(asked.problems, [""; 0]);
    let settings = asked.settings.unwrap();
    assert_eq!(settings.endpoint, "http://localhost:4318/v1/traces");
    let headers: Vec<_> = settings
        .headers
        .iter()
        .map(|(name, value)| (&**name, value.expose()))
        .collect();
    assert_eq!(headers, [("api-key", "a b="), ("x", "1")]);
    assert_eq!(settings.timeout, Duration::from_secs(3));
    assert_eq!(settings.delay, Duration::from_millis(100));
    assert_eq!(
        (settings.max_queue, settings.max_batch, settings.gzip),
        (64, 16, true)
    );
    let resource: Vec<_> = settings
        .resource
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    assert_eq!(
        resource,
        [
            "deployment.environment=a,b",
            "service.name=tools",
            "service.version=1.2.3"
        ]
    );
    assert_eq!(
        asked.sampler,
        Sampler {
            follows_caller: true,
            ratio: 0.01
        }
    );
    assert!(!format!("{settings:?}").contains("a b="));
    let own = read(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t.example.com/x"),
    ]);
    assert_eq!(own.settings.unwrap().endpoint, "https://t.example.com/x");
}

#[test]
fn variables_that_are_not_supported_are_named_where_something_is_exported() {
    let unsupported = [
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
        ("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "/key.pem"),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/client.pem"),
        ("OTEL_PROPAGATORS", "b3"),
        ("OTEL_PROPAGATORS", "tracecontext,b3"),
        ("OTEL_PROPAGATORS", "none"),
    ];
    for variable in unsupported {
        assert_eq!(read(&[variable]).problems, [""; 0]);
        let asked = read(&[ENDPOINT, variable]);
        assert!(asked.settings.is_some());
        let [problem] = &asked.problems[..] else {
            panic!("{variable:?}: {:?}", asked.problems)
        };
        assert!(problem.contains(variable.0), "{problem}");
    }
    for names in ["tracecontext", "tracecontext, baggage"] {
        let asked = read(&[ENDPOINT, ("OTEL_PROPAGATORS", names)]);
        assert_eq!(asked.problems, [""; 0], "{names}");
    }
}

#[test]
fn samplers_have_the_names_of_the_specification() {
    let cases = [
        (
            "always_on",
            Sampler {
                follows_caller: false,
                ratio: 1.0,
            },
        ),
        (
            "always_off",
            Sampler {
                follows_caller: false,
                ratio: 0.0,
            },
        ),
        (
            "traceidratio",
            Sampler {
                follows_caller: false,
                ratio: 0.5,
            },
        ),
        (
            "parentbased_always_on",
            Sampler {
                follows_caller: true,
                ratio: 1.0,
            },
        ),
        (
            "parentbased_always_off",
            Sampler {
                follows_caller: true,
                ratio: 0.0,
            },
        ),
        (
            "parentbased_traceidratio",
            Sampler {
                follows_caller: true,
                ratio: 0.5,
            },
        ),
    ];
    for (name, expected) in cases {
        let asked = read(&[("OTEL_TRACES_SAMPLER", name), ("OTEL_TRACES_SAMPLER_ARG", "0.5")]);
        assert_eq!(asked.sampler, expected, "{name}");
    }
}

#[test]
fn values_that_are_not_understood_are_named_and_the_defaults_hold() {
    let asked = read(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2,a=b"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
    ]);
    assert_eq!(asked.problems.len(), 6, "{:?}", asked.problems);
    assert!(!asked.problems.concat().contains("hunter2"));
    let settings = asked.settings.unwrap();
    assert_eq!(
        (settings.timeout, settings.max_queue),
        (Duration::from_secs(10), 2048)
    );
    assert_eq!(asked.sampler, Sampler::DEFAULT);
}
