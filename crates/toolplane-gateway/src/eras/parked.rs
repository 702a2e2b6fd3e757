use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
};

use mcp_server::Principal;
use parking_lot::Mutex;
use tokio::time::sleep;

use super::open_call::OpenCall;
use crate::{abort_on_drop::AbortOnDrop, client::ANSWER_TIMEOUT};

/// Calls that wait for an answer of their modern clients.
///
/// | state of a call | event | next state |
/// |---|---|---|
/// | in a request | it asks, and there is room | parked, under a new number |
/// | in a request | it asks, and there is no room | in the request: the question is refused |
/// | parked | the client sends the number with its next request | in that request |
/// | parked | [`ANSWER_TIMEOUT`] has passed, or the gateway stops | cancelled |
#[derive(Debug, Default)]
pub(crate) struct ParkedCalls(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Last number. The first one is random: a state that another gateway with the same key has sealed names no call here.
    last: u64,
    by_number: HashMap<u64, ParkedCall>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            last: RandomState::new().build_hasher().finish(),
            by_number: HashMap::new(),
        }
    }
}

#[derive(Debug)]
struct ParkedCall {
    call: OpenCall,
    principal: Principal,
    /// Cancels the call after [`ANSWER_TIMEOUT`].
    _expiry: AbortOnDrop<()>,
}

/// Maximum number of parked calls.
const MAX_PARKED: usize = 256;
/// Maximum number of parked calls of one principal. Each may hold a connection of its own to a server, of which a server
/// has twice as many by default.
const MAX_OF_PRINCIPAL: usize = 8;

impl ParkedCalls {
    /// Returns the number of parked calls.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().by_number.len()
    }

    /// Parks a call under a number that can be used once. Returns the call if there is no room.
    pub(super) fn park(self: &Arc<Self>, call: OpenCall, principal: &Principal) -> Result<u64, OpenCall> {
        let mut state = self.0.lock();
        let parked = state.by_number.values();
        let n_own = parked.filter(|parked| parked.principal == *principal).count();
        if state.by_number.len() >= MAX_PARKED || n_own >= MAX_OF_PRINCIPAL {
            return Err(call);
        }
        state.last = state.last.wrapping_add(1);
        let number = state.last;
        let calls = Arc::downgrade(self);
        let expiry = tokio::spawn(async move {
            sleep(ANSWER_TIMEOUT).await;
            if let Some(calls) = calls.upgrade() {
                drop(calls.take(number));
            }
        });
        let parked = ParkedCall {
            call: call.spawn(),
            principal: principal.clone(),
            _expiry: AbortOnDrop(expiry),
        };
        state.by_number.insert(number, parked);
        Ok(number)
    }

    /// Removes and returns the call that was parked under a number.
    pub(super) fn take(&self, number: u64) -> Option<OpenCall> {
        let parked = self.0.lock().by_number.remove(&number)?;
        Some(parked.call)
    }

    /// Cancels all parked calls, and returns when they have ended.
    pub(crate) async fn cancel_all(&self) {
        let parked: Vec<_> = self.0.lock().by_number.drain().collect();
        for (_, parked) in parked {
            parked.call.cancel().await;
        }
    }
}
