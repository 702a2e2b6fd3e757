//! Outgoing requests: health checks of endpoints and webhooks, with the servers that receive them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tool_testkit::{ScriptedExecutor, TestTool, executor};
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{
        Alert, AlertKind, AlertPhase, AlertSubject, BoxFuture, CallContext, Descriptor, Event, Health,
        HealthStatus, Invoke, Outcome, Reference, Reply, Secret, SecretError, Secrets, ToolError, Trust,
    },
    manifest::{LoadOptions, Syntax, load},
};

use crate::health::Server;

const SECOND: Duration = Duration::from_secs(1);

/// Starts an HTTP server that answers every request with this status and reports the requests.
pub(crate) async fn endpoint(status: &'static str) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
    let address = listener.local_addr().expect("it is bound");
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let request = request(&mut stream).await;
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
            if tell.send(request).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}/health"), told)
}

/// Reads a request with its body.
async fn request(stream: &mut TcpStream) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    loop {
        let n_read = stream.read(&mut buffer).await.unwrap_or_default();
        text.push_str(std::str::from_utf8(&buffer[..n_read]).expect("tests send text"));
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            body.len() >= length.map_or(0, |length| length.parse().expect("a number"))
        });
        if whole || n_read == 0 {
            return text;
        }
    }
}

pub(crate) fn with_endpoint(name: &str, endpoint: &str, trust: Trust) -> Descriptor {
    let mut tool = TestTool::new(name).descriptor;
    tool.metadata.health_check_endpoint = Some(endpoint.to_owned());
    tool.origin.trust = trust;
    tool
}

#[tokio::test]
async fn endpoints_of_tools_are_asked_if_the_operator_wrote_them() {
    let (well, mut asked) = endpoint("204 No Content").await;
    let (ill, _ill) = endpoint("503 Service Unavailable").await;
    let (other, mut never_asked) = endpoint("200 OK").await;
    let moved: &'static str = format!("302 Found\r\nlocation: {other}").leak();
    let (moved, _moved) = endpoint(moved).await;
    let server = Server::new(vec![Arc::new(with_endpoint("foreign", &other, Trust::Upstream))]);
    let plane = Toolplane::builder()
        .executor(Arc::new(ScriptedExecutor::new([])))
        .source(Arc::new(server))
        .tool(with_endpoint("well", &well, Trust::Operator))
        .tool(with_endpoint("ill", &ill, Trust::Operator))
        .tool(with_endpoint("moved", &moved, Trust::Operator))
        .tool(with_endpoint("gone", "http://127.0.0.1:1/", Trust::Operator))
        .build()
        .expect("usable");
    let mut found: Vec<_> = plane
        .check_health()
        .await
        .into_iter()
        .map(|checked| {
            let result = checked
                .result
                .map_or_else(|error| error.message().to_owned(), |()| "well".to_owned());
            format!("{}: {result}", checked.subject)
        })
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "tool `gone`: it cannot be reached",
            "tool `ill`: its health check endpoint answered 503 Service Unavailable",
            "tool `moved`: its health check endpoint answered 302 Found",
            "tool `well`: well",
            "upstream `files`: well",
        ]
    );
    assert!(
        asked
            .recv()
            .await
            .expect("it was asked")
            .starts_with("GET /health HTTP/1.1")
    );
    assert!(never_asked.try_recv().is_err(), "by nobody");
    assert_eq!(plane.health().tool("ill").status, HealthStatus::Degraded);
    assert_eq!(plane.health().tool("well").status, HealthStatus::Healthy);
}

/// Raises an alert.
pub(crate) struct Raises;

impl Invoke for Raises {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let subject = AlertSubject::Tool(cx.tool().name().clone());
        let (kind, phase) = (AlertKind::Disabled, AlertPhase::Firing);
        let alert = Alert::new(
            kind,
            phase,
            subject,
            "its credentials are refused",
            cx.clock.wall(),
        );
        cx.observers.emit(&Event::alert(&alert));
        Ok(Reply::value(RawJson::object()).into())
    }
}

/// A secret that cannot be read the first time, as while its file is replaced.
#[derive(Default)]
struct Rotating(AtomicBool);

impl Secrets for Rotating {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let is_there = self.0.swap(true, Ordering::SeqCst);
        Box::pin(async move {
            match is_there {
                true => Ok(Some(Secret::new("0123456789"))),
                false => Err(SecretError::new(
                    reference.to_string(),
                    "is being written".to_owned(),
                )),
            }
        })
    }

    fn has(&self, _: &Reference) -> Result<bool, SecretError> {
        Ok(true)
    }
}

#[tokio::test]
async fn an_alert_is_sent_though_its_secret_cannot_be_read_for_a_moment() {
    let (url, mut received) = endpoint("200 OK").await;
    let text = format!("alerts: {{webhook: {{url: '{url}', secret: '${{secret:key}}'}}}}");
    let loaded = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text)).expect("usable");
    let plane = Toolplane::builder()
        .loaded(&loaded)
        .secrets(Arc::new(Rotating::default()))
        .executor(executor("scripted", Raises))
        .tool(TestTool::new("weather").descriptor)
        .build()
        .expect("usable");
    plane.call(CallRequest::new("weather")).await.expect("answered");
    let received = tokio::time::timeout(30 * SECOND, received.recv()).await;
    let request = received
        .expect("the alert was sent")
        .expect("the endpoint is there");
    assert!(request.contains("webhook-signature: v1,"), "{request}");
}

#[tokio::test]
async fn alerts_reach_the_webhook_signed_and_hold_no_call_up() {
    let (url, mut received) = endpoint("200 OK").await;
    let text = format!(
        "secrets: {{key: '${{NO_SUCH_VARIABLE:-whsec_c2VjcmV0}}'}}
alerts: {{webhook: {{url: '{url}', secret: '${{secret:key}}', headers: {{X-Team: tools}}}}}}"
    );
    let loaded = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text)).expect("usable");
    let plane = Toolplane::builder()
        .loaded(&loaded)
        .executor(executor("scripted", Raises))
        .tool(TestTool::new("weather").descriptor)
        .build()
        .expect("usable");
    plane.call(CallRequest::new("weather")).await.expect("answered");
    let received = tokio::time::timeout(30 * SECOND, received.recv()).await;
    let request = received
        .expect("the alert was sent")
        .expect("the endpoint is there");
    let (head, body) = request.split_once("\r\n\r\n").expect("a request");
    assert!(head.starts_with("POST /health HTTP/1.1"), "{head}");
    for header in [
        "webhook-id: msg_",
        "webhook-timestamp: ",
        "webhook-signature: v1,",
        "x-team: tools",
    ] {
        assert!(head.contains(header), "{head}");
    }
    assert!(!request.contains("c2VjcmV0"), "{request}");
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["type"], "toolplane.alert");
    assert_eq!(
        body["data"],
        json!({
            "alert": "disabled",
            "phase": "firing",
            "subject": {"kind": "tool", "name": "weather"},
            "message": "its credentials are refused"
        })
    );
}
