//! Finds the answer to a request in what an HTTP server sends: one JSON body, or a stream of events.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use mcp_wire::{
    Message, ParseError, ParseErrorKind, Response, SseDecoder, SseItem, id_in_head, integer_id, has_method_in_head,
};
use raw_json::RawJson;
use tokio::time::sleep;

use super::{listen::is_final, response::HttpAnswer, shared::HttpShared};
use crate::{ClientError, ClientErrorKind, exchange::Exchange, incoming};

/// How much of a body of an error is read, and how much of it is told.
const ERROR_BODY: usize = 64 * 1024;
const EXCERPT: usize = 256;

/// Reads the answer to the request `id`.
pub(super) async fn read(
    mut answer: HttpAnswer,
    id: u64,
    exchange: &Exchange,
    shared: &HttpShared,
    resumable: bool,
) -> Result<RawJson, ClientError> {
    let status = answer.status();
    if !(200..300).contains(&status) {
        return Err(Box::pin(refusal(answer, Some(id))).await);
    }
    if matches!(status, 202 | 204) {
        return Err(ClientError::protocol(
            "the server accepted the request without an answer",
        ));
    }
    let content_type = answer.header(CONTENT_TYPE.as_str()).unwrap_or_default();
    let is_stream = is_stream(&answer);
    let is_json = content_type.is_empty() || content_type.split(';').next().is_some_and(is_json_type);
    if !is_stream && !is_json {
        let shown: String = content_type.to_ascii_lowercase().chars().take(EXCERPT).collect();
        return Err(ClientError::protocol(format!(
            "the answer is neither JSON nor a stream of events but `{shown}`"
        )));
    }
    if is_json {
        let body = collect(&mut answer, shared.limit).await?;
        return one(&body, id, exchange, shared);
    }
    let first = answer.chunk().await?.unwrap_or_default();
    // Some servers and proxies call a plain body a stream.
    let begins_json = match first.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => true,
        Some(b'[') => shared.session().takes_batches(),
        _ => false,
    };
    if begins_json {
        let body = gather(&mut answer, first, shared.limit).await?;
        return one(&body, id, exchange, shared);
    }
    let stream = Stream {
        answer,
        sought: Sought {
            id,
            exchange,
            shared,
            others: 0,
        },
        resumable,
        last_event: None,
        retry: None,
    };
    // Large, and most answers are none.
    Box::pin(stream.read(first)).await
}

fn is_json_type(essence: &str) -> bool {
    let essence = essence.trim().as_bytes();
    essence.eq_ignore_ascii_case(b"application/json")
        || essence
            .split_last_chunk::<5>()
            .is_some_and(|(_, end)| end.eq_ignore_ascii_case(b"+json"))
}

/// Whether an answer is a stream of events.
pub(super) fn is_stream(answer: &HttpAnswer) -> bool {
    const ESSENCE: &[u8] = b"text/event-stream";
    let content_type = answer.header(CONTENT_TYPE.as_str()).unwrap_or_default();
    let start = content_type.as_bytes().get(..ESSENCE.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(ESSENCE))
}

/// Reads a body up to the limit.
async fn collect(answer: &mut HttpAnswer, limit: usize) -> Result<Bytes, ClientError> {
    if answer.left().is_some_and(|left| left > limit as u64) {
        return Err(ClientError::new(ClientErrorKind::TooLarge { limit }));
    }
    if let Some(whole) = answer.whole().await? {
        return Ok(whole);
    }
    let first = answer.chunk().await?.unwrap_or_default();
    // Rare, and larger.
    Box::pin(gather(answer, first, limit)).await
}

