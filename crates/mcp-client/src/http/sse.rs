//! The transport of 2024-11-05: the server speaks on one stream of events, and names there the place to post to.
//!
//! It is turned into a pair of byte streams framed like stdio, so that everything a connection does about servers
//! that misbehave is done once.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use mcp_wire::{
    Line, LineDecoder, Message, Notification, Request, SseDecoder, SseItem, end_line, id_in_head, integer_id,
    method, has_method_in_head,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split},
    sync::{Semaphore, mpsc},
    task::AbortHandle,
    time::timeout,
};
use url::Url;

use super::{
    HttpEndpoint, answer,
    client::{HttpClient, has_user},
    pool::Headers,
    response::HttpAnswer,
};
use crate::{ClientError, ClientErrorKind, ConnectionOptions};

/// How much is on the way between the connection and the tasks here.
const BUFFER: usize = 64 * 1024;
/// How many requests are posted at once.
const AT_ONCE: usize = 64;
/// How long a server may hold the post of a request; the deadline of the request is mostly much earlier.
const LONGEST_POST: Duration = Duration::from_secs(300);

/// The stream of events and what is posted beside it.
pub(crate) struct Opened {
    /// Carries messages as lines, in both directions.
    pub(crate) lines: DuplexStream,
    /// The requests, by their ids, to which no answer will come, and why.
    pub(crate) failures: mpsc::Receiver<(u64, ClientError)>,
}

/// Opens the stream of events.
pub(crate) async fn open(
    endpoint: &HttpEndpoint,
    options: &ConnectionOptions,
) -> Result<Opened, ClientError> {
    let limit = options.start_timeout;
    let opening = timeout(limit, Listening::open(endpoint, options.max_message));
    let (listening, target) = opening
        .await
        .map_err(|_| ClientError::new(ClientErrorKind::Timeout(limit)))??;
    let client = HttpClient::new(&target, endpoint.headers.clone())?;
    let (ours, theirs) = duplex(BUFFER);
    let (reader, writer) = split(theirs);
    let (failed, failures) = mpsc::channel(AT_ONCE);
    let posting = Posting {
        client: Arc::new(client),
        turns: Arc::new(Semaphore::new(AT_ONCE)),
        failed: failed.clone(),
        // Less than what the connection waits for its writes.
        limit: options.write_stall / 2,
    };
    tokio::spawn(async move {
        // The end of either direction is the end of the connection.
        tokio::select! {
            () = listening.run(writer, failed) => {}
            () = posting.run(reader) => {}
        }
    });
    Ok(Opened {
        lines: ours,
        failures,
    })
}

/// The direction from the server.
struct Listening {
    answer: HttpAnswer,
    decoder: SseDecoder,
    limit: usize,
}

impl Listening {
    async fn open(endpoint: &HttpEndpoint, limit: usize) -> Result<(Self, Url), ClientError> {
        let client = HttpClient::new(&endpoint.url, endpoint.headers.clone())?;
        let headers = vec![(ACCEPT, HeaderValue::from_static("text/event-stream"))];
        let answer = client.get(headers).await.map_err(|failure| failure.error)?;
        if answer.status() != 200 {
            return Err(answer::refusal(answer, None).await);
        }
        if !answer::is_stream(&answer) {
            return Err(ClientError::protocol("the server opens no stream of events"));
        }
        let mut listening = Self {
            answer,
            decoder: SseDecoder::new(limit),
            limit,
        };
        let target = listening.target(&endpoint.url).await?;
        Ok((listening, target))
    }

    /// The place to post to, which the first event names. Headers are sent there that may be secrets, so it must be
    /// of the same origin.
    async fn target(&mut self, base: &Url) -> Result<Url, ClientError> {
        let SseItem::Event(event) = self.next().await? else {
            return Err(ClientError::protocol("the first event is too large"));
        };
        let place = str::from_utf8(&event.data)
            .ok()
            .filter(|place| event.event.as_deref() == Some("endpoint") && !place.trim().is_empty())
            .and_then(|place| base.join(place.trim()).ok());
        let place = place.ok_or_else(|| ClientError::protocol("the first event names no endpoint"))?;
        if has_user(&place) {
            Err(ClientError::protocol(
                "the server names an endpoint with a user or a password",
            ))
        } else if place.origin() != base.origin() {
            Err(ClientError::protocol(
                "the server names an endpoint of another origin",
            ))
        } else {
            Ok(place)
        }
    }

