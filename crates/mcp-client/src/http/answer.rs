//! Finds the response to a request in the answer of an HTTP server: a JSON body or an event stream.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use mcp_wire::{
    Message, ParseError, ParseErrorKind, Response, SseDecoder, SseItem, has_method_in_head, id_in_head,
    integer_id,
};
use raw_json::RawJson;
use tokio::time::sleep;

use super::{
    client::{HttpResponse, is_permanent_refusal},
    shared::HttpShared,
};
use crate::{ClientError, ClientErrorKind, exchange::Exchange, notifications, server_requests};

/// Maximum size of an error body that is read, in bytes.
const MAX_ERROR_BODY: usize = 64 * 1024;
/// Maximum length of an error body in an error, in characters.
const MAX_EXCERPT: usize = 256;

/// Reads the response to the request `id`.
pub(super) async fn read_answer(
    mut answer: HttpResponse,
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
    let is_stream = answer.is_event_stream();
    let is_json = content_type.is_empty() || content_type.split(';').next().is_some_and(is_json_type);
    if !is_stream && !is_json {
        let shown: String = content_type
            .to_ascii_lowercase()
            .chars()
            .take(MAX_EXCERPT)
            .collect();
        return Err(ClientError::protocol(format!(
            "unexpected content type `{shown}`, expected JSON or an event stream"
        )));
    }
    if is_json {
        let body = collect(&mut answer, shared.limit).await?;
        return read_json(&body, id, exchange, shared);
    }
    let first = answer.chunk().await?.unwrap_or_default();
    // Some servers and proxies declare a plain body as an event stream.
    let begins_json = match first.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => true,
        Some(b'[') => shared.session().takes_batches(),
        _ => false,
    };
    if begins_json {
        let body = collect_chunks(&mut answer, first, shared.limit).await?;
        return read_json(&body, id, exchange, shared);
    }
    let stream = EventStream {
        answer,
        search: AnswerSearch {
            id,
            exchange,
            shared,
            n_others: 0,
        },
        resumable,
        last_event: None,
        retry: None,
    };
    // Boxed: large, and most answers are not streams.
    Box::pin(stream.read(first)).await
}

fn is_json_type(essence: &str) -> bool {
    let essence = essence.trim().as_bytes();
    essence.eq_ignore_ascii_case(b"application/json")
        || essence
            .split_last_chunk::<5>()
            .is_some_and(|(_, end)| end.eq_ignore_ascii_case(b"+json"))
}

/// Reads a body up to the limit.
async fn collect(answer: &mut HttpResponse, limit: usize) -> Result<Bytes, ClientError> {
    if answer.remaining().is_some_and(|left| left > limit as u64) {
        return Err(ClientError::new(ClientErrorKind::TooLarge { limit }));
    }
    if let Some(whole) = answer.read_whole().await? {
        return Ok(whole);
    }
    let first = answer.chunk().await?.unwrap_or_default();
    // Boxed: rare, and larger.
    Box::pin(collect_chunks(answer, first, limit)).await
}

/// Reads the rest of a chunked body, up to the limit.
async fn collect_chunks(answer: &mut HttpResponse, first: Bytes, limit: usize) -> Result<Bytes, ClientError> {
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

/// Parses a body that must be the response.
fn read_json(
    body: &Bytes,
    id: u64,
    exchange: &Exchange,
    shared: &HttpShared,
) -> Result<RawJson, ClientError> {
    match Message::from_server(body.clone()) {
        Ok(Message::Response(response)) => {
            if is_answer_to(&response, id) {
                return finish(response, exchange);
            }
            shared.router.stats.unmatched.add();
            Err(ClientError::protocol("the response belongs to another request"))
        }
        Ok(_) => Err(ClientError::protocol("the body is a message but not a response")),
        Err(error) if *error.kind() == ParseErrorKind::Batch && shared.session().takes_batches() => {
            let mut search = AnswerSearch {
                id,
                exchange,
                shared,
                n_others: 0,
            };
            let outcome = search.take(body);
            outcome.unwrap_or_else(|| Err(ClientError::protocol("the batch does not contain the response")))
        }
        Err(error) => {
            shared.router.stats.garbage.add();
            Err(ClientError::protocol("the response is not a valid message").with_source(error))
        }
    }
}

/// `true` if a response in the answer to a request belongs to it. An error without an id can belong to nothing else.
fn is_answer_to(response: &Response, id: u64) -> bool {
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

/// Search for the response among other messages, which are dispatched on the way.
struct AnswerSearch<'a> {
    id: u64,
    exchange: &'a Exchange,
    shared: &'a HttpShared,
    /// Number of responses to other requests.
    n_others: usize,
}

/// Event stream that is searched for the response.
struct EventStream<'a> {
    answer: HttpResponse,
    search: AnswerSearch<'a>,
    /// `true` if the stream can be resumed after its last event, as legacy servers allow.
    resumable: bool,
    last_event: Option<String>,
    /// Pause before resumption that the server asks for.
    retry: Option<Duration>,
}

