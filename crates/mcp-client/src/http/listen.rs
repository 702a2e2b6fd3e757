//! The stream on which a server tells what no request is about, such as that its lists have changed.

use std::{future::pending, mem, sync::Arc, time::Duration};

use mcp_wire::{Message, Params, ParseError, SseDecoder, SseItem, integer_id, method};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::{answer::is_stream, response::HttpAnswer, shared::HttpShared};
use crate::pauses;

const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// Keeps the stream of a legacy server open until the connection closes, or the server says that there is none.
pub(super) async fn legacy(shared: Arc<HttpShared>, answered: oneshot::Sender<()>) {
    let mut closed = shared.closed.subscribe();
    tokio::select! {
        _ = closed.wait_for(|closed| *closed) => {}
        () = keep_listening(&shared, answered) => {}
    }
}

/// Keeps a modern server's stream open until the connection closes, for what is wanted at the time.
pub(super) async fn modern(shared: Arc<HttpShared>) {
    let mut closed = shared.closed.subscribe();
    tokio::select! {
        _ = closed.wait_for(|closed| *closed) => {}
        () = keep_subscribed(&shared) => {}
    }
}

async fn keep_listening(shared: &HttpShared, answered: oneshot::Sender<()>) {
    let mut answered = Some(answered);
    let mut changes = shared.incoming.changes.subscribe();
    let mut pause = pauses::FIRST;
    let mut last_event = None;
    // Whether there was a time without a stream, and the pause after the last one that cannot be gone on from.
    let (mut was_deaf, mut lost) = (false, pauses::FIRST / 2);
    loop {
        let generation = shared.session().generation();
        let openings = changes.borrow_and_update().openings;
        let start = Instant::now();
        let answer = shared.listen(last_event.as_deref()).await;
        // Who opens the connection may have left.
        let _ = answered.take().map(|answered| answered.send(()));
        match answer {
            // A page of the web, or the like: there is no such stream.
            Ok(answer) if answer.status() == 200 && !is_stream(&answer) => return,
            Ok(answer) if answer.status() == 200 => {
                if was_deaf && last_event.is_none() {
                    // What has changed since nobody listened is unknown.
                    shared.incoming.changes.gap();
                }
                was_deaf = true;
                let mut since = Since::Heard;
                let end = tokio::select! {
                    end = follow(answer, shared, None, &mut since) => end,
                    // The server may keep the stream of a session that it has forgotten.
                    _ = changes.wait_for(|changes| changes.openings != openings) => {
                        last_event = None;
                        continue;
                    }
                };
                // An empty one takes the place back that an earlier one gave.
                last_event = end.last_event.or(last_event).filter(|id| !id.is_empty());
                let mut shortest = SHORTEST_PAUSE;
                pause = pauses::FIRST;
                if last_event.is_none() {
                    pause = pauses::next(lost, start);
                    (lost, shortest) = (pause, pause);
                }
                let wait = end.retry.unwrap_or(pause).clamp(shortest, pauses::LONGEST);
                sleep(wait).await;
                continue;
            }
            // The place to go on from is unknown now: the stream itself may still be there.
            Ok(answer) if (400..500).contains(&answer.status()) && last_event.is_some() => last_event = None,
            Ok(answer) if is_final(answer.status()) => {
                // 405 by the specification; any other refusal means the same, but for one of a server that was started
                // again and knows the session no more. While nothing is called, nobody else finds that out.
                if !(may_be_expired(answer.status()) && shared.look_for_session(generation).await) {
                    return;
                }
                pause = (pause * 2).min(pauses::LONGEST);
            }
            _ => pause = (pause * 2).min(pauses::LONGEST),
        }
        // What changes until the next try is told to nobody.
        was_deaf = true;
        sleep(pause).await;
    }
}

