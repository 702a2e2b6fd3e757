use std::{io, time::Duration};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    time::sleep,
};

use crate::ConnectionEnding;

/// Traffic shaping of one direction of one exchange.
#[derive(Debug, Default)]
pub(crate) struct Shaper {
    /// Delay of the first byte.
    pub(crate) delay: Duration,
    /// Rate, in bytes per second.
    pub(crate) rate: Option<u32>,
    /// Size of a piece, in bytes, and the pause after it.
    pub(crate) drip: Option<(usize, Duration)>,
    /// Number of bytes before the exchange breaks off.
    pub(crate) cut: Option<(u64, ConnectionEnding)>,
    /// Number of forwarded bytes.
    pub(crate) n_passed: u64,
}

/// Reason why no more bytes are forwarded.
#[derive(Debug)]
pub(crate) enum StopReason {
    /// Cut after this many bytes.
    Cut(u64, ConnectionEnding),
    /// The receiver is gone.
    Gone,
}

impl From<io::Error> for StopReason {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Number of pieces per second at a limited rate.
const PIECES: u32 = 20;

impl Shaper {
    /// Forwards bytes. Returns an error if that was the end.
    pub(crate) async fn pass<W>(&mut self, mut bytes: &[u8], out: &mut W) -> Result<(), StopReason>
    where
        W: AsyncWrite + Unpin,
    {
        if !self.delay.is_zero() {
            sleep(std::mem::take(&mut self.delay)).await;
        }
        loop {
            let left = match self.cut {
                Some((after, _)) => after - self.n_passed,
                None => u64::MAX,
            };
            let most = usize::try_from(left).unwrap_or(usize::MAX);
            let length = bytes.len().min(most).min(self.piece());
            if length > 0 {
                if self.n_passed > 0 {
                    sleep(self.pause(length)).await;
                }
                out.write_all(&bytes[..length]).await?;
                out.flush().await?;
                self.n_passed += length as u64;
                bytes = &bytes[length..];
            }
            match self.cut {
                Some((after, ending)) if after == self.n_passed => {
                    return Err(StopReason::Cut(after, ending));
                }
                _ if bytes.is_empty() => return Ok(()),
                _ => {}
            }
        }
    }

    /// Returns the position of the cut, if it is within the next `length` bytes. Recorded before they are sent, because
    /// their receiver may react at once.
    pub(crate) fn cut_within(&self, length: usize) -> Option<u64> {
        let (after, _) = self.cut?;
        (after <= self.n_passed + length as u64).then_some(after)
    }

    /// Returns the size of the next piece, in bytes.
    fn piece(&self) -> usize {
        let dripped = self.drip.map_or(usize::MAX, |(bytes, _)| bytes);
        let paced = self
            .rate
            .map_or(usize::MAX, |rate| (rate / PIECES).max(1) as usize);
        dripped.min(paced)
    }

    /// Returns the pause before a piece.
    fn pause(&self, length: usize) -> Duration {
        let dripped = self.drip.map_or(Duration::ZERO, |(_, every)| every);
        let paced = self.rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(length as f64 / f64::from(rate))
        });
        dripped.max(paced)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    async fn passed(mut lane: Shaper, bytes: &[u8]) -> (String, Duration, bool) {
        let start = Instant::now();
        let mut out = Vec::new();
        let is_cut = lane.pass(bytes, &mut out).await.is_err();
        (String::from_utf8(out).unwrap(), start.elapsed(), is_cut)
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_passes_exactly_as_many_bytes() {
        for after in 0..=5 {
            let lane = Shaper {
                cut: Some((after, ConnectionEnding::Close)),
                ..Shaper::default()
            };
            let (text, _, is_cut) = passed(lane, b"hello").await;
            assert_eq!((text.len() as u64, is_cut), (after, true));
        }
        let lane = Shaper {
            cut: Some((6, ConnectionEnding::Close)),
            ..Shaper::default()
        };
        assert!(!passed(lane, b"hello").await.2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_counts_over_all_that_is_passed() {
        let mut lane = Shaper {
            cut: Some((7, ConnectionEnding::Close)),
            ..Shaper::default()
        };
        let mut out = Vec::new();
        assert!(lane.pass(b"hello", &mut out).await.is_ok());
        assert!(lane.pass(b"world", &mut out).await.is_err());
        assert_eq!(out, b"hellowo");
    }

    #[tokio::test(start_paused = true)]
    async fn times_are_kept() {
        let delay = Duration::from_millis(300);
        let lane = Shaper {
            delay,
            ..Shaper::default()
        };
        assert_eq!(passed(lane, b"hello").await.1, delay);
        let drip = Some((1, Duration::from_millis(100)));
        let lane = Shaper {
            drip,
            ..Shaper::default()
        };
        assert_eq!(passed(lane, b"hello").await.1, Duration::from_millis(400));
        let lane = Shaper {
            rate: Some(1000),
            ..Shaper::default()
        };
        let (text, took, _) = passed(lane, &[b'x'; 1050]).await;
        assert_eq!((text.len(), took), (1050, Duration::from_secs(1)));
    }
}
