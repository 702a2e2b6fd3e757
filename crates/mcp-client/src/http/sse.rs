//! HTTP+SSE, the transport of 2024-11-05: the server sends everything on one event stream, whose first event names the
//! URL to post to.
//!
//! It is adapted to a pair of byte streams framed like stdio, so that the protection against misbehaving servers exists
//! only once.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use mcp_wire::{
    Line, LineDecoder, Message, Notification, Request, SseDecoder, SseItem, end_line, has_method_in_head,
    id_in_head, integer_id, method,
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
    client::{Headers, HttpClient, HttpResponse, has_user},
};
use crate::{ClientError, ClientErrorKind, ConnectionOptions};

/// Size of the buffer in each direction between the connection and these tasks, in bytes.
const BUFFER: usize = 64 * 1024;
/// Maximum number of concurrent posts of requests.
const MAX_CONCURRENT_POSTS: usize = 64;
/// Maximum duration of the post of a request. Its deadline is usually much earlier.
const POST_TIMEOUT: Duration = Duration::from_secs(300);

/// Open transport, adapted to byte streams.
pub(crate) struct SseStreams {
    /// Messages as lines, in both directions.
    pub(crate) lines: DuplexStream,
    /// Ids of requests to which no response will come, with the reason.
    pub(crate) failures: mpsc::Receiver<(u64, ClientError)>,
}

/// Opens the event stream.
pub(crate) async fn open(
    endpoint: &HttpEndpoint,
    options: &ConnectionOptions,
) -> Result<SseStreams, ClientError> {
    let limit = options.start_timeout;
    let opening = timeout(limit, EventReader::open(endpoint, options.max_message));
    let (events, target) = opening
        .await
        .map_err(|_| ClientError::new(ClientErrorKind::Timeout(limit)))??;
    let client = HttpClient::new(&target, endpoint.headers.clone())?;
    let (ours, theirs) = duplex(BUFFER);
    let (reader, writer) = split(theirs);
    let (failed, failures) = mpsc::channel(MAX_CONCURRENT_POSTS);
    let poster = Poster {
        client: Arc::new(client),
        turns: Arc::new(Semaphore::new(MAX_CONCURRENT_POSTS)),
        failed: failed.clone(),
        // Shorter than the write timeout of the connection.
        limit: options.write_stall / 2,
    };
    tokio::spawn(async move {
        // The end of either direction ends the connection.
        tokio::select! {
            () = events.run(writer, failed) => {}
            () = poster.run(reader) => {}
        }
    });
    Ok(SseStreams {
        lines: ours,
        failures,
    })
}

/// Reads the events of the server.
struct EventReader {
    answer: HttpResponse,
    decoder: SseDecoder,
    limit: usize,
}

impl EventReader {
    async fn open(endpoint: &HttpEndpoint, limit: usize) -> Result<(Self, Url), ClientError> {
        let client = HttpClient::new(&endpoint.url, endpoint.headers.clone())?;
        let headers = vec![(ACCEPT, HeaderValue::from_static("text/event-stream"))];
        let answer = client.get(headers).await.map_err(|failure| failure.error)?;
        if answer.status() != 200 {
            return Err(answer::refusal(answer, None).await);
        }
        if !answer.is_event_stream() {
            return Err(ClientError::protocol("the server did not open an event stream"));
        }
        let mut events = Self {
            answer,
            decoder: SseDecoder::new(limit),
            limit,
        };
        let target = events.target(&endpoint.url).await?;
        Ok((events, target))
    }

