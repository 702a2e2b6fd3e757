//! WebSocket transport: the subprotocol `mcp`, and one JSON-RPC message in each text frame (RFC 6455).
//!
//! Like HTTP+SSE it is adapted to a pair of byte streams framed like stdio, so that the protection against misbehaving
//! servers exists only once.

use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use http::{HeaderName, HeaderValue, Request, Uri, header, uri::PathAndQuery};
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use mcp_wire::{Line, LineDecoder, end_line};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split},
    net::TcpStream,
    sync::watch,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        self, Message, Utf8Bytes,
        error::{CapacityError, Error as Fault},
        handshake::client::generate_key,
        protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode},
    },
};
use tower_service::Service as _;

use super::{
    HttpEndpoint,
    client::{has_user, innermost, tcp_connector, tls},
};
use crate::{ClientError, ClientErrorKind, ConnectionOptions};

/// Size of the buffer in each direction between the connection and the bridge, in bytes.
const BUFFER: usize = 64 * 1024;
/// Size of the buffer that frames are read into, in bytes.
const READ_BUFFER: usize = 16 * 1024;
/// Maximum length of a refusal's body in an error, in characters.
const MAX_EXCERPT: usize = 256;
/// Maximum time to send the close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
const SUBPROTOCOL: &str = "mcp";

type Socket = WebSocketStream<TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>>;

/// Bridge between an open WebSocket and the lines of a connection.
pub(crate) struct Bridge {
    socket: Socket,
    lines: DuplexStream,
    /// Maximum size of a message of the server, in bytes.
    limit: usize,
}

/// Opens a WebSocket. The returned lines carry its messages while the bridge runs.
pub(crate) async fn open(
    endpoint: &HttpEndpoint,
    options: &ConnectionOptions,
) -> Result<(DuplexStream, Bridge), ClientError> {
    let limit = options.start_timeout;
    let opened = timeout(limit, connect(endpoint, options.max_message)).await;
    let socket = opened.map_err(|_| ClientError::new(ClientErrorKind::Timeout(limit)))??;
    let (ours, theirs) = duplex(BUFFER);
    let bridge = Bridge {
        socket,
        lines: theirs,
        limit: options.max_message,
    };
    Ok((ours, bridge))
}

async fn connect(endpoint: &HttpEndpoint, limit: usize) -> Result<Socket, ClientError> {
    let (uri, request) = handshake(endpoint)?;
    let mut connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls::configuration()?)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp_connector());
    let stream = connector.call(uri).await.map_err(|error| {
        let kind = ClientErrorKind::Unreachable(innermost(&*error));
        ClientError::new(kind)
    })?;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit));
    match client_async_with_config(request, TokioIo::new(stream), Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(Fault::Http(response)) => Err(refusal(&response)),
        Err(fault) => Err(fault_error(fault, limit)),
    }
}

/// Builds the handshake request, and the address of the server in the form that the connector expects.
fn handshake(endpoint: &HttpEndpoint) -> Result<(Uri, Request<()>), ClientError> {
    let invalid = |detail: String| ClientError::new(ClientErrorKind::Invalid(detail));
    if has_user(&endpoint.url) {
        return Err(invalid(
            "the server's URL must hold no user or password; send them in a header".to_owned(),
        ));
    }
    let reserved = |name: &&HeaderName| name.as_str().starts_with("sec-websocket-");
    if let Some(name) = endpoint.headers.keys().find(reserved) {
        return Err(invalid(format!(
            "the header `{name}` cannot be set: the client controls the handshake"
        )));
    }
    let unusable = |error: http::Error| invalid("invalid server URL".to_owned()).with_source(error);
    let uri: Uri = endpoint
        .url
        .as_str()
        .parse()
        .map_err(|error| unusable(http::Error::from(error)))?;
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let scheme = if endpoint.url.scheme() == "wss" {
        "https"
    } else {
        "http"
    };
    let address = Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(uri.path_and_query().map_or("/", PathAndQuery::as_str))
        .build()
        .map_err(unusable)?;
    let mut request = Request::builder().uri(uri.clone()).body(()).map_err(unusable)?;
    let headers = request.headers_mut();
    headers.clone_from(&endpoint.headers);
    if !headers.contains_key(header::HOST) {
        let host = HeaderValue::from_str(authority).expect("an authority is visible ASCII");
        headers.insert(header::HOST, host);
    }
    let key = HeaderValue::from_str(&generate_key()).expect("base64 is visible ASCII");
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(header::SEC_WEBSOCKET_KEY, key);
    headers.insert(
        header::SEC_WEBSOCKET_PROTOCOL,
        HeaderValue::from_static(SUBPROTOCOL),
    );
    Ok((address, request))
}

/// Converts an answer that refuses the handshake into an error.
fn refusal(response: &http::Response<Option<Vec<u8>>>) -> ClientError {
    let status = response.status().as_u16();
    let text = |name| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
    ClientError::new(match status {
        401 | 403 => ClientErrorKind::Auth {
            status,
            challenge: text(header::WWW_AUTHENTICATE),
        },
        _ => {
            let body = response.body().as_deref().unwrap_or_default();
            ClientErrorKind::HttpStatus {
                status,
                body: String::from_utf8_lossy(body).chars().take(MAX_EXCERPT).collect(),
                retry_after: text(header::RETRY_AFTER),
            }
        }
    })
}