/// Reads the rest of a body that comes in pieces, up to the limit.
async fn gather(answer: &mut HttpAnswer, first: Bytes, limit: usize) -> Result<Bytes, ClientError> {
    let too_large = || ClientError::new(ClientErrorKind::TooLarge { limit });
    if first.len() > limit {
        return Err(too_large());
    }
    let Some(second) = answer.chunk().await? else {
        return Ok(first);
    };
    let mut body = BytesMut::from(&first[..]);
    let mut next = Some(second);
    while let Some(chunk) = next {
        if body.len() + chunk.len() > limit {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
        next = answer.chunk().await?;
    }
    Ok(body.freeze())
}

/// Takes a body that must be the answer.
fn one(body: &Bytes, id: u64, exchange: &Exchange, shared: &HttpShared) -> Result<RawJson, ClientError> {
    match Message::from_server(body.clone()) {
        Ok(Message::Response(response)) => {
            if is_about(&response, id) {
                return finish(response, exchange);
            }
            shared.incoming.counting.unmatched.add();
            Err(ClientError::protocol(
                "the server answered another request than the one it was sent",
            ))
        }
        Ok(_) => Err(ClientError::protocol("the body is a message but no answer")),
        Err(error) if *error.kind() == ParseErrorKind::Batch && shared.session().takes_batches() => {
            let mut sought = Sought {
                id,
                exchange,
                shared,
                others: 0,
            };
            let outcome = sought.take(body);
            outcome.unwrap_or_else(|| Err(ClientError::protocol("the body is a batch without the answer")))
        }
        Err(error) => {
            shared.incoming.counting.garbage.add();
            Err(ClientError::protocol("the answer is no valid message").because(error))
        }
    }
}

/// Whether a response in the answer to a request is about it. An error without an id can be about nothing else.
fn is_about(response: &Response, id: u64) -> bool {
    match &response.id {
        Some(echoed) => integer_id(echoed) == Some(id),
        None => response.outcome.is_err(),
    }
}

fn finish(response: Response, exchange: &Exchange) -> Result<RawJson, ClientError> {
    exchange.mark_answered();
    response
        .outcome
        .map_err(|error| ClientError::new(ClientErrorKind::Rpc(error)))
}

/// The answer that is looked for among other messages, which are taken on the way.
struct Sought<'a> {
    id: u64,
    exchange: &'a Exchange,
    shared: &'a HttpShared,
    /// How many answers to other requests there were.
    others: usize,
}

/// A stream of events in which the answer is looked for.
struct Stream<'a> {
    answer: HttpAnswer,
    sought: Sought<'a>,
    /// Whether the stream may be opened again behind the last event, as a legacy server lets us.
    resumable: bool,
    last_event: Option<String>,
    /// How long the server asks to wait before that.
    retry: Option<Duration>,
}

