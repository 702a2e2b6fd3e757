//! The exchanges of one connection.

use std::{future::pending, pin::pin, sync::Arc};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::{
    ConnectionEnding, Direction, FaultEvent,
    exchange_plan::{ExchangePlan, Replacement},
    proxy::Shared,
    request_reader::RequestReader,
    shaper::{Shaper, StopReason},
};

/// A client's connection and its upstream connection.
struct Connection {
    shared: Arc<Shared>,
    requests: RequestReader<OwnedReadHalf>,
    client: OwnedWriteHalf,
    upstream: Option<(OwnedReadHalf, OwnedWriteHalf)>,
}

/// End of an exchange.
enum ExchangeEnd {
    /// Complete: the client may begin another one.
    Next,
    /// Cut by the plan.
    Cut(ConnectionEnding),
    /// Closed by the client.
    Left,
    /// Closed by the upstream, which may be unreachable.
    Ended,
}

/// Size of the read buffer, in bytes.
const BUFFER: usize = 16 * 1024;

pub(crate) async fn serve(shared: Arc<Shared>, client: TcpStream) {
    // Only matters for speed.
    let _ = client.set_nodelay(true);
    let (reader, client) = client.into_split();
    let mut connection = Connection {
        shared,
        requests: RequestReader::new(reader),
        client,
        upstream: None,
    };
    let (exchange, over) = if connection.shared.is_tcp {
        let (exchange, course) = connection.shared.begin(b"");
        (exchange, connection.stream(exchange, course).await)
    } else {
        loop {
            let Ok(Some(request)) = connection.requests.next().await else {
                return;
            };
            let (exchange, course) = connection.shared.begin(&request);
            match connection.exchange(exchange, request, course).await {
                ExchangeEnd::Next => {}
                over => break (exchange, over),
            }
        }
    };
    connection.end(exchange, over).await;
}

impl Connection {
    /// Handles a request and its answer.
    async fn exchange(&mut self, exchange: u64, request: Bytes, course: ExchangePlan) -> ExchangeEnd {
        match &course.instead {
            None => {}
            Some(Replacement::Answer { status, retry_after }) => {
                self.shared.history.add(exchange, FaultEvent::Answering);
                let answer = answer(*status, retry_after.as_deref());
                return match self.client.write_all(answer.as_bytes()).await {
                    Ok(()) => ExchangeEnd::Next,
                    Err(_) => ExchangeEnd::Left,
                };
            }
            Some(_) => return self.swallow().await,
        }
        if !self.connect(exchange).await {
            return ExchangeEnd::Ended;
        }
        self.pass(exchange, &request, course).await
    }

    /// Reads and discards everything.
    async fn swallow(&mut self) -> ExchangeEnd {
        self.requests.discard().await;
        ExchangeEnd::Left
    }

    /// Connects to the upstream, if it is not connected. Returns `false` if it is unreachable.
    async fn connect(&mut self, exchange: u64) -> bool {
        if self.upstream.is_some() {
            return true;
        }
        match TcpStream::connect(self.shared.upstream).await {
            Ok(upstream) => {
                let _ = upstream.set_nodelay(true);
                self.upstream = Some(upstream.into_split());
                true
            }
            Err(_) => {
                self.shared.history.add(exchange, FaultEvent::Unreachable);
                false
            }
        }
    }

    /// Forwards a request and its response until one side ends the exchange.
    async fn pass(&mut self, exchange: u64, request: &[u8], mut course: ExchangePlan) -> ExchangeEnd {
        let Self {
            shared,
            requests,
            client,
            upstream,
        } = self;
        let (reader, writer) = upstream.as_mut().expect("it is connected");
        let mut send = pin!(send(shared, exchange, &mut course.request, request, writer));
        let mut receive = pin!(receive(shared, exchange, &mut course.response, reader, client));
        let mut is_sent = false;
        loop {
            tokio::select! {
                biased;
                cut = &mut send, if !is_sent => match cut {
                    Some(over) => return over,
                    None => is_sent = true,
                },
                over = &mut receive => return over,
                filled = requests.fill() => match filled {
                    Ok(1..) if is_sent => return ExchangeEnd::Next,
                    // A request before the end of the response is handled later.
                    Ok(1..) => {}
                    _ => return ExchangeEnd::Left,
                },
            }
        }
    }

