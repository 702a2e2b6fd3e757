use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use serde_json::Value;
use tokio::time::{Instant, advance, sleep};
use tool_core::{
    Alert, AlertKind, AlertPhase, AlertSubject, BoxFuture, Event, HealthReport, Observe, Secret,
};
use tool_observe::{Webhook, WebhookError, WebhookMessage, WebhookTransport, webhook};
use tool_runtime::TokioClock;

/// Receiver that gives the scripted answers first, then accepts every message.
#[derive(Default)]
struct Receiver {
    answers: Mutex<Vec<Result<(), WebhookError>>>,
    got: Mutex<Vec<(Instant, WebhookMessage)>>,
    takes: Duration,
}

const SOUND: &str = "no test panics with it";

impl WebhookTransport for Receiver {
    fn post<'a>(&'a self, message: &'a WebhookMessage) -> BoxFuture<'a, Result<(), WebhookError>> {
        Box::pin(async {
            self.got
                .lock()
                .expect(SOUND)
                .push((Instant::now(), message.clone()));
            sleep(self.takes).await;
            let mut answers = self.answers.lock().expect(SOUND);
            if answers.is_empty() {
                Ok(())
            } else {
                answers.remove(0)
            }
        })
    }
}

impl Receiver {
    fn answering(answers: impl IntoIterator<Item = Result<(), WebhookError>>) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        }
    }

    fn n_got(&self) -> usize {
        self.got.lock().expect(SOUND).len()
    }
}

fn failure(is_transient: bool) -> WebhookError {
    WebhookError::new("it answered 500").with_transient(is_transient)
}

fn alert(tool: &str) -> Alert {
    let subject = AlertSubject::Tool(tool.into());
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_709_210_096);
    Alert::new(
        AlertKind::SuccessRate,
        AlertPhase::Firing,
        subject,
        "it fails",
        at,
    )
}

fn send(webhook: &Webhook, alert: &Alert) {
    webhook.observe(&Event::alert(alert));
}

fn started(receiver: &Arc<Receiver>) -> Webhook {
    let (webhook, work) = webhook(receiver.clone(), Arc::new(TokioClock::new()));
    tokio::spawn(work);
    webhook
}

#[tokio::test(start_paused = true)]
async fn an_alert_is_sent_as_documented() {
    let receiver = Arc::new(Receiver::default());
    let webhook = started(&receiver);
    let mut report = HealthReport::UNKNOWN;
    (report.n_calls, report.n_failures, report.mean) = (40, 12, Duration::from_micros(1234));
    send(&webhook, &alert("weather").with_health(report.with_status()));
    sleep(Duration::from_secs(1)).await;
    let got = receiver.got.lock().unwrap();
    let [(_, message)] = &got[..] else {
        panic!("{got:?}")
    };
    let body: Value = serde_json::from_str(message.body()).unwrap();
    let expected = serde_json::json!({
        "type": "toolplane.alert",
        "timestamp": "2024-02-29T12:34:56Z",
        "data": {
            "alert": "success_rate",
            "phase": "firing",
            "subject": {"kind": "tool", "name": "weather"},
            "message": "it fails",
            "health": {
                "status": "unhealthy", "calls": 40, "failures": 12, "reported_failures": 0,
                "success_rate": 0.7, "mean_ms": 1.234, "p50_ms": 0.0, "p95_ms": 0.0, "p99_ms": 0.0
            }
        }
    });
    assert_eq!(body, expected);
    let names = |secret: Option<&Secret>| {
        message
            .headers(secret)
            .expect("it can be signed")
            .into_iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(None), ["content-type", "webhook-id", "webhook-timestamp"]);
    assert_eq!(names(Some(&Secret::new("s"))).last(), Some(&"webhook-signature"));
}

#[tokio::test(start_paused = true)]
async fn an_alert_is_sent_with_addresses_and_without_credentials() {
    let receiver = Arc::new(Receiver::default());
    let webhook = started(&receiver);
    let subject = AlertSubject::Tool("weather".into());
    let message = "a call ended: 10.1.2.3:80 refused token=hunter2";
    let at = SystemTime::UNIX_EPOCH;
    let alert = Alert::new(AlertKind::Failure, AlertPhase::Firing, subject, message, at);
    send(&webhook, &alert);
    sleep(Duration::from_secs(1)).await;
    let got = receiver.got.lock().unwrap();
    let body: Value = serde_json::from_str(got[0].1.body()).unwrap();
    assert_eq!(
        body["data"]["message"],
        "a call ended: 10.1.2.3:80 refused token=[redacted]"
    );
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_again_with_longer_and_longer_pauses() {
    let receiver = Arc::new(Receiver::answering([
        Err(failure(true)),
        Err(failure(true)),
        Ok(()),
    ]));
    let webhook = started(&receiver);
    send(&webhook, &alert("weather"));
    sleep(Duration::from_secs(600)).await;
    let got = receiver.got.lock().unwrap();
    assert_eq!(got.len(), 3);
    assert!(
        got.iter().all(|(_, message)| *message == got[0].1),
        "it is one message"
    );
    let pauses: Vec<_> = got.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    for (pause, longest) in pauses.iter().zip([2, 10]) {
        let longest = Duration::from_secs(longest);
        assert!(
            *pause >= longest / 2 && *pause <= longest + Duration::from_millis(1),
            "{pauses:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_never_takes_it_is_given_up_and_the_next_alert_is_sent() {
    let answers = std::iter::repeat_n(Err(failure(true)), 4).chain([Err(failure(false))]);
    let receiver = Arc::new(Receiver::answering(answers));
    let webhook = started(&receiver);
    for tool in ["one", "two", "three"] {
        send(&webhook, &alert(tool));
    }
    sleep(Duration::from_secs(600)).await;
    let got = receiver.got.lock().unwrap();
    let tools: Vec<_> = got
        .iter()
        .map(|(_, message)| {
            ["one", "two", "three"]
                .into_iter()
                .find(|tool| message.body().contains(&format!("\"{tool}\"")))
        })
        .collect();
    let expected = ["one", "one", "one", "one", "two", "three"].map(Some);
    assert_eq!(
        tools, expected,
        "four attempts, one that a refusal ends, one that succeeds"
    );
}

#[tokio::test(start_paused = true)]
async fn alerts_that_nobody_takes_wait_in_a_bounded_queue_and_hold_nobody_up() {
    let receiver = Arc::new(Receiver {
        takes: Duration::from_secs(3600),
        ..Receiver::default()
    });
    let webhook = started(&receiver);
    for n in 0..1000 {
        send(&webhook, &alert(&format!("tool-{n}")));
    }
    drop(webhook);
    advance(Duration::from_secs(1)).await;
    // Waiting messages are delivered even after the webhook is dropped.
    sleep(Duration::from_secs(100 * 3600)).await;
    assert_eq!(receiver.n_got(), 64);
}
