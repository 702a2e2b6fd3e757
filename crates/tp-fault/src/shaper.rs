use std::{io, time::Duration};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    time::sleep,
};

use crate::ConnectionEnding;

/// What bytes meet that go one way in one exchange.
#[derive(Debug, Default)]
pub(crate) struct Shaper {
    /// How long the first byte waits.
    pub(crate) delay: Duration,
    /// How many bytes go in a second.
    pub(crate) rate: Option<u32>,
    /// How large pieces are, and the pause between them.
    pub(crate) drip: Option<(usize, Duration)>,
    /// How many bytes go before the end.
    pub(crate) cut: Option<(u64, ConnectionEnding)>,
    /// How many bytes have gone.
    pub(crate) n_passed: u64,
}

/// Why bytes are not passed on any more.
#[derive(Debug)]
pub(crate) enum StopReason {
    /// After so many bytes.
    Cut(u64, ConnectionEnding),
    /// Nobody takes them.
    Gone,
}

impl From<io::Error> for StopReason {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// How often in a second a piece goes at a limited rate.
const PIECES: u32 = 20;

impl Shaper {
    /// Passes bytes on, and tells when that was the end.
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

    /// After how many bytes the cut comes, if it comes within the next ones: who gets the last of them may act on it before
    /// anything else is noted.
    pub(crate) fn cut_within(&self, length: usize) -> Option<u64> {
        let (after, _) = self.cut?;
        (after <= self.n_passed + length as u64).then_some(after)
    }

    /// How many bytes go at once.
    fn piece(&self) -> usize {
        let dripped = self.drip.map_or(usize::MAX, |(bytes, _)| bytes);
        let paced = self
            .rate
            .map_or(usize::MAX, |rate| (rate / PIECES).max(1) as usize);
        dripped.min(paced)
    }

    /// How long a piece waits for the one before.
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
