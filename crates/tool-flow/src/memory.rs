use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tool_core::{BoxFuture, Clock, FlowChoice, FlowClaim, FlowPhase, FlowRun, Flows, FlowsError, Instant};

/// Workflows that wait, in memory: a restart forgets them. Runs that do not wait are not kept.
pub struct MemoryFlows {
    clock: Arc<dyn Clock>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    runs: HashMap<Arc<str>, WaitingRun>,
    /// Ids of the runs, by their keys.
    ids: HashMap<[u8; 32], Vec<Arc<str>>>,
    n_bytes: usize,
}

struct WaitingRun {
    run: FlowRun,
    until: Instant,
    n_bytes: usize,
}

/// Time for which a run is kept.
const TIME_TO_LIVE: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of runs.
const MAX_RUNS: usize = 10_000;
/// Maximum size of all runs, in bytes.
const MAX_BYTES: usize = 256 << 20;

impl MemoryFlows {
    /// Creates an empty storage whose runs expire by `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            kept: Mutex::default(),
        }
    }
}

impl fmt::Debug for MemoryFlows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_runs = self.kept.lock().runs.len();
        f.debug_struct("MemoryFlows")
            .field("n_runs", &n_runs)
            .finish_non_exhaustive()
    }
}

impl Kept {
    fn is_full(&self, n_more: usize) -> bool {
        self.runs.len() >= MAX_RUNS || self.n_bytes + n_more > MAX_BYTES
    }

    fn remove(&mut self, id: &str) -> Option<WaitingRun> {
        let waiting = self.runs.remove(id)?;
        self.n_bytes -= waiting.n_bytes;
        if let Some(ids) = self.ids.get_mut(&waiting.run.key) {
            ids.retain(|known| **known != *id);
            if ids.is_empty() {
                self.ids.remove(&waiting.run.key);
            }
        }
        Some(waiting)
    }

    fn forget_expired(&mut self, now: Instant) {
        let expired = self.runs.iter().filter(|(_, waiting)| waiting.until <= now);
        for id in expired.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.remove(&id);
        }
    }
}

impl Flows for MemoryFlows {
    fn is_durable(&self) -> bool {
        false
    }

    fn claim<'a>(&'a self, choice: FlowChoice<'a>) -> BoxFuture<'a, Result<FlowClaim, FlowsError>> {
        Box::pin(async move {
            let mut kept = self.kept.lock();
            let id = match choice {
                FlowChoice::Id(id) => Some(Arc::from(id)),
                FlowChoice::Key(key) => kept.ids.get(&key).and_then(|ids| ids.first().cloned()),
                _ => None,
            };
            let now = self.clock.now();
            let waiting = id
                .and_then(|id| kept.remove(&id))
                .filter(|waiting| waiting.until > now);
            Ok(waiting.map_or(FlowClaim::None, |waiting| FlowClaim::Claimed(waiting.run)))
        })
    }

    fn save(&self, run: FlowRun, phase: FlowPhase) -> BoxFuture<'_, Result<(), FlowsError>> {
        Box::pin(async move {
            if phase != FlowPhase::Waiting {
                return Ok(());
            }
            let sizes = run.steps.iter().map(|(path, entry)| path.len() + entry.len());
            let n_bytes = sizes.sum();
            let now = self.clock.now();
            let mut kept = self.kept.lock();
            kept.remove(&run.id);
            if kept.is_full(n_bytes) {
                kept.forget_expired(now);
            }
            if kept.is_full(n_bytes) {
                return Err(FlowsError::new("too many workflows wait"));
            }
            kept.n_bytes += n_bytes;
            let waiting = WaitingRun {
                until: now + TIME_TO_LIVE,
                n_bytes,
                run,
            };
            let id = waiting.run.id.clone();
            kept.ids.entry(waiting.run.key).or_default().push(id.clone());
            kept.runs.insert(id, waiting);
            Ok(())
        })
    }

    fn end<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), FlowsError>> {
        Box::pin(async move {
            self.kept.lock().remove(id);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use raw_json::RawJson;
    use tool_core::SystemClock;

    use super::*;

    #[tokio::test]
    async fn a_run_that_waits_is_claimed_once_and_a_full_storage_says_so() {
        let flows = MemoryFlows::new(Arc::new(SystemClock::new()));
        let steps = vec![("a".to_owned(), RawJson::from("x"))];
        let run = FlowRun::new("r1", [7; 32]).with_steps(steps);
        flows.save(run.clone(), FlowPhase::Running).await.unwrap();
        let key = FlowChoice::Key([7; 32]);
        assert_eq!(flows.claim(key).await, Ok(FlowClaim::None));
        flows.save(run.clone(), FlowPhase::Waiting).await.unwrap();
        assert_eq!(flows.claim(key).await, Ok(FlowClaim::Claimed(run)));
        assert_eq!(flows.claim(FlowChoice::Id("r1")).await, Ok(FlowClaim::None));
        for index in 0..MAX_RUNS {
            let run = FlowRun::new(index.to_string(), [1; 32]);
            flows.save(run, FlowPhase::Waiting).await.unwrap();
        }
        let more = FlowRun::new("more", [1; 32]);
        assert!(flows.save(more, FlowPhase::Waiting).await.is_err());
        flows.end("0").await.unwrap();
        flows
            .save(FlowRun::new("another", [2; 32]), FlowPhase::Waiting)
            .await
            .unwrap();
        let another = flows.claim(FlowChoice::Key([2; 32])).await;
        assert_eq!(another, Ok(FlowClaim::Claimed(FlowRun::new("another", [2; 32]))));
        for _ in 1..MAX_RUNS {
            let claimed = flows.claim(FlowChoice::Key([1; 32])).await;
            assert!(matches!(claimed, Ok(FlowClaim::Claimed(_))), "{claimed:?}");
        }
        assert!(flows.kept.lock().ids.is_empty());
        assert_eq!(flows.kept.lock().n_bytes, 0);
    }
}
