//! Notification streams: a legacy server's GET stream, and the subscription at a modern server.

use std::{future::pending, mem, sync::Arc, time::Duration};

use mcp_wire::{Message, Params, ParseError, SseDecoder, SseItem, integer_id, method};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::{
    client::{HttpResponse, is_permanent_refusal},
    shared::HttpShared,
};
use crate::notifications::stream_backoff;

const MIN_PAUSE: Duration = Duration::from_millis(100);

/// Keeps the GET stream of a legacy server open until the connection closes, or the server has no such stream.
pub(super) async fn listen_legacy(shared: Arc<HttpShared>, first_answer: oneshot::Sender<()>) {
    let mut closed = shared.closed.subscribe();
    tokio::select! {
        _ = closed.wait_for(|closed| *closed) => {}
        () = keep_legacy_stream(&shared, first_answer) => {}
    }
}

/// Keeps the subscription at a modern server open until the connection closes, with the filter that is currently
/// wanted.
pub(super) async fn listen_modern(shared: Arc<HttpShared>) {
    let mut closed = shared.closed.subscribe();
    tokio::select! {
        _ = closed.wait_for(|closed| *closed) => {}
        () = keep_modern_stream(&shared) => {}
    }
}

async fn keep_legacy_stream(shared: &HttpShared, first_answer: oneshot::Sender<()>) {
    let mut first_answer = Some(first_answer);
    let mut changes = shared.router.notifier.subscribe();
    let mut pause = stream_backoff::INITIAL;
    let mut last_event = None;
    // `had_gap` is `true` after a time without a stream; `gap_pause` is the pause after the last stream that could not
    // be resumed.
    let (mut had_gap, mut gap_pause) = (false, stream_backoff::INITIAL / 2);
    loop {
        let generation = shared.session().generation();
        let openings = changes.borrow_and_update().openings;
        let start = Instant::now();
        let answer = shared.listen(last_event.as_deref()).await;
        // Fails if the opener of the connection has left.
        let _ = first_answer.take().map(|first_answer| first_answer.send(()));
        match answer {
            // The answer is a web page or the like: there is no such stream.
            Ok(answer) if answer.status() == 200 && !answer.is_event_stream() => return,
            Ok(answer) if answer.status() == 200 => {
                if had_gap && last_event.is_none() {
                    // Changes during the gap are unknown.
                    shared.router.notifier.record_gap();
                }
                had_gap = true;
                let mut state = StreamState::Acknowledged;
                let end = tokio::select! {
                    end = read_stream(answer, shared, None, &mut state) => end,
                    // The server may keep the stream of a session that it no longer knows.
                    _ = changes.wait_for(|changes| changes.openings != openings) => {
                        last_event = None;
                        continue;
                    }
                };
                // An empty id resets the last event.
                last_event = end.last_event.or(last_event).filter(|id| !id.is_empty());
                let mut shortest = MIN_PAUSE;
                pause = stream_backoff::INITIAL;
                if last_event.is_none() {
                    pause = stream_backoff::next_pause(gap_pause, start);
                    (gap_pause, shortest) = (pause, pause);
                }
                let wait = end.retry.unwrap_or(pause).clamp(shortest, stream_backoff::MAX);
                sleep(wait).await;
                continue;
            }
            // The stream cannot be resumed at this event, but may still exist.
            Ok(answer) if (400..500).contains(&answer.status()) && last_event.is_some() => last_event = None,
            Ok(answer) if is_permanent_refusal(answer.status()) => {
                // 405 by the specification; any other refusal means the same, except for that of a restarted server
                // that no longer knows the session. While nothing is called, no one else would detect that.
                if !(may_be_expired(answer.status()) && shared.probe_session(generation).await) {
                    return;
                }
                pause = (pause * 2).min(stream_backoff::MAX);
            }
            _ => pause = (pause * 2).min(stream_backoff::MAX),
        }
        // Changes until the next attempt are missed.
        had_gap = true;
        sleep(pause).await;
    }
}