/// Converts a fault of a WebSocket into an error.
fn fault_error(fault: Fault, limit: usize) -> ClientError {
    match fault {
        Fault::Capacity(CapacityError::MessageTooLong { .. }) => {
            ClientError::new(ClientErrorKind::TooLarge { limit })
        }
        Fault::ConnectionClosed | Fault::AlreadyClosed => {
            ClientError::closed("the server closed the connection")
        }
        Fault::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            ClientError::closed("the server closed the connection")
        }
        Fault::Io(error) => ClientError::closed(error.to_string()).with_quoted_source(error),
        Fault::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => {
            ClientError::closed("the server closed the connection")
        }
        fault => ClientError::closed(format!("invalid WebSocket message from the server: {fault}")),
    }
}

impl Bridge {
    /// Carries messages until either side ends. Stores the cause in `reason` before the lines end, so that all received
    /// messages are read first.
    pub(crate) async fn run(self, mut end: watch::Receiver<bool>, reason: Arc<OnceLock<ClientError>>) {
        let Self { socket, lines, limit } = self;
        let (mut sink, stream) = socket.split();
        let (reader, mut writer) = split(lines);
        let ended = async {
            // The signal ends with the connection.
            let _ = end.wait_for(|ended| *ended).await;
        };
        let mut receiver = Receiver { stream, limit };
        let close = tokio::select! {
            () = ended => CloseCode::Normal,
            ended = receiver.run(&mut writer) => {
                let code = ended.code;
                let _ = reason.set(ended.error);
                let _ = writer.shutdown().await;
                code
            }
            error = send(reader, &mut sink) => {
                let _ = reason.set(error);
                let _ = writer.shutdown().await;
                CloseCode::Normal
            }
        };
        let frame = CloseFrame {
            code: close,
            reason: Utf8Bytes::default(),
        };
        // A server that does not read cannot delay this.
        let _ = timeout(CLOSE_TIMEOUT, sink.send(Message::Close(Some(frame)))).await;
    }
}

/// Cause of the end of the stream, and the close code for the server.
struct EndOfStream {
    error: ClientError,
    code: CloseCode,
}

/// Receives the messages of the server.
struct Receiver {
    stream: SplitStream<Socket>,
    limit: usize,
}

impl Receiver {
    /// Writes the messages of the server as lines.
    async fn run(&mut self, writer: &mut WriteHalf<DuplexStream>) -> EndOfStream {
        let ended = |error, code| EndOfStream { error, code };
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => {
                    let mut line = Vec::from(Bytes::from(text));
                    end_line(&mut line);
                    if writer.write_all(&line).await.is_err() {
                        return ended(
                            ClientError::closed("the connection was closed"),
                            CloseCode::Normal,
                        );
                    }
                }
                Some(Ok(Message::Binary(_) | Message::Frame(_))) => {
                    let reason = "the server sent a binary message, but MCP uses text messages only";
                    return ended(ClientError::closed(reason), CloseCode::Unsupported);
                }
                // Pings are answered when the next message is read.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(frame))) => {
                    return ended(
                        ClientError::closed(close_message(frame.as_ref())),
                        CloseCode::Normal,
                    );
                }
                Some(Err(fault)) => {
                    let code = match &fault {
                        Fault::Capacity(_) => CloseCode::Size,
                        _ => CloseCode::Protocol,
                    };
                    return ended(fault_error(fault, self.limit), code);
                }
                None => {
                    return ended(
                        ClientError::closed("the server closed the connection"),
                        CloseCode::Normal,
                    );
                }
            }
        }
    }
}

/// Describes how the server closed the connection.
fn close_message(frame: Option<&CloseFrame>) -> String {
    match frame {
        Some(CloseFrame { code, reason }) if !reason.is_empty() => {
            format!(
                "the server closed the connection with code {code}: {}",
                reason.escape_debug()
            )
        }
        Some(CloseFrame { code, .. }) => format!("the server closed the connection with code {code}"),
        None => "the server closed the connection".to_owned(),
    }
}

/// Sends each line of the connection as one message, until an error or the end of the lines.
async fn send(mut reader: ReadHalf<DuplexStream>, sink: &mut SplitSink<Socket, Message>) -> ClientError {
    let mut decoder = LineDecoder::new(usize::MAX);
    while let Ok(1..) = reader.read_buf(decoder.buffer()).await {
        while let Some(line) = decoder.next_line() {
            let Line::Complete(line) = line else { continue };
            let Ok(text) = Utf8Bytes::try_from(line) else {
                continue;
            };
            if let Err(fault) = sink.send(Message::Text(text)).await {
                return fault_error(fault, usize::MAX);
            }
        }
    }
    ClientError::closed("the connection was closed")
}
