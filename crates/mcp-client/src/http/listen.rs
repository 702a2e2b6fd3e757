//! The stream on which a legacy server tells that its lists have changed.

use std::{sync::Arc, time::Duration};

use mcp_wire::{Message, SseDecoder, SseItem};
use tokio::time::sleep;

use super::{client::HttpAnswer, shared::HttpShared};
use crate::incoming;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Keeps the stream open until the connection closes, or the server says that there is none.
pub(super) async fn run(shared: Arc<HttpShared>) {
    let mut closed = shared.closed.subscribe();
    tokio::select! {
        _ = closed.wait_for(|closed| *closed) => {}
        () = keep_listening(&shared) => {}
    }
}

async fn keep_listening(shared: &HttpShared) {
    let mut pause = FIRST_PAUSE;
    loop {
        // The empty method stands for none.
        let Ok(headers) = shared.session().headers("", None) else {
            return;
        };
        match shared.client.get(headers).await {
            Ok(answer) if answer.status() == 200 => {
                let asked = follow(answer, shared).await;
                pause = asked
                    .unwrap_or(FIRST_PAUSE)
                    .clamp(Duration::from_millis(100), LONGEST_PAUSE);
            }
            // 405 by the specification; any other refusal means the same for us.
            Ok(answer) if (400..500).contains(&answer.status()) => return,
            _ => pause = (pause * 2).min(LONGEST_PAUSE),
        }
        sleep(pause).await;
    }
}

/// Reads the stream to its end; returns how long the server asks to wait before it is opened again.
async fn follow(mut answer: HttpAnswer, shared: &HttpShared) -> Option<Duration> {
    let mut decoder = SseDecoder::new(shared.limit);
    let mut retry = None;
    while let Ok(Some(chunk)) = answer.chunk().await {
        decoder.push(&chunk);
        while let Some(item) = decoder.next_item() {
            let SseItem::Event(event) = item else {
                shared.counting.oversize.add();
                continue;
            };
            retry = event.retry.or(retry);
            if event.data.is_empty() {
                continue;
            }
            match Message::from_server(event.data) {
                Ok(Message::Notification(note)) => incoming::note(&note, &shared.changes, &shared.counting),
                Ok(Message::Request(request)) => shared.reply(&request),
                Ok(Message::Response(_)) => shared.counting.unmatched.add(),
                Err(_) => shared.counting.garbage.add(),
            }
        }
    }
    retry
}