async fn keep_modern_stream(shared: &HttpShared) {
    let mut subscription = shared.subscription.subscribe();
    let mut pause = stream_backoff::INITIAL;
    let mut state = StreamState::Initial;
    loop {
        let params = subscription.borrow_and_update().clone();
        let start = Instant::now();
        let ended = match params {
            None => None,
            Some(params) => tokio::select! {
                ended = subscribe(shared, params.into(), &mut state) => ended,
                _ = subscription.changed() => {
                    if state == StreamState::Acknowledged {
                        state = StreamState::Replaced;
                    }
                    continue;
                }
            },
        };
        let again = async {
            // A server that refused is asked again only for another filter.
            let Some(StreamEnd { retry, .. }) = ended else {
                return pending().await;
            };
            pause = stream_backoff::next_pause(pause, start);
            sleep(retry.unwrap_or_default().clamp(pause, stream_backoff::MAX)).await;
            // Changes since the end of the stream are unknown.
            shared.router.notifier.record_all_changed();
            state = StreamState::Reopened;
        };
        tokio::select! {
            () = again => {}
            changed = subscription.changed() => if changed.is_err() { return },
        }
    }
}

/// Opens a subscription and reads it to its end. Returns `None` if the server refuses it.
async fn subscribe(shared: &HttpShared, params: Params, state: &mut StreamState) -> Option<StreamEnd> {
    let id = shared.next_id();
    let body = mcp_wire::request(id, method::SUBSCRIPTIONS_LISTEN, &params).into();
    let headers = shared.session().headers(method::SUBSCRIPTIONS_LISTEN, &params);
    match shared.client.post(headers, body).await {
        Ok(answer) if answer.status() == 200 => {
            if !answer.is_event_stream() {
                return None;
            }
            Some(read_stream(answer, shared, Some(id), state).await)
        }
        Ok(answer) if answer.status() < 400 || is_permanent_refusal(answer.status()) => None,
        _ => Some(StreamEnd::default()),
    }
}

/// `true` if a refusal may mean an unknown session: 404 by the specification, 400 in practice.
fn may_be_expired(status: u16) -> bool {
    matches!(status, 400 | 404)
}

/// End of a stream, with the server's instructions for the next one.
#[derive(Default)]
struct StreamEnd {
    last_event: Option<String>,
    /// Pause before the stream is reopened that the server asks for.
    retry: Option<Duration>,
}

/// State of the subscription. Until the server acknowledges a stream, changes may be missed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamState {
    /// No stream yet.
    Initial,
    /// The server has acknowledged the stream: changes are received.
    Acknowledged,
    /// The stream replaces another one.
    Replaced,
    /// The stream follows one that ended, after a pause.
    Reopened,
}

/// Reads a stream to its end, which is also the response to the request that opened it.
async fn read_stream(
    mut answer: HttpResponse,
    shared: &HttpShared,
    id: Option<u64>,
    state: &mut StreamState,
) -> StreamEnd {
    let mut decoder = SseDecoder::new(shared.limit);
    let mut end = StreamEnd::default();
    while let Ok(Some(chunk)) = answer.chunk().await {
        decoder.push(&chunk);
        while let Some(item) = decoder.next_item() {
            let SseItem::Event(event) = item else {
                shared.router.stats.oversize.add();
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
                    match mem::replace(state, StreamState::Acknowledged) {
                        StreamState::Initial | StreamState::Acknowledged => {}
                        StreamState::Replaced => shared.router.notifier.record_all_changed(),
                        StreamState::Reopened => shared.router.notifier.record_gap(),
                    }
                }
                is_over |= handle_message(shared, id, message);
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

/// Dispatches a message of the stream. Returns `true` if it is the response to the request that opened it.
fn handle_message(shared: &HttpShared, id: Option<u64>, message: Result<Message, ParseError>) -> bool {
    match message {
        Ok(Message::Notification(note)) => shared.router.notification(note),
        Ok(Message::Request(request)) => shared.reply(request, None),
        Ok(Message::Response(response))
            if id.is_some() && response.id.as_ref().and_then(integer_id) == id =>
        {
            return true;
        }
        Ok(Message::Response(_)) => shared.router.stats.unmatched.add(),
        Err(_) => shared.router.stats.garbage.add(),
    }
    false
}
