//! Traces, metrics and logs as a collector receives them, over both transports, and collectors that misbehave.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    thread,
};

use serde_json::{Value, json};

use crate::support::{Client as _, Collector, Configuration, Era, HttpGateway, attribute, installed};

/// Credentials that no signal may contain.
const SECRET: &str = "hunter2-hunter2-hunter2";
/// Span of the caller; the trace id of each call is its number.
const CALLER: &str = "00f067aa0ba902b7";

fn trace_id(call: usize) -> String {
    format!("4bf92f3577b34da6a3ce929d0e0e{call:04x}")
}

/// Returns a configuration with a tool that answers, and one whose API is unreachable and has a secret in its URL.
fn configuration() -> Configuration {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let greet = json!({
        "description": "Greets", "input_schema": schema,
        "executor": {"kind": "mock", "template": "{\"greeting\": \"Hello, {{ name }}!\"}"},
    });
    let absent = json!({
        "description": "Fails", "input_schema": {"type": "object"},
        "executor": {
            "kind": "http", "url": "http://127.0.0.1:1/", "method": "GET", "allow_private": true,
            "headers": {"authorization": "Bearer ${TOKEN}"},
        },
        "retry": {"max_attempts": 1},
    });
    Configuration::default()
        .tool("greet", greet)
        .tool("absent", absent)
}

fn gateway(folder: &Path, variables: &[(&str, String)]) -> HttpGateway {
    let mut all = vec![
        ("TOKEN", SECRET.to_owned()),
        ("TOOLPLANE_LOG", "info".to_owned()),
        ("OTEL_SERVICE_NAME", "the-test".to_owned()),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment=a%2Cb".to_owned(),
        ),
        ("OTEL_EXPORTER_OTLP_HEADERS", format!("api-key={SECRET}%3D")),
    ];
    all.extend_from_slice(variables);
    HttpGateway::of_file(&configuration().write(folder), &all)
}

/// Calls a tool within a trace.
fn call(gateway: &HttpGateway, number: usize, tool: &str, arguments: &Value) {
    let traceparent = format!("00-{}-{CALLER}-01", trace_id(number));
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"traceparent": traceparent}});
    let mut client = gateway.client(Era::Legacy);
    client.request("tools/call", &params.to_string());
}

/// Returns the calls of the test: tool, arguments, and outcome.
fn calls() -> [(&'static str, Value, &'static str); 5] {
    [
        ("greet", json!({"name": "a"}), "ok"),
        ("greet", json!({"name": "b"}), "ok"),
        ("greet", json!({}), "invalid_arguments"),
        ("absent", json!({}), "unavailable"),
        ("greet", json!({"name": "c"}), "ok"),
    ]
}

/// Compares the spans with the calls: each has one span of the call, below the caller's, and one of its attempt.
fn check_traces(spans: &[Value]) {
    let n_attempts = calls()
        .iter()
        .filter(|(_, _, outcome)| *outcome != "invalid_arguments")
        .count();
    assert_eq!(spans.len(), calls().len() + n_attempts, "{spans:#?}");
    for (number, (tool, _, outcome)) in calls().into_iter().enumerate() {
        let named = |name: String| {
            let mut found = spans
                .iter()
                .filter(|span| span["traceId"] == trace_id(number) && span["name"] == name);
            let span = found.next();
            assert!(found.next().is_none(), "two of {name}");
            span
        };
        let span = named(format!("tools/call {tool}")).unwrap_or_else(|| panic!("call {number}: {spans:#?}"));
        assert_eq!(
            (&span["parentSpanId"], &span["kind"]),
            (&json!(CALLER), &json!("SPAN_KIND_SERVER"))
        );
        assert_eq!(attribute(span, "mcp.method.name"), "tools/call");
        assert_eq!(attribute(span, "gen_ai.tool.name"), tool);
        assert_eq!(attribute(span, "toolplane.outcome"), outcome);
        let is_ok = outcome == "ok";
        assert_eq!(
            attribute(span, "error.type"),
            if is_ok { json!(null) } else { json!(outcome) }
        );
        let status = if is_ok {
            json!(null)
        } else {
            json!("STATUS_CODE_ERROR")
        };
        assert_eq!(span["status"]["code"], status);
        let attempt = named(format!("execute_tool {tool}"));
        assert_eq!(attempt.is_some(), outcome != "invalid_arguments");
        if let Some(attempt) = attempt {
            assert_eq!(attempt["parentSpanId"], span["spanId"]);
            let kind = if tool == "absent" {
                "SPAN_KIND_CLIENT"
            } else {
                "SPAN_KIND_INTERNAL"
            };
            assert_eq!(attempt["kind"], kind);
        }
    }
}

/// Compares the metrics with the calls.
fn check_metrics(metrics: &[Value]) {
    let points = |name: &str, kind: &str| -> Vec<Value> {
        // The last export is complete: sums are cumulative.
        let metric = metrics.iter().rfind(|metric| metric["name"] == name);
        let metric = metric.unwrap_or_else(|| panic!("no {name}: {metrics:#?}"));
        metric[kind]["dataPoints"].as_array().unwrap().clone()
    };
    let counted = points("toolplane.calls", "sum");
    for (tool, outcome, count) in [
        ("greet", "ok", 3),
        ("greet", "invalid_arguments", 1),
        ("absent", "unavailable", 1),
    ] {
        let is_it =
            |point: &&Value| attribute(point, "tool") == tool && attribute(point, "outcome") == outcome;
        let point = counted
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{tool} {outcome}: {counted:?}"));
        assert_eq!(point["asInt"], count.to_string());
    }
    assert_eq!(counted.len(), 3, "{counted:?}");
    let durations = points("toolplane.call_duration", "histogram");
    for (tool, count) in [("greet", "4"), ("absent", "1")] {
        let point = durations
            .iter()
            .find(|point| attribute(point, "tool") == tool)
            .unwrap();
        assert_eq!(point["count"], count);
        // The bounds are those of the Prometheus page.
        assert_eq!(point["explicitBounds"].as_array().unwrap().len(), 17, "{point}");
    }
}

