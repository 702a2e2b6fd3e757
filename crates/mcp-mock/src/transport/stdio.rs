//! Byte streams: records messages and breaks answers as their scripts ask.

use std::{future::Future, io, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, future, stream::FuturesUnordered};
use http::HeaderMap;
use mcp_server::{StdioOptions, serve_stdio};
use mcp_wire::{Line, LineDecoder, Message};
use raw_json::RawJson;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex, split},
    sync::mpsc,
    time::sleep,
};

use crate::{
    Misbehavior,
    reply::plan::{Incoming, PendingPlans, ReplyPlan, instead_of_listening},
    server::{service::MockService, state::State},
    transport::delivery::{Delivery, Framing, SendStep},
};

/// Size of the buffer between the mock and the inner server, in bytes.
const BUFFER: usize = 64 * 1024;
/// Maximum size of a message, in bytes.
pub(crate) const MAX_MESSAGE: usize = 256 * 1024 * 1024;

/// Serves one client until its input ends, `shutdown` completes, or the script closes the connection.
pub(crate) async fn serve<R, W>(
    state: Arc<State>,
    reader: R,
    writer: W,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let plans = Arc::new(PendingPlans::default());
    let service = MockService::new(Arc::clone(&state), Arc::clone(&plans));
    let options = StdioOptions::default()
        .max_message(MAX_MESSAGE)
        .notifier(state.notices.clone());
    let (ours, theirs) = duplex(BUFFER);
    let ((from_inner, to_inner), (inner_reader, inner_writer)) = (split(ours), split(theirs));
    let (refuse, refused) = mpsc::unbounded_channel();
    let inbound = Inbound {
        state: Arc::clone(&state),
        plans: Arc::clone(&plans),
        refuse,
    };
    let work = async {
        let serving = serve_stdio(service, inner_reader, inner_writer, options, shutdown);
        let _ = future::join(inbound.pump(reader, to_inner), serving).await;
        // The inner server's output has ended, which ends the other branch of the select.
        future::pending::<()>().await;
    };
    tokio::select! {
        written = pump_out(&state, &plans, refused, from_inner, writer) => written,
        () = work => Ok(()),
    }
}

struct Inbound {
    state: Arc<State>,
    plans: Arc<PendingPlans>,
    /// Answers to requests that the inner server never sees.
    refuse: mpsc::UnboundedSender<Vec<u8>>,
}

impl Inbound {
    /// Forwards the client's messages until they end.
    async fn pump(
        self,
        mut reader: impl AsyncRead + Unpin,
        mut to_inner: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut lines = LineDecoder::new(MAX_MESSAGE);
        loop {
            let has_ended = reader.read_buf(lines.buffer()).await? == 0;
            while let Some(line) = lines.next_line() {
                self.line(line, &mut to_inner).await?;
            }
            if has_ended {
                if let Some(line) = lines.finish() {
                    self.line(line, &mut to_inner).await?;
                }
                return to_inner.shutdown().await;
            }
        }
    }

    async fn line(&self, line: Line, to_inner: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let Line::Complete(line) = line else {
            return Ok(());
        };
        let mut line = line;
        let mut deaf = Duration::ZERO;
        match self.state.receive(line.clone(), &HeaderMap::new()) {
            Incoming::Request(plan) => {
                deaf = deafness(&plan);
                if plan.opens_nothing() {
                    line = instead_of_listening(&line);
                }
                self.plans.put(plan);
            }
            Incoming::Refused(id, error) => {
                // The receiver is gone if the connection is.
                let _ = self.refuse.send(mcp_wire::error(Some(id.as_raw()), &error));
                return Ok(());
            }
            Incoming::Notification(Some(cancelled)) => drop(self.plans.take(&cancelled)),
            Incoming::Notification(None) | Incoming::Other => {}
        }
        to_inner.write_all(&line).await?;
        to_inner.write_all(b"\n").await?;
        sleep(deaf).await;
        Ok(())
    }
}

/// Returns the time for which nothing is read after this request.
fn deafness(plan: &ReplyPlan) -> Duration {
    let times = plan.misbehaviors().iter().map(|misbehavior| match misbehavior {
        Misbehavior::Deaf(time) => *time,
        _ => Duration::ZERO,
    });
    times.sum()
}

type Delayed = Pin<Box<dyn Future<Output = Vec<SendStep>> + Send>>;

/// Forwards the inner server's messages until they end or the script closes the connection.
async fn pump_out(
    state: &State,
    plans: &PendingPlans,
    mut refused: mpsc::UnboundedReceiver<Vec<u8>>,
    mut from_inner: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut lines = LineDecoder::new(MAX_MESSAGE);
    let mut delayed: FuturesUnordered<Delayed> = FuturesUnordered::new();
    let mut has_ended = false;
    while !has_ended || !delayed.is_empty() {
        tokio::select! {
            biased;
            Some(pieces) = delayed.next() => {
                if send(pieces, &mut writer).await? {
                    return writer.shutdown().await;
                }
            }
            Some(frame) = refused.recv(), if !has_ended => {
                writer.write_all(&mcp_wire::into_line(frame)).await?;
            }
            read = from_inner.read_buf(lines.buffer()), if !has_ended => {
                has_ended = read? == 0;
                while let Some(Line::Complete(line)) = lines.next_line() {
                    match outgoing(state, plans, &line) {
                        (Some(delay), pieces) => delayed.push(Box::pin(async move {
                            sleep(delay).await;
                            pieces
                        })),
                        (None, pieces) => {
                            if send(pieces, &mut writer).await? {
                                return writer.shutdown().await;
                            }
                        }
                    }
                }
            }
        }
        writer.flush().await?;
    }
    Ok(())
}

/// Returns the steps of sending a line, and a delay if it may be sent out of order.
fn outgoing(state: &State, plans: &PendingPlans, line: &Bytes) -> (Option<Duration>, Vec<SendStep>) {
    if let Some(plan) = planned(plans, line) {
        let pieces = match plan.never_answers() {
            true => Vec::new(),
            false => Delivery::new(&plan, line.to_vec()).pieces(Framing::Line),
        };
        return (Some(plan.delay()), pieces);
    }
    match state.notification(line) {
        Some(reply) => {
            let delivery = Delivery::notification(&reply, line.to_vec());
            let pieces = delivery.map(|delivery| delivery.pieces(Framing::Line));
            let delay = Some(reply.delays()).filter(|delay| !delay.is_zero());
            (delay, pieces.unwrap_or_default())
        }
        None => {
            let framed = Framing::Line.frame(line.to_vec());
            (None, vec![SendStep::Bytes(framed.into())])
        }
    }
}

/// Returns the plan of the request that a line answers, if it changes the answer.
fn planned(plans: &PendingPlans, line: &Bytes) -> Option<Arc<ReplyPlan>> {
    let Ok(Message::Response(response)) = Message::from_server(line.clone()) else {
        return None;
    };
    let plan = plans.take(response.id.as_ref().unwrap_or(&RawJson::null()))?;
    Some(plan).filter(|plan| !plan.is_harmless())
}

/// Sends a message as its script asks. Returns `true` if the connection must be closed.
async fn send(pieces: Vec<SendStep>, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<bool> {
    for piece in pieces {
        match piece {
            SendStep::Bytes(bytes) => {
                writer.write_all(&bytes).await?;
                writer.flush().await?;
            }
            SendStep::Pause(time) => sleep(time).await,
            SendStep::Close => return Ok(true),
        }
    }
    Ok(false)
}
