use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use mcp_client::{ConnectionOptions, RequestOptions};
use serde_json::{Value, json};
use tokio::io::AsyncWrite;

use crate::support::peer::{call, connect_counted, connect_with, raw, within};

/// Writer that counts its writes.
pub(crate) struct Counted<W> {
    pub(crate) inner: W,
    pub(crate) n_writes: Arc<AtomicUsize>,
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Counted<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.n_writes.fetch_add(1, Ordering::SeqCst);
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// On one thread that runs the most recently woken task first, like all worker threads of this runtime.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn callers_that_are_ready_together_share_a_write() {
    let calling = tokio::spawn(async {
        let (connection, mut peer, n_writes) = connect_counted().await;
        let before = n_writes.load(Ordering::SeqCst);
        let asked: Vec<_> = (0..16).map(|_| call(&connection, within(60))).collect();
        for _ in 0..16 {
            peer.serve_one().await;
        }
        for asked in asked {
            asked.await.unwrap().unwrap();
        }
        n_writes.load(Ordering::SeqCst) - before
    });
    // One write by the single caller, one by the others, and one more if the peer is answered in between.
    let n_writes = calling.await.unwrap();
    assert!(n_writes <= 3, "{n_writes} writes for 16 calls");
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_is_alone_gets_its_request_through_a_pipe_of_any_size() {
    for buffer in [1, 7, 150, 64 * 1024] {
        let (connection, mut peer) = connect_with(ConnectionOptions::default(), buffer).await;
        for length in [0, 1, 200, 70_000, 200_000] {
            let text = "x".repeat(length);
            let params = raw(&json!({"name": "t", "arguments": {"text": text}}).to_string());
            let asking = connection.clone();
            let asked =
                tokio::spawn(async move { asking.request("tools/call", Some(params), within(600)).await });
            let message = peer.next().await;
            assert_eq!(message["params"]["arguments"]["text"], Value::from(text));
            peer.answer(message["id"].as_u64().unwrap(), "{}").await;
            assert_eq!(asked.await.unwrap().unwrap().as_str(), "{}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_queued_before_is_written_before() {
    for buffer in [5, 64 * 1024] {
        let (connection, mut peer) = connect_with(ConnectionOptions::default(), buffer).await;
        let asking = connection.clone();
        let asked = tokio::spawn(async move {
            for number in 0..3 {
                let params = raw(&json!({ "number": number }).to_string());
                asking.notify("notifications/told", Some(&params)).await.unwrap();
            }
            asking.request("tools/call", None, within(60)).await
        });
        for number in 0..3 {
            let params = peer.notification("notifications/told").await;
            assert_eq!(params["number"], number);
        }
        peer.serve_one().await;
        asked.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_has_begun_is_ended_when_its_caller_leaves() {
    let (connection, mut peer) = connect_with(ConnectionOptions::default(), 16).await;
    let leaving = call(&connection, within(60));
    // The request is sent as far as the pipe accepts it.
    tokio::task::yield_now().await;
    leaving.abort();
    assert!(leaving.await.unwrap_err().is_cancelled());
    let id = peer.request("tools/call").await;
    let params = peer.notification("notifications/cancelled").await;
    assert_eq!(params["requestId"], id);
    let asked = call(&connection, within(60));
    peer.serve_one().await;
    asked.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn many_callers_and_a_narrow_pipe() {
    let (connection, mut peer) = connect_with(ConnectionOptions::default(), 100).await;
    let asked: Vec<_> = (0..1000).map(|_| call(&connection, within(600))).collect();
    for _ in 0..1000 {
        peer.serve_one().await;
    }
    for asked in asked {
        asked.await.unwrap().unwrap();
    }
    assert_eq!(connection.pending(), 0);
    // The next caller is alone again.
    let again = call(&connection, RequestOptions::default());
    peer.serve_one().await;
    again.await.unwrap().unwrap();
}
