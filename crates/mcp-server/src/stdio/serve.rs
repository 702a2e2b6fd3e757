use std::{future::Future, io, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
    time::timeout,
};

use super::{connection::Connection, options::StdioOptions, session_info::SessionInfo, writer::write_frames};
use crate::{Service, protocol::Core};

/// Maximum number of responses and notifications that wait to be written.
const QUEUE: usize = 256;

/// Serves one client that writes one message per line, until its input ends or `shutdown` completes. Requests in flight are
/// answered before the connection ends.
///
/// Requests run concurrently and are answered as they finish. A line that is not a message is answered with an error and
/// has no other effect.
///
/// # Examples
///
/// ```
/// # use mcp_server::{Answer, RequestContext, ServerIdentity, Service, StdioOptions, serve_stdio, unknown_method};
/// # use mcp_wire::{Request, Revision, RpcError};
/// # use raw_json::RawJson;
/// # struct Empty;
/// # impl Service for Empty {
/// #     fn info(&self) -> ServerIdentity { ServerIdentity::new("empty", "1") }
/// #     fn capabilities(&self, _: Revision) -> RawJson { RawJson::object() }
/// #     async fn call(&self, request: Request, _: &RequestContext) -> Result<Answer, RpcError> {
/// #         Err(unknown_method(&request.method))
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let (input, mut output) = (&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"[..], Vec::new());
/// serve_stdio(Empty, input, &mut output, StdioOptions::default(), std::future::pending()).await?;
/// assert_eq!(output, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
/// # Ok(())
/// # }
/// ```
///
/// # Cancellation
/// When the future is dropped, the connection ends and the requests in flight are cancelled. Responses that wait to be
/// written are lost; `shutdown` lets them finish.
///
/// # Errors
/// Fails if the input cannot be read or the output cannot be written. Requests in flight are cancelled then.
pub async fn serve_stdio<S, R, W>(
    service: S,
    reader: R,
    writer: W,
    options: StdioOptions,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: Service,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    serve_connection(
        Arc::new(Core::new(service)),
        None,
        reader,
        writer,
        options,
        shutdown,
    )
    .await
}

/// Serves one connection of a service that may have others, with its `session` if it has one.
pub(crate) async fn serve_connection<S, R, W>(
    core: Arc<Core<S>>,
    session: Option<Arc<SessionInfo>>,
    reader: R,
    writer: W,
    options: StdioOptions,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: Service,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (out, frames) = mpsc::channel(QUEUE);
    let drain = options.drain;
    let mut writing = Box::pin(write_frames(frames, writer));
    let mut connection = Connection::new(core, session, out, options);
    tokio::select! {
        biased;
        // The queue is open while the connection is served, so the writer ends with an error only.
        written = &mut writing => return written,
        () = shutdown => {}
        read = connection.read(reader) => read?,
    }
    let end = async {
        tokio::select! {
            written = &mut writing => return written,
            () = connection.finish() => {}
        }
        writing.await
    };
    // Requests that take longer are cancelled with the connection.
    timeout(drain, end).await.unwrap_or(Ok(()))
}
