//! Workflows that wait for a decision about one of their steps.

use std::{collections::HashMap, time::Duration};

use sha2::{Digest, Sha256};
use tool_core::{CallContext, Instant};

use crate::run::state::{FlowState, Recorded};

/// States of workflows that wait, by the calls that continue them.
#[derive(Default)]
pub(crate) struct WaitingFlows {
    states: HashMap<[u8; 32], Kept>,
    n_bytes: usize,
}

struct Kept {
    state: FlowState,
    until: Instant,
    n_bytes: usize,
}

/// Time for which a state is kept.
const TIME_TO_LIVE: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of states.
const MAX_STATES: usize = 10_000;
/// Maximum size of all states, in bytes.
const MAX_BYTES: usize = 256 << 20;

impl WaitingFlows {
    /// Returns the key of a call: the same caller, workflow, arguments and idempotency key continue it.
    pub(crate) fn key(cx: &CallContext, digest: &str) -> [u8; 32] {
        let mut key = Sha256::new();
        let idempotency_key = cx.extras.idempotency_key.as_deref().unwrap_or_default();
        for part in [
            &*cx.origin.caller.tenant,
            &*cx.origin.caller.principal,
            &**cx.tool().name(),
            digest,
            idempotency_key,
        ] {
            key.update((part.len() as u64).to_be_bytes());
            key.update(part);
        }
        key.update(cx.arguments.digest());
        let key = key.finalize();
        std::array::from_fn(|index| key[index])
    }

    /// Takes the state of a call that continues a workflow.
    pub(crate) fn take(&mut self, key: &[u8; 32], now: Instant) -> Option<FlowState> {
        let kept = self.states.remove(key)?;
        self.n_bytes -= kept.n_bytes;
        (kept.until > now).then_some(kept.state)
    }

    /// Keeps a state. Returns `false` if there is no room for it.
    pub(crate) fn put(&mut self, key: [u8; 32], state: FlowState, now: Instant) -> bool {
        let n_bytes = state
            .recorded
            .iter()
            .map(|(path, recorded)| path.len() + size(recorded))
            .sum();
        if self.states.len() >= MAX_STATES || self.n_bytes + n_bytes > MAX_BYTES {
            self.states.retain(|_, kept| kept.until > now);
            self.n_bytes = self.states.values().map(|kept| kept.n_bytes).sum();
        }
        if self.states.len() >= MAX_STATES || self.n_bytes + n_bytes > MAX_BYTES {
            return false;
        }
        self.n_bytes += n_bytes;
        let kept = Kept {
            state,
            until: now + TIME_TO_LIVE,
            n_bytes,
        };
        if let Some(before) = self.states.insert(key, kept) {
            self.n_bytes -= before.n_bytes;
        }
        true
    }
}

fn size(recorded: &Recorded) -> usize {
    match recorded {
        Recorded::Result(result) => result.len(),
        Recorded::Failed(error) => error.message().len(),
    }
}
