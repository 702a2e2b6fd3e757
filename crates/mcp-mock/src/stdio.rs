//! Connections over byte streams: what comes in is noted, what goes out may misbehave.

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
    delivery::{Delivery, Framing, Piece},
    plan::{Intake, Plan, Plans, instead_of_listening},
    service::MockService,
    state::State,
};

/// How much may be on its way between the mock and the server behind it.
const BUFFER: usize = 64 * 1024;
/// How long a message may be.
pub(crate) const MAX_MESSAGE: usize = 256 * 1024 * 1024;

/// Serves one client until its input ends or `shutdown` comes, or until the script closes the connection.
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
    let plans = Arc::new(Plans::default());
    let service = MockService::new(Arc::clone(&state), Arc::clone(&plans));
    let options = StdioOptions {
        max_message: MAX_MESSAGE,
        notifier: state.notices.clone(),
        ..StdioOptions::default()
    };
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
        // Its output has ended, which ends the other side of this race.
        future::pending::<()>().await;
    };
    tokio::select! {
        written = pump_out(&state, &plans, refused, from_inner, writer) => written,
        () = work => Ok(()),
    }
}

struct Inbound {
    state: Arc<State>,
    plans: Arc<Plans>,
    /// Answers to what the server behind never sees.
    refuse: mpsc::UnboundedSender<Vec<u8>>,
}

impl Inbound {
    /// Passes on what comes in until it ends.
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
        match self.state.take_in(line.clone(), &HeaderMap::new()) {
            Intake::Request(plan) => {
                deaf = deafness(&plan);
                if plan.opens_nothing() {
                    line = instead_of_listening(&line);
                }
                self.plans.put(plan);
            }
            Intake::Refused(id, error) => {
                // Nobody is left to read it when the other side is gone.
                let _ = self.refuse.send(mcp_wire::error(Some(id.as_raw()), &error));
                return Ok(());
            }
            Intake::Notification(Some(cancelled)) => drop(self.plans.take(&cancelled)),
            Intake::Notification(None) | Intake::Other => {}
        }
        to_inner.write_all(&line).await?;
        to_inner.write_all(b"\n").await?;
        sleep(deaf).await;
        Ok(())
    }
}

/// How long nothing is read after this request.
fn deafness(plan: &Plan) -> Duration {
    let times = plan
        .misbehaviours()
        .iter()
        .map(|misbehaviour| match misbehaviour {
            Misbehavior::Deaf(time) => *time,
            _ => Duration::ZERO,
        });
    times.sum()
}

type Delayed = Pin<Box<dyn Future<Output = Vec<Piece>> + Send>>;

/// Passes on what the server behind sends until it ends, or until the connection is to be closed.
async fn pump_out(
    state: &State,
    plans: &Plans,
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

/// How a line is sent, and after which time if it may come out of its turn.
fn outgoing(state: &State, plans: &Plans, line: &Bytes) -> (Option<Duration>, Vec<Piece>) {
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
            (None, vec![Piece::Bytes(framed.into())])
        }
    }
}

/// The plan of the request that a line answers, if it has a say in how.
fn planned(plans: &Plans, line: &Bytes) -> Option<Arc<Plan>> {
    let Ok(Message::Response(response)) = Message::from_server(line.clone()) else {
        return None;
    };
    let plan = plans.take(response.id.as_ref().unwrap_or(&RawJson::null()))?;
    Some(plan).filter(|plan| !plan.is_harmless())
}

/// Sends a message as its script will have it; tells whether the connection is to be closed.
async fn send(pieces: Vec<Piece>, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<bool> {
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => {
                writer.write_all(&bytes).await?;
                writer.flush().await?;
            }
            Piece::Pause(time) => sleep(time).await,
            Piece::Close => return Ok(true),
        }
    }
    Ok(false)
}