    async fn next(&mut self) -> Result<SseItem, ClientError> {
        loop {
            if let Some(item) = self.decoder.next_item() {
                return Ok(item);
            }
            match self.answer.chunk().await? {
                Some(chunk) => self.decoder.push(&chunk),
                None => return Err(ClientError::closed("the server ended the stream")),
            }
        }
    }

    /// Writes what the server says as lines.
    async fn run(mut self, mut writer: WriteHalf<DuplexStream>, failed: mpsc::Sender<(u64, ClientError)>) {
        loop {
            let is_over = match self.next().await {
                Ok(SseItem::Event(event)) if event.data.is_empty() => false,
                Ok(SseItem::Event(event)) => {
                    let mut line = event.data.to_vec();
                    end_line(&mut line);
                    writer.write_all(&line).await.is_err()
                }
                // It answers nothing. What the server asks in it stays without an answer, as if it had not been said.
                Ok(SseItem::Oversize { head, .. }) if has_method_in_head(&head) => false,
                Ok(SseItem::Oversize { head, .. }) => {
                    // Without an id it may have been the answer to anything.
                    let Some(id) = id_in_head(&head) else { return };
                    let limit = self.limit;
                    let error = ClientError::new(ClientErrorKind::TooLarge { limit }).sent(true);
                    failed.send((id, error)).await.is_err()
                }
                Err(error) => {
                    tracing::debug!(%error, "the stream of the server has ended");
                    true
                }
            };
            if is_over {
                return;
            }
        }
    }
}

/// The direction to the server.
struct Posting {
    client: Arc<HttpClient>,
    turns: Arc<Semaphore>,
    failed: mpsc::Sender<(u64, ClientError)>,
    limit: Duration,
}

impl Posting {
    /// Posts the lines of the connection. A server may hold the post of a request until it has answered, so only
    /// what has no answer is waited for.
    async fn run(self, mut reader: ReadHalf<DuplexStream>) {
        let mut decoder = LineDecoder::new(usize::MAX);
        let mut posts: HashMap<u64, AbortHandle> = HashMap::new();
        while let Ok(1..) = reader.read_buf(decoder.buffer()).await {
            while let Some(next) = decoder.next_line() {
                let Line::Complete(frame) = next else { continue };
                let message = Message::from_client(frame.clone());
                if let Ok(Message::Request(Request { id, .. })) = &message
                    && let Some(id) = integer_id(id.as_raw())
                {
                    posts.retain(|_, post| !post.is_finished());
                    posts.insert(id, self.request(id, frame));
                    continue;
                }
                if let Ok(Message::Notification(note)) = &message
                    && let Some(post) = cancelled(note).and_then(|id| posts.remove(&id))
                {
                    // It may wait for its turn, or for an answer that nobody wants any more.
                    post.abort();
                }
                if let Err(error) = post(&self.client, frame, None, self.limit).await {
                    tracing::debug!(%error, "a message to the server was lost");
                }
            }
        }
    }

    /// Posts a request as soon as it is its turn.
    fn request(&self, id: u64, frame: Bytes) -> AbortHandle {
        let (client, failed) = (Arc::clone(&self.client), self.failed.clone());
        let turns = Arc::clone(&self.turns);
        let posting = async move {
            let posting = async {
                let _turn = turns.acquire().await;
                post(&client, frame, Some(id), LONGEST_POST).await
            };
            let posted = tokio::select! {
                posted = posting => posted,
                () = failed.closed() => return,
            };
            if let Err(error) = posted {
                // A connection that is gone wants no answer.
                let _ = failed.send((id, error)).await;
            }
        };
        tokio::spawn(posting).abort_handle()
    }
}

/// The request that a notification takes back.
fn cancelled(note: &Notification) -> Option<u64> {
    let is_it = note.method == method::CANCELLED;
    let params = note.params.as_ref().filter(|_| is_it)?;
    integer_id(&params.get("requestId")?)
}

/// Posts a message, which is the request `id` unless it has no answer; an error says why the server will not answer.
async fn post(
    client: &HttpClient,
    frame: Bytes,
    id: Option<u64>,
    limit: Duration,
) -> Result<(), ClientError> {
    let headers: Headers = vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    let posting = async {
        let mut answer = client.post(headers, frame).await.map_err(|failure| {
            let was_sent = !failure.unsent;
            failure.error.sent(was_sent)
        })?;
        if (200..300).contains(&answer.status()) {
            return answer.sent().await;
        }
        Err(answer::refusal(answer, id).await.sent(true))
    };
    match timeout(limit, posting).await {
        Ok(posted) => posted,
        Err(_) => Err(ClientError::new(ClientErrorKind::Timeout(limit)).sent(true)),
    }
}