/// Compares the log records with the calls: each has one of its start and one of its end, within its trace.
fn check_logs(records: &[Value]) {
    for (number, (tool, _, outcome)) in calls().into_iter().enumerate() {
        let of_call = |record: &&Value| record["traceId"] == trace_id(number);
        let of_call: Vec<_> = records.iter().filter(of_call).collect();
        let said: Vec<_> = of_call
            .iter()
            .map(|record| record["body"]["stringValue"].as_str().unwrap())
            .collect();
        assert_eq!(said.len(), 2, "call {number}: {records:#?}");
        assert_eq!(said[0], "started");
        let (severity, start) = if outcome == "ok" {
            ("INFO", "answered")
        } else {
            ("WARN", "failed: ")
        };
        assert!(said[1].starts_with(start), "{said:?}");
        assert_eq!(of_call[1]["severityText"], severity);
        for record in &of_call {
            assert_eq!(attribute(record, "tool"), tool);
            assert_ne!(record["spanId"], json!(null));
        }
    }
}

#[test]
fn traces_metrics_and_logs_arrive_over_both_transports() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/collector.py");
    let Some(peer) = installed(|peers| peers.otel_script(&script)) else {
        return;
    };
    for (protocol, compression) in [
        ("http/protobuf", "none"),
        ("http/protobuf", "gzip"),
        ("grpc", "none"),
        ("grpc", "gzip"),
    ] {
        let collector = Collector::start(&peer);
        let endpoint = if protocol == "grpc" {
            &collector.grpc
        } else {
            &collector.http
        };
        let folder = tempfile::tempdir().unwrap();
        let gateway = gateway(
            folder.path(),
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.clone()),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol.to_owned()),
                ("OTEL_EXPORTER_OTLP_COMPRESSION", compression.to_owned()),
            ],
        );
        for (number, (tool, arguments, _)) in calls().into_iter().enumerate() {
            call(&gateway, number, tool, &arguments);
        }
        let status = gateway.terminate();
        assert_eq!(status.code(), Some(0));
        let received = collector.end();
        check_traces(&received.items("traces"));
        check_metrics(&received.items("metrics"));
        check_logs(&received.items("logs"));
        assert!(!received.holds(SECRET));
        for (signal, resource) in [
            ("traces", "resourceSpans"),
            ("metrics", "resourceMetrics"),
            ("logs", "resourceLogs"),
        ] {
            for request in received.of(signal) {
                let transport = protocol.split('/').next().unwrap();
                assert_eq!(request["transport"], transport);
                assert_eq!(request["headers"]["api-key"], format!("{SECRET}="));
                let resource = &request["request"][resource][0]["resource"];
                assert_eq!(attribute(resource, "service.name"), "the-test");
                assert_eq!(attribute(resource, "service.version"), env!("CARGO_PKG_VERSION"));
                assert_eq!(attribute(resource, "deployment.environment"), "a,b");
            }
        }
    }
}

/// Misbehavior of a collector.
#[derive(Clone, Copy, Debug)]
enum Bad {
    /// Accepts connections and never answers.
    Hangs,
    /// Refuses all requests permanently.
    Refuses,
    /// Refuses all requests temporarily.
    Busy,
    /// Breaks connections.
    Breaks,
}

/// Starts such a collector, which lives as long as the test.
fn bad_collector(bad: Bad) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let status = match bad {
                Bad::Breaks => continue,
                Bad::Hangs => "",
                Bad::Refuses => "400 Bad Request",
                Bad::Busy => "503 Busy",
            };
            thread::spawn(move || {
                let mut piece = [0; 4096];
                while let Ok(1..) = stream.read(&mut piece) {
                    if !status.is_empty() {
                        let answer =
                            format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                        let _ = stream.write_all(answer.as_bytes());
                        return;
                    }
                }
            });
        }
    });
    endpoint
}

#[test]
fn a_bad_collector_holds_up_no_call_and_no_end() {
    for bad in [Bad::Hangs, Bad::Refuses, Bad::Busy, Bad::Breaks] {
        for protocol in ["http/protobuf", "grpc"] {
            let folder = tempfile::tempdir().unwrap();
            let gateway = gateway(
                folder.path(),
                &[
                    ("OTEL_EXPORTER_OTLP_ENDPOINT", bad_collector(bad)),
                    ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol.to_owned()),
                    ("OTEL_BSP_MAX_QUEUE_SIZE", "16".to_owned()),
                    ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8".to_owned()),
                    // Longer than the end of the program may take, in milliseconds.
                    ("OTEL_EXPORTER_OTLP_TIMEOUT", "600000".to_owned()),
                ],
            );
            let mut client = gateway.client(Era::Legacy);
            for _ in 0..100 {
                let result = client.call("greet", r#"{"name":"us"}"#).result();
                assert!(result.contains("Hello, us!"), "{result}");
            }
            // Fails if the end takes too long.
            let status = gateway.terminate();
            assert_eq!(status.code(), Some(0), "{bad:?} {protocol}");
        }
    }
}