/// Pause before a stream is resumed, unless the server asks for another one.
const DEFAULT_RESUME_PAUSE: Duration = Duration::from_secs(1);
/// Minimum pause before a stream is resumed.
const MIN_RESUME_PAUSE: Duration = Duration::from_millis(100);
/// Maximum pause before a stream is resumed.
const MAX_RESUME_PAUSE: Duration = Duration::from_secs(30);

impl EventStream<'_> {
    async fn read(mut self, first: Bytes) -> Result<RawJson, ClientError> {
        let mut decoder = SseDecoder::new(self.search.shared.limit);
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
                        return Err(ended.err().unwrap_or_else(|| self.missing_response()));
                    }
                    decoder = SseDecoder::new(self.search.shared.limit);
                }
            }
            chunk = self.answer.chunk().await;
        }
    }

    fn missing_response(&self) -> ClientError {
        ClientError::protocol(match self.search.n_others {
            0 => "the stream ended without an answer",
            _ => "the stream ended with answers to other requests only",
        })
    }

    /// Resumes the stream after its last event. Returns `false` if the server does not support it. A server that ends
    /// every stream at once is bounded by the deadline of the request.
    async fn resume(&mut self) -> bool {
        let Some(last_event) = self.last_event.as_deref().filter(|_| self.resumable) else {
            return false;
        };
        let mut pause = self
            .retry
            .unwrap_or(DEFAULT_RESUME_PAUSE)
            .clamp(MIN_RESUME_PAUSE, MAX_RESUME_PAUSE);
        loop {
            sleep(pause).await;
            match self.search.shared.listen(Some(last_event)).await {
                Ok(answer) if answer.status() == 200 => {
                    self.answer = answer;
                    return true;
                }
                Ok(answer) if answer.status() < 400 || is_permanent_refusal(answer.status()) => return false,
                _ => pause = (pause * 2).min(MAX_RESUME_PAUSE),
            }
        }
    }

    fn item(&mut self, item: SseItem) -> Option<Result<RawJson, ClientError>> {
        let data = match item {
            SseItem::Event(event) => {
                if let Some(id) = event.id {
                    // An empty id resets the last event.
                    self.last_event = Some(id).filter(|id| !id.is_empty());
                }
                self.retry = event.retry.or(self.retry);
                if event.data.is_empty() {
                    return None;
                }
                event.data
            }
            SseItem::Oversize { head, .. } => {
                let AnswerSearch { id, shared, .. } = self.search;
                shared.router.stats.oversize.add();
                if has_method_in_head(&head) {
                    if let Some(refusal) = server_requests::oversize_response(&head, shared.limit) {
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
        self.search.take(&data)
    }
}

impl AnswerSearch<'_> {
    /// Handles the data of one event or body. Returns the outcome if it contains the response.
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
            Ok(Message::Response(response)) if is_answer_to(&response, self.id) => {
                return Some(finish(response, self.exchange));
            }
            Ok(Message::Response(_)) => {
                self.n_others += 1;
                self.shared.router.stats.unmatched.add();
            }
            Ok(Message::Request(request)) => self.shared.reply(request, self.exchange.tag()),
            Ok(Message::Notification(note)) => match notifications::progress_target(&note) {
                Some((id, params)) if id == self.id => self.exchange.report_progress(params.clone()),
                Some(_) => self.shared.router.stats.notifications.add(),
                None => {
                    if let Some(note) = self.exchange.deliver_notification(note) {
                        self.shared.router.notification(note);
                    }
                }
            },
            Err(error) => {
                self.shared.router.stats.garbage.add();
                if error.id().and_then(integer_id).or_else(|| id_in_head(text)) == Some(self.id) {
                    return Some(Err(
                        ClientError::protocol("the response is not a valid message").with_source(error)
                    ));
                }
            }
        }
        None
    }
}

/// Converts an unsuccessful answer into an error. Many servers put a JSON-RPC error into its body.
pub(super) async fn refusal(mut answer: HttpResponse, id: Option<u64>) -> ClientError {
    let status = answer.status();
    if matches!(status, 401 | 403) {
        let challenge = answer.header("www-authenticate").map(str::to_owned);
        return ClientError::new(ClientErrorKind::Auth { status, challenge });
    }
    let retry_after = answer.header("retry-after").map(str::to_owned);
    let body = collect(&mut answer, MAX_ERROR_BODY).await.unwrap_or_default();
    let excerpt = String::from_utf8_lossy(&body).chars().take(MAX_EXCERPT).collect();
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
                // The error may come from a proxy while the request runs: all that is known is that there is no
                // response.
                return status_error.with_source(words);
            }
            words.with_source(status_error).with_is_answer(is_answer)
        }
        _ => status_error,
    }
}