    /// Handles a connection as one exchange: both directions at once, until the upstream closes.
    async fn stream(&mut self, exchange: u64, mut course: ExchangePlan) -> ExchangeEnd {
        if course.instead.is_some() {
            return self.swallow().await;
        }
        if !self.connect(exchange).await {
            return ExchangeEnd::Ended;
        }
        let Self {
            shared,
            requests,
            client,
            upstream,
        } = self;
        let (reader, writer) = upstream.as_mut().expect("it is connected");
        let forward = async {
            while let Some(bytes) = requests.some().await {
                let sent = send(shared, exchange, &mut course.request, &bytes, writer);
                if let Some(over) = sent.await {
                    return over;
                }
            }
            // Waits for the rest of the response.
            let _ = writer.shutdown().await;
            pending().await
        };
        tokio::select! {
            over = forward => over,
            over = receive(shared, exchange, &mut course.response, reader, client) => over,
        }
    }

    /// Closes the connections in the way that the last exchange ended.
    async fn end(self, exchange: u64, over: ExchangeEnd) {
        let Self {
            shared,
            requests,
            mut client,
            upstream,
        } = self;
        match over {
            ExchangeEnd::Next => {}
            ExchangeEnd::Left => shared.history.add(exchange, FaultEvent::Left),
            ExchangeEnd::Ended => {
                let _ = client.shutdown().await;
                shared.history.add(exchange, FaultEvent::Ended);
            }
            ExchangeEnd::Cut(ending) => {
                shared.closing.send_modify(|closing| *closing += 1);
                if ending == ConnectionEnding::Reset {
                    let stream: &TcpStream = client.as_ref();
                    let _ = stream.set_zero_linger();
                    // Dropping it would first close its direction regularly.
                    client.forget();
                } else {
                    drop(client);
                }
                drop(requests);
                if let Some((mut reader, mut writer)) = upstream {
                    let _ = writer.shutdown().await;
                    discard(&mut reader).await;
                }
                shared.history.add(exchange, FaultEvent::Ended);
                shared.closing.send_modify(|closing| *closing -= 1);
            }
        }
    }
}

/// Forwards bytes of the client. Returns the end of the exchange if it ended here.
async fn send(
    shared: &Shared,
    exchange: u64,
    lane: &mut Shaper,
    bytes: &[u8],
    upstream: &mut OwnedWriteHalf,
) -> Option<ExchangeEnd> {
    match lane.pass(bytes, upstream).await {
        // An upstream that closed its input may have answered.
        Ok(()) | Err(StopReason::Gone) => None,
        Err(StopReason::Cut(after, ending)) => {
            let direction = Direction::Request;
            shared.history.add(exchange, FaultEvent::Cut { direction, after });
            if ending != ConnectionEnding::HalfClose {
                return Some(ExchangeEnd::Cut(ending));
            }
            let _ = upstream.shutdown().await;
            None
        }
    }
}

/// Forwards bytes of the upstream until it closes.
async fn receive(
    shared: &Shared,
    exchange: u64,
    lane: &mut Shaper,
    upstream: &mut OwnedReadHalf,
    client: &mut OwnedWriteHalf,
) -> ExchangeEnd {
    let mut buffer = vec![0; BUFFER];
    let mut is_first = true;
    loop {
        let Ok(length @ 1..) = upstream.read(&mut buffer).await else {
            return ExchangeEnd::Ended;
        };
        if std::mem::take(&mut is_first) {
            shared.history.add(exchange, FaultEvent::Answering);
        }
        if let Some(after) = lane.cut_within(length) {
            let direction = Direction::Response;
            shared.history.add(exchange, FaultEvent::Cut { direction, after });
        }
        match lane.pass(&buffer[..length], client).await {
            Ok(()) => {}
            Err(StopReason::Gone) => return ExchangeEnd::Left,
            Err(StopReason::Cut(_, ending)) => {
                if ending != ConnectionEnding::HalfClose {
                    return ExchangeEnd::Cut(ending);
                }
                let _ = client.shutdown().await;
                discard(upstream).await;
                // The client sees a half-closed connection, and closes it.
                return pending().await;
            }
        }
    }
}

async fn discard(reader: &mut OwnedReadHalf) {
    let mut buffer = vec![0; BUFFER];
    while matches!(reader.read(&mut buffer).await, Ok(1..)) {}
}

/// Returns an HTTP answer with a status and no body.
fn answer(status: u16, retry_after: Option<&str>) -> String {
    let after = retry_after.map_or(String::new(), |after| format!("retry-after: {after}\r\n"));
    format!("HTTP/1.1 {status} Fault\r\n{after}content-length: 0\r\n\r\n")
}