async fn keep_subscribed(shared: &HttpShared) {
    let mut wanted = shared.wanted.subscribe();
    let mut pause = pauses::FIRST;
    let mut since = Since::First;
    loop {
        let params = wanted.borrow_and_update().clone();
        let start = Instant::now();
        let ended = match params {
            None => None,
            Some(params) => tokio::select! {
                ended = subscribe(shared, params.into(), &mut since) => ended,
                _ = wanted.changed() => {
                    if since == Since::Heard {
                        since = Since::Replaced;
                    }
                    continue;
                }
            },
        };
        let again = async {
            // A server that refuses is asked again when something else is wanted.
            let Some(End { retry: asked, .. }) = ended else {
                return pending().await;
            };
            pause = pauses::next(pause, start);
            sleep(asked.unwrap_or_default().clamp(pause, pauses::LONGEST)).await;
            // What has changed since nobody listened is unknown.
            shared.incoming.changes.everything();
            since = Since::Ended;
        };
        tokio::select! {
            () = again => {}
            changed = wanted.changed() => if changed.is_err() { return },
        }
    }
}

/// Opens a subscription and follows it to its end; nothing when the server refuses it.
async fn subscribe(shared: &HttpShared, params: Params, since: &mut Since) -> Option<End> {
    let id = shared.next_id();
    let body = mcp_wire::request(id, method::SUBSCRIPTIONS_LISTEN, &params).into();
    let headers = shared.session().headers(method::SUBSCRIPTIONS_LISTEN, &params);
    match shared.client.post(headers, body).await {
        Ok(answer) if answer.status() == 200 => {
            if !is_stream(&answer) {
                return None;
            }
            Some(follow(answer, shared, Some(id), since).await)
        }
        Ok(answer) if answer.status() < 400 || is_final(answer.status()) => None,
        _ => Some(End::default()),
    }
}

/// Whether a refusal says no for good: not too early, too many, or a fault that may pass.
pub(super) fn is_final(status: u16) -> bool {
    (400..500).contains(&status) && !matches!(status, 408 | 425 | 429)
}

/// Whether it may be the session that a refusal is about: 404 by the specification, 400 in practice.
fn may_be_expired(status: u16) -> bool {
    matches!(status, 400 | 404)
}

/// What a stream said of how to go on.
#[derive(Default)]
struct End {
    last_event: Option<String>,
    /// How long the server asks to wait before the stream is opened again.
    retry: Option<Duration>,
}

/// What was before a stream: until the server acknowledges this one, it may have told of changes that nobody hears of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// Nothing.
    First,
    /// The server has acknowledged it: what it tells is heard.
    Heard,
    /// A stream that was given up for this one.
    Replaced,
    /// A stream that ended, and a pause.
    Ended,
}

/// Reads a stream to its end, which is also the answer to the request that opened it.
async fn follow(mut answer: HttpAnswer, shared: &HttpShared, id: Option<u64>, since: &mut Since) -> End {
    let mut decoder = SseDecoder::new(shared.limit);
    let mut end = End::default();
    while let Ok(Some(chunk)) = answer.chunk().await {
        decoder.push(&chunk);
        while let Some(item) = decoder.next_item() {
            let SseItem::Event(event) = item else {
                shared.incoming.counting.oversize.add();
                continue;
            };
            end.retry = event.retry.or(end.retry);
            end.last_event = event.id.or(end.last_event);
            if event.data.is_empty() {
                continue;
            }
            let mut is_over = false;
            shared.read(&event.data, |_, message| {
                if is_acknowledgement(&message) {
                    match mem::replace(since, Since::Heard) {
                        Since::First | Since::Heard => {}
                        Since::Replaced => shared.incoming.changes.everything(),
                        Since::Ended => shared.incoming.changes.gap(),
                    }
                }
                is_over |= hear(shared, id, message);
            });
            if is_over {
                return end;
            }
        }
    }
    end
}

fn is_acknowledgement(message: &Result<Message, ParseError>) -> bool {
    matches!(message, Ok(Message::Notification(note)) if note.method == method::SUBSCRIPTIONS_ACKNOWLEDGED)
}

/// Takes what a stream brings; tells whether it is the answer to the request that opened it.
fn hear(shared: &HttpShared, id: Option<u64>, message: Result<Message, ParseError>) -> bool {
    match message {
        Ok(Message::Notification(note)) => shared.incoming.note(note),
        Ok(Message::Request(request)) => shared.reply(request, None),
        Ok(Message::Response(response)) if id.is_some() && response.id.as_ref().and_then(integer_id) == id => {
            return true;
        }
        Ok(Message::Response(_)) => shared.incoming.counting.unmatched.add(),
        Err(_) => shared.incoming.counting.garbage.add(),
    }
    false
}
