//! Credentials that expire, in the standard stack with a real HTTP executor: scenario 3 of the critical ones.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::timeout,
};
use toolplane::{
    CallRequest, Toolplane,
    core::{BoxFuture, ErrorKind, Reference, Secret, SecretError, Secrets},
    manifest::{LoadOptions, Loaded, Syntax, load},
};

use crate::health::Told;

/// Time after which a hanging test fails.
const LONG: Duration = Duration::from_secs(30);

/// An API that accepts one token, and counts.
async fn api(accepted: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
    let n_requests = Arc::new(AtomicUsize::new(0));
    let counted = n_requests.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                let mut buffer = [0; 4096];
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut buffer).await {
                        Ok(n) if n > 0 => head.extend_from_slice(&buffer[..n]),
                        _ => return,
                    }
                }
                counted.fetch_add(1, Ordering::SeqCst);
                let head = String::from_utf8_lossy(&head).to_lowercase();
                let status = if head.contains(&format!("bearer {accepted}")) {
                    "200 OK"
                } else {
                    "401 Unauthorized"
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    (url, n_requests)
}

fn configuration(url: &str, policy: &Value) -> Loaded {
    let tool = json!({
        "description": "Needs a token.",
        "executor": {
            "kind": "http",
            "method": "POST",
            "url": url,
            "allow_private": true,
            "headers": {"Authorization": "Bearer ${secret:token}"},
        },
    });
    let configuration = json!({"policy": policy, "tools": {"t": tool, "u": tool}});
    let options = LoadOptions::new().text("c", Syntax::Json, configuration.to_string());
    load(&options).expect("usable")
}

/// A token that is kept until it is renewed, as a client of a token service keeps it.
struct Kept {
    n_renewals: AtomicUsize,
    tokens: [&'static str; 2],
}

impl Secrets for Kept {
    fn get<'a>(&'a self, _: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let token = self.tokens[self.n_renewals.load(Ordering::SeqCst).min(1)];
        Box::pin(async move { Ok(Some(Secret::new(token))) })
    }

    fn renew<'a>(&'a self, _: &'a Reference) -> BoxFuture<'a, Result<(), SecretError>> {
        Box::pin(async {
            // It takes its time, in which others come for the same.
            tokio::time::sleep(Duration::from_millis(50)).await;
            self.n_renewals.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    }

    fn has(&self, _: &Reference) -> Result<bool, SecretError> {
        Ok(true)
    }
}

fn plane(url: &str, tokens: [&'static str; 2]) -> (Toolplane, Arc<Kept>) {
    let loaded = configuration(url, &json!({}));
    let kept = Arc::new(Kept {
        n_renewals: AtomicUsize::new(0),
        tokens,
    });
    let builder = Toolplane::builder().loaded(&loaded).secrets(kept.clone());
    (builder.build().expect("usable"), kept)
}

#[tokio::test]
async fn an_expired_token_is_renewed_once_and_the_call_succeeds() {
    let (url, n_requests) = api("fresh-token").await;
    let (plane, kept) = plane(&url, ["stale-token", "fresh-token"]);
    // Many at once, of two tools: all of them find the token expired, and one renewal is for all.
    let calls = (0..8).map(|n| plane.call(CallRequest::new(["t", "u"][n % 2])));
    let results = timeout(LONG, futures_util::future::join_all(calls))
        .await
        .expect("no hang");
    for result in results {
        result.expect("the new token is accepted");
    }
    assert_eq!(kept.n_renewals.load(Ordering::SeqCst), 1);
    let n_before = n_requests.load(Ordering::SeqCst);
    assert!(
        (9..=16).contains(&n_before),
        "each call was made twice at most: {n_before}"
    );
    plane.call(CallRequest::new("t")).await.expect("accepted");
    assert_eq!(n_requests.load(Ordering::SeqCst), n_before + 1);
}

#[tokio::test]
async fn a_token_that_cannot_be_renewed_switches_the_tool_off() {
    let (url, n_requests) = api("another").await;
    let (plane, kept) = plane(&url, ["stale-token", "stale-token"]);
    for _ in 0..6 {
        let result = timeout(LONG, plane.call(CallRequest::new("t")))
            .await
            .expect("no hang");
        assert_eq!(result.expect_err("refused").kind(), ErrorKind::Auth);
    }
    assert_eq!(n_requests.load(Ordering::SeqCst), 3, "and then nothing is sent");
    assert_eq!(kept.n_renewals.load(Ordering::SeqCst), 3);
    let disabled = plane.disabled();
    assert_eq!(disabled.len(), 1);
    assert_eq!(&*disabled[0].0, "t");
    assert!(plane.enable("t") && !plane.enable("t") && plane.disabled().is_empty());
    let _ = plane.call(CallRequest::new("t")).await;
    assert_eq!(n_requests.load(Ordering::SeqCst), 4, "an operator said so");
}

#[tokio::test]
async fn operators_are_told_that_a_reload_switches_a_tool_on_again() {
    let (url, _) = api("another").await;
    let told = Arc::new(Told::default());
    let plane = Toolplane::builder()
        .loaded(&configuration(&url, &json!({})))
        .secrets(Arc::new(Kept {
            n_renewals: AtomicUsize::new(0),
            tokens: ["stale-token", "stale-token"],
        }))
        .observer(told.clone())
        .build()
        .expect("usable");
    for _ in 0..3 {
        let _ = plane.call(CallRequest::new("t")).await;
    }
    assert_eq!(told.take(), ["tool `t` disabled firing"]);
    plane
        .reload(&configuration(&url, &json!({"blocklist": ["other"]})))
        .expect("usable");
    assert!(plane.disabled().is_empty());
    assert_eq!(told.take(), ["tool `t` disabled resolved"]);
}