    /// Returns the URL to post to, which the first event names. The headers that are sent there may be secrets, so it
    /// must have the same origin.
    async fn target(&mut self, base: &Url) -> Result<Url, ClientError> {
        let SseItem::Event(event) = self.next().await? else {
            return Err(ClientError::protocol("the first event is too large"));
        };
        let url = str::from_utf8(&event.data)
            .ok()
            .filter(|url| event.event.as_deref() == Some("endpoint") && !url.trim().is_empty())
            .and_then(|url| base.join(url.trim()).ok());
        let url = url.ok_or_else(|| ClientError::protocol("the first event names no endpoint"))?;
        if has_user(&url) {
            Err(ClientError::protocol(
                "the server names an endpoint with a user or a password",
            ))
        } else if url.origin() != base.origin() {
            Err(ClientError::protocol(
                "the server names an endpoint of another origin",
            ))
        } else {
            Ok(url)
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

    /// Writes the messages of the server as lines.
    async fn run(mut self, mut writer: WriteHalf<DuplexStream>, failed: mpsc::Sender<(u64, ClientError)>) {
        loop {
            let is_over = match self.next().await {
                Ok(SseItem::Event(event)) if event.data.is_empty() => false,
                Ok(SseItem::Event(event)) => {
                    let mut line = event.data.to_vec();
                    end_line(&mut line);
                    writer.write_all(&line).await.is_err()
                }
                // It is not a response. A request in it is dropped without an answer.
                Ok(SseItem::Oversize { head, .. }) if has_method_in_head(&head) => false,
                Ok(SseItem::Oversize { head, .. }) => {
                    // Without an id it may have been any response.
                    let Some(id) = id_in_head(&head) else { return };
                    let limit = self.limit;
                    let error = ClientError::new(ClientErrorKind::TooLarge { limit }).with_sent(true);
                    failed.send((id, error)).await.is_err()
                }
                Err(error) => {
                    tracing::debug!(%error, "the event stream has ended");
                    true
                }
            };
            if is_over {
                return;
            }
        }
    }
}

/// Posts the messages of the client.
struct Poster {
    client: Arc<HttpClient>,
    turns: Arc<Semaphore>,
    failed: mpsc::Sender<(u64, ClientError)>,
    limit: Duration,
}

impl Poster {
    /// Posts the lines of the connection. A server may hold the post of a request until it has responded, so only posts
    /// of other messages are awaited.
    async fn run(self, mut reader: ReadHalf<DuplexStream>) {
        let mut decoder = LineDecoder::new(usize::MAX);
        let mut posts: HashMap<u64, AbortHandle> = HashMap::new();
        while let Ok(1..) = reader.read_buf(decoder.buffer()).await {
            while let Some(next) = decoder.next_line() {
                let Line::Complete(frame) = next else { continue };
                // Our own message, which both readers understand in the same way.
                let message = Message::from_server(frame.clone());
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
                    // It may wait for a permit, or for a response that is no longer wanted.
                    post.abort();
                }
                if let Err(error) = post(&self.client, frame, None, self.limit).await {
                    tracing::debug!(%error, "failed to post a message to the server");
                }
            }
        }
    }

    /// Posts a request as soon as there is a permit.
    fn request(&self, id: u64, frame: Bytes) -> AbortHandle {
        let (client, failed) = (Arc::clone(&self.client), self.failed.clone());
        let turns = Arc::clone(&self.turns);
        let poster = async move {
            let poster = async {
                let _turn = turns.acquire().await;
                post(&client, frame, Some(id), POST_TIMEOUT).await
            };
            let posted = tokio::select! {
                posted = poster => posted,
                () = failed.closed() => return,
            };
            if let Err(error) = posted {
                // Fails if the connection is gone.
                let _ = failed.send((id, error)).await;
            }
        };
        tokio::spawn(poster).abort_handle()
    }
}

/// Id of the request that a notification cancels.
fn cancelled(note: &Notification) -> Option<u64> {
    let is_it = note.method == method::CANCELLED;
    let params = note.params.as_ref().filter(|_| is_it)?;
    integer_id(&params.get("requestId")?)
}

/// Posts a message. `id` is that of a request, or `None` for a message without a response. The error is the reason why
/// no response will come.
async fn post(
    client: &HttpClient,
    frame: Bytes,
    id: Option<u64>,
    limit: Duration,
) -> Result<(), ClientError> {
    let headers: Headers = vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    let poster = async {
        let mut answer = client.post(headers, frame).await.map_err(|failure| {
            let was_sent = !failure.unsent;
            failure.error.with_sent(was_sent)
        })?;
        if (200..300).contains(&answer.status()) {
            return answer.wait_until_sent().await;
        }
        Err(answer::refusal(answer, id).await.with_sent(true))
    };
    match timeout(limit, poster).await {
        Ok(posted) => posted,
        Err(_) => Err(ClientError::new(ClientErrorKind::Timeout(limit)).with_sent(true)),
    }
}