/// How long to wait before a stream is opened again: unless the server says it, at least, and at most.
const PAUSE: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Stream<'_> {
    async fn read(mut self, first: Bytes) -> Result<RawJson, ClientError> {
        let mut decoder = SseDecoder::new(self.sought.shared.limit);
        let mut chunk = Ok(Some(first));
        loop {
            match chunk {
                Ok(Some(bytes)) => {
                    decoder.push(&bytes);
                    while let Some(item) = decoder.next_item() {
                        if let Some(outcome) = self.item(item) {
                            return outcome;
                        }
                    }
                }
                ended => {
                    if !self.resume().await {
                        return Err(ended.err().unwrap_or_else(|| self.unanswered()));
                    }
                    decoder = SseDecoder::new(self.sought.shared.limit);
                }
            }
            chunk = self.answer.chunk().await;
        }
    }

    fn unanswered(&self) -> ClientError {
        ClientError::protocol(match self.sought.others {
            0 => "the stream ended without an answer",
            _ => "the stream ended with answers to other requests only",
        })
    }

    /// Opens the stream again behind its last event; false when the server offers no such thing. A server that ends
    /// every stream at once gets no further than the deadline of the request.
    async fn resume(&mut self) -> bool {
        let Some(last_event) = self.last_event.as_deref().filter(|_| self.resumable) else {
            return false;
        };
        let mut pause = self.retry.unwrap_or(PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        loop {
            sleep(pause).await;
            match self.sought.shared.listen(Some(last_event)).await {
                Ok(answer) if answer.status() == 200 => {
                    self.answer = answer;
                    return true;
                }
                Ok(answer) if answer.status() < 400 || is_final(answer.status()) => return false,
                _ => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }

    fn item(&mut self, item: SseItem) -> Option<Result<RawJson, ClientError>> {
        let data = match item {
            SseItem::Event(event) => {
                if let Some(id) = event.id {
                    // An empty one takes the place back that an earlier one gave.
                    self.last_event = Some(id).filter(|id| !id.is_empty());
                }
                self.retry = event.retry.or(self.retry);
                if event.data.is_empty() {
                    return None;
                }
                event.data
            }
            SseItem::Oversize { head, .. } => {
                let Sought { id, shared, .. } = self.sought;
                shared.incoming.counting.oversize.add();
                if has_method_in_head(&head) {
                    if let Some(refusal) = incoming::oversize(&head, shared.limit) {
                        shared.post_later(refusal.into());
                    }
                    return None;
                }
                let other = id_in_head(&head).is_some_and(|other| other != id);
                return (!other).then(|| {
                    Err(ClientError::new(ClientErrorKind::TooLarge {
                        limit: shared.limit,
                    }))
                });
            }
        };
        self.sought.take(&data)
    }
}

impl Sought<'_> {
    /// Takes what came in one piece; gives the outcome if the answer is in it.
    fn take(&mut self, data: &Bytes) -> Option<Result<RawJson, ClientError>> {
        let (shared, mut outcome) = (self.shared, None);
        shared.read(data, |text, message| {
            let taken = self.message(text, message);
            outcome = outcome.take().or(taken);
        });
        outcome
    }

    fn message(
        &mut self,
        text: &[u8],
        message: Result<Message, ParseError>,
    ) -> Option<Result<RawJson, ClientError>> {
        match message {
            Ok(Message::Response(response)) if is_about(&response, self.id) => {
                return Some(finish(response, self.exchange));
            }
            Ok(Message::Response(_)) => {
                self.others += 1;
                self.shared.incoming.counting.unmatched.add();
            }
            Ok(Message::Request(request)) => self.shared.reply(request, self.exchange.tag()),
            Ok(Message::Notification(note)) => match incoming::progress_of(&note) {
                Some((id, params)) if id == self.id => self.exchange.progress(params.clone()),
                Some(_) => self.shared.incoming.counting.notifications.add(),
                None => {
                    if let Some(note) = self.exchange.notification(note) {
                        self.shared.incoming.note(note);
                    }
                }
            },
            Err(error) => {
                self.shared.incoming.counting.garbage.add();
                if error.id().and_then(integer_id).or_else(|| id_in_head(text)) == Some(self.id) {
                    return Some(Err(
                        ClientError::protocol("the answer is no valid message").because(error)
                    ));
                }
            }
        }
        None
    }
}

/// Words an answer that is no success. Many servers put a JSON-RPC error into its body.
pub(super) async fn refusal(mut answer: HttpAnswer, id: Option<u64>) -> ClientError {
    let status = answer.status();
    if matches!(status, 401 | 403) {
        let challenge = answer.header("www-authenticate").map(str::to_owned);
        return ClientError::new(ClientErrorKind::Auth { status, challenge });
    }
    let retry_after = answer.header("retry-after").map(str::to_owned);
    let body = collect(&mut answer, ERROR_BODY).await.unwrap_or_default();
    let excerpt = String::from_utf8_lossy(&body).chars().take(EXCERPT).collect();
    let status_error = ClientError::new(ClientErrorKind::HttpStatus {
        status,
        body: excerpt,
        retry_after,
    });
    match Message::from_server(body) {
        Ok(Message::Response(Response {
            id: named,
            outcome: Err(error),
        })) => {
            let is_answer = id.is_some() && named.as_ref().and_then(integer_id) == id;
            let words = ClientError::new(ClientErrorKind::Rpc(error));
            if status >= 500 && !is_answer {
                // It may come from a fault behind which the request runs, or ran: what counts is that it is not answered.
                return status_error.because(words);
            }
            words.because(status_error).answering(is_answer)
        }
        _ => status_error,
    }
}
