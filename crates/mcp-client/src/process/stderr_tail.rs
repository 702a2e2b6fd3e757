use std::{collections::VecDeque, future::poll_fn, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::AsyncRead,
    sync::watch,
    time::{Instant, timeout},
};

use crate::unbuffered_read::read_unbuffered;

/// Tail of a child's stderr. The stream is drained, so that the child never blocks on it. All lines also go to the log,
/// at a limited rate.
#[derive(Debug)]
pub(crate) struct StderrTail {
    tail: Mutex<VecDeque<u8>>,
    finished: watch::Sender<bool>,
}

/// Size of the tail, in bytes.
const CAPACITY: usize = 8 * 1024;
/// Maximum number of logged lines per second.
const LINES_PER_SECOND: u32 = 50;

impl StderrTail {
    /// Drains the stream in a task of its own.
    pub(crate) fn drain(stderr: impl AsyncRead + Unpin + Send + 'static, name: String) -> Arc<Self> {
        let tail = Arc::new(Self {
            tail: Mutex::default(),
            finished: watch::Sender::new(false),
        });
        tokio::spawn(Arc::clone(&tail).read(stderr, name));
        tail
    }

    async fn read(self: Arc<Self>, mut stderr: impl AsyncRead + Unpin, name: String) {
        let mut log = StderrLog {
            name,
            line: Vec::new(),
            second: Instant::now(),
            lines: 0,
            suppressed: 0,
        };
        let mut take = |chunk: &[u8]| {
            let mut tail = self.tail.lock();
            tail.extend(chunk);
            let excess = tail.len().saturating_sub(CAPACITY);
            tail.drain(..excess);
            drop(tail);
            if tracing::enabled!(tracing::Level::DEBUG) {
                log.take(chunk);
            }
        };
        while let Ok(1..) = poll_fn(|cx| read_unbuffered(&mut stderr, cx, &mut take)).await {}
        self.finished.send_replace(true);
    }

    /// Text of the tail.
    pub(crate) fn text(&self) -> String {
        let tail = self.tail.lock();
        let (front, back) = tail.as_slices();
        String::from_utf8_lossy(&[front, back].concat()).trim().to_owned()
    }

    /// Waits for the end of the stream, up to the given timeout.
    pub(crate) async fn finished(&self, moment: Duration) {
        let _ = timeout(moment, self.finished.subscribe().wait_for(|finished| *finished)).await;
    }
}

/// Splits the stream into lines for the log.
struct StderrLog {
    name: String,
    line: Vec<u8>,
    second: Instant,
    lines: u32,
    suppressed: u64,
}

impl StderrLog {
    const MAX_LINE: usize = 1024;

    fn take(&mut self, chunk: &[u8]) {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let room = Self::MAX_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        if self.second.elapsed() >= Duration::from_secs(1) {
            if self.suppressed > 0 {
                tracing::debug!(
                    server = self.name,
                    lines = self.suppressed,
                    "stderr lines suppressed"
                );
            }
            (self.second, self.lines, self.suppressed) = (Instant::now(), 0, 0);
        }
        if self.lines < LINES_PER_SECOND {
            self.lines += 1;
            let line = String::from_utf8_lossy(&self.line);
            tracing::debug!(server = self.name, "stderr: {}", line.trim_end());
        } else {
            self.suppressed += 1;
        }
        self.line.clear();
    }
}
