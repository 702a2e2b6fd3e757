use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    fmt,
    future::ready,
    mem::size_of,
    sync::Arc,
    time::SystemTime,
};

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::sync::watch;
use tool_core::{
    BoxFuture, CallEnd, Claim, ClaimResult, Clock, CorrelationId, ErrorKind, Instant, Ledger, LedgerEntry,
    LedgerState, Reply, ToolError,
};

use super::LedgerLimits;

/// A [`Ledger`] in memory. It ends with the process, and holds at most its [`LedgerLimits`].
///
/// # Eviction
/// Expired entries are evicted first. Beyond the limits, entries of the principal with the most entries are evicted, so that nobody
/// can evict the records of others; of each principal, and among principals with equally many, those that expire first. Replies,
/// and the data of failures, are dropped before whole entries: a call of which only the reply is gone is still not made twice.
/// Running calls are never evicted. If there is nothing else, calls with a key are refused as overloaded.
pub struct MemoryLedger {
    limits: LedgerLimits,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: HashMap<CorrelationId, Entry>,
    by_key: HashMap<OwnedKey, CorrelationId>,
    /// Entries that may be evicted, in order of expiry.
    settled: BTreeMap<ExpiryOrder, CorrelationId>,
    /// Evictable entries whose payload can be dropped: see [`without_payload`].
    with_payload: BTreeMap<ExpiryOrder, CorrelationId>,
    n_bytes: usize,
    next_number: u64,
}

/// Tenant, principal and idempotency key.
type OwnedKey = (Arc<str>, Arc<str>, Arc<str>);
/// Expiry of an entry, and its number among those with the same expiry.
type ExpiryOrder = (Instant, u64);

struct Entry {
    claim: Claim,
    begun: SystemTime,
    status: EntryStatus,
    n_bytes: usize,
}

enum EntryStatus {
    /// The call runs. Dropping the sender wakes the waiters.
    Running(watch::Sender<()>),
    Settled(LedgerState, ExpiryOrder),
}

impl MemoryLedger {
    /// Creates an empty ledger whose entries expire by this clock.
    #[must_use]
    pub fn new(limits: LedgerLimits, clock: Arc<dyn Clock>) -> Self {
        Self {
            limits,
            clock,
            state: Mutex::default(),
        }
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn n_entries(&self) -> usize {
        self.state.lock().entries.len()
    }

    /// Returns the approximate size of all entries, in bytes.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.state.lock().n_bytes
    }

    fn claim_now(&self, claim: &Claim) -> Result<ClaimResult, ToolError> {
        let mut state = self.state.lock();
        state.expire(self.clock.now());
        let known = key(claim).and_then(|key| state.by_key.get(&key).copied());
        let Some(id) = known else {
            state.make_room(&self.limits)?;
            let running = EntryStatus::Running(watch::Sender::new(()));
            state.insert(claim.clone(), self.clock.wall(), running);
            return Ok(ClaimResult::Granted(claim.id));
        };
        let Some(entry) = state.entries.get_mut(&id) else {
            return Err(missing_entry());
        };
        if entry.claim.tool != claim.tool || entry.claim.arguments != claim.arguments {
            return Ok(ClaimResult::Conflict);
        }
        match &entry.status {
            EntryStatus::Running(sender) => {
                let mut end = sender.subscribe();
                Ok(ClaimResult::Running(Box::pin(async move {
                    let _ = end.changed().await;
                })))
            }
            EntryStatus::Settled(LedgerState::Open, _) => Ok(state.resume(id)),
            EntryStatus::Settled(LedgerState::Unknown(_), _) if claim.may_repeat => Ok(state.resume(id)),
            EntryStatus::Settled(..) => Ok(ClaimResult::Ended(Box::new(entry.view()))),
        }
    }
}

impl State {
    fn insert(&mut self, claim: Claim, begun: SystemTime, status: EntryStatus) {
        // Of two calls with the same id, only the later one can be found.
        self.remove(claim.id);
        if let Some(key) = key(&claim) {
            self.by_key.insert(key, claim.id);
        }
        let (id, n_bytes) = (claim.id, size_of::<Entry>() * 2 + text_size(&claim));
        self.n_bytes += n_bytes;
        let entry = Entry {
            claim,
            begun,
            status,
            n_bytes,
        };
        self.entries.insert(id, entry);
    }

    /// Lets the call of an entry run again.
    fn resume(&mut self, id: CorrelationId) -> ClaimResult {
        if let Some(entry) = self.entries.get_mut(&id) {
            let running = EntryStatus::Running(watch::Sender::new(()));
            if let EntryStatus::Settled(state, expiry) = std::mem::replace(&mut entry.status, running) {
                let n_bytes = payload_size(&state);
                entry.n_bytes -= n_bytes;
                self.n_bytes -= n_bytes;
                self.settled.remove(&expiry);
                self.with_payload.remove(&expiry);
            }
        }
        ClaimResult::Granted(id)
    }

    fn settle(&mut self, id: CorrelationId, end: LedgerState, now: Instant) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let expiry = (now + entry.claim.ttl, self.next_number);
        self.next_number += 1;
        let n_bytes = payload_size(&end);
        entry.n_bytes += n_bytes;
        self.n_bytes += n_bytes;
        if has_payload(&end) {
            self.with_payload.insert(expiry, id);
        }
        self.settled.insert(expiry, id);
        entry.status = EntryStatus::Settled(end, expiry);
    }

    fn remove(&mut self, id: CorrelationId) {
        let Some(entry) = self.entries.remove(&id) else {
            return;
        };
        self.n_bytes -= entry.n_bytes;
        if let Some(key) = key(&entry.claim) {
            self.by_key.remove(&key);
        }
        if let EntryStatus::Settled(_, expiry) = entry.status {
            self.settled.remove(&expiry);
            self.with_payload.remove(&expiry);
        }
    }

    fn expire(&mut self, now: Instant) {
        while let Some((expiry, id)) = self.settled.first_key_value().map(|(expiry, id)| (*expiry, *id))
            && expiry.0 <= now
        {
            self.remove(id);
        }
    }

    /// Makes room for one more entry.
    fn make_room(&mut self, limits: &LedgerLimits) -> Result<(), ToolError> {
        while self.entries.len() >= limits.max_entries.max(1) {
            if self.settled.is_empty() {
                let message = "too many calls with an idempotency key are running";
                return Err(ToolError::new(ErrorKind::Overloaded, message));
            }
            self.evict();
        }
        Ok(())
    }

    /// Drops payloads, and then entries, until the rest is within the limits.
    fn shrink(&mut self, limits: &LedgerLimits) {
        while self.n_bytes > limits.max_bytes {
            if let Some((_, id)) = self.with_payload.pop_first() {
                self.drop_payload(id);
            } else if self.settled.is_empty() {
                return;
            } else {
                self.evict();
            }
        }
    }

    fn drop_payload(&mut self, id: CorrelationId) {
        if let Some(entry) = self.entries.get_mut(&id)
            && let EntryStatus::Settled(state, _) = &mut entry.status
        {
            let before = payload_size(state);
            *state = without_payload(state);
            let n_bytes = before - payload_size(state);
            entry.n_bytes -= n_bytes;
            self.n_bytes -= n_bytes;
        }
    }

    /// Evicts a sixteenth of the settled entries, so that they need not be counted for each new one.
    fn evict(&mut self) {
        let n_evicted = (self.settled.len() / 16).max(1);
        let settled = || {
            let entries = self.settled.values().filter_map(|id| self.entries.get(id));
            entries.map(|entry| &entry.claim)
        };
        let mut counts: HashMap<_, usize> = HashMap::new();
        for claim in settled() {
            *counts.entry(owner(claim)).or_default() += 1;
        }
        let share = fair_share(counts.values().copied().collect(), self.settled.len() - n_evicted);
        let mut evicted = Vec::with_capacity(n_evicted);
        for claim in settled() {
            if let Some(count) = counts.get_mut(&owner(claim))
                && *count > share
                && evicted.len() < n_evicted
            {
                *count -= 1;
                evicted.push(claim.id);
            }
        }
        for id in evicted {
            self.remove(id);
        }
    }
}

impl Entry {
    fn is_unknown(&self) -> bool {
        matches!(self.status, EntryStatus::Settled(LedgerState::Unknown(_), _))
    }

    fn view(&self) -> LedgerEntry {
        let state = match &self.status {
            EntryStatus::Running(_) => LedgerState::Running,
            EntryStatus::Settled(state, _) => state.clone(),
        };
        LedgerEntry::new(&self.claim, self.begun, state)
    }
}

impl Ledger for MemoryLedger {
    fn claim<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<ClaimResult, ToolError>> {
        Box::pin(ready(self.claim_now(claim)))
    }

    fn settle(&self, id: CorrelationId, end: CallEnd) {
        let end = match end {
            CallEnd::Free => {
                self.state.lock().remove(id);
                return;
            }
            CallEnd::Open => LedgerState::Open,
            CallEnd::Answered(reply) => LedgerState::Answered(reply.map(detached)),
            CallEnd::Failed(error) => LedgerState::Failed(error),
            CallEnd::Unknown(error) => LedgerState::Unknown(error),
        };
        let mut state = self.state.lock();
        state.settle(id, end, self.clock.now());
        state.shrink(&self.limits);
    }

    fn record(&self, claim: Claim, unknown: ToolError) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        state.expire(now);
        // If all entries are running, there is no room for this one.
        if state.make_room(&self.limits).is_ok() {
            let id = claim.id;
            let claim = Claim::unkeyed(claim);
            let running = EntryStatus::Running(watch::Sender::new(()));
            state.insert(claim, self.clock.wall(), running);
            state.settle(id, LedgerState::Unknown(unknown), now);
            state.shrink(&self.limits);
        }
    }

    fn find(&self, id: CorrelationId) -> BoxFuture<'_, Option<LedgerEntry>> {
        let mut state = self.state.lock();
        state.expire(self.clock.now());
        Box::pin(ready(state.entries.get(&id).map(Entry::view)))
    }

    fn unknown(&self, limit: usize) -> BoxFuture<'_, Vec<LedgerEntry>> {
        let mut state = self.state.lock();
        state.expire(self.clock.now());
        let entries = state.entries.values().filter(|entry| entry.is_unknown());
        let mut unknown: Vec<_> = entries.map(Entry::view).collect();
        unknown.sort_by_key(|entry| (Reverse(entry.begun), entry.id.0));
        unknown.truncate(limit);
        Box::pin(ready(unknown))
    }
}

fn key(claim: &Claim) -> Option<OwnedKey> {
    let key = claim.key.clone()?;
    Some((claim.tenant.clone(), claim.principal.clone(), key))
}

fn owner(claim: &Claim) -> (&str, &str) {
    (&claim.tenant, &claim.principal)
}

/// Returns the maximum number of entries per owner, so that all together fit into `room` and only the owners with the most entries
/// lose some (max-min fairness).
fn fair_share(mut counts: Vec<usize>, mut room: usize) -> usize {
    counts.sort_unstable();
    let n_owners = counts.len();
    for (n_before, count) in counts.into_iter().enumerate() {
        let share = room / (n_owners - n_before);
        if count > share {
            return share;
        }
        room -= count;
    }
    usize::MAX
}

fn text_size(claim: &Claim) -> usize {
    let key = claim.key.as_ref().map_or(0, |key| key.len());
    claim.tenant.len() + claim.principal.len() + key
}

/// Returns the size of a state's payload, in bytes.
fn payload_size(state: &LedgerState) -> usize {
    match state {
        LedgerState::Answered(Some(reply)) => reply.raw().len(),
        LedgerState::Failed(error) | LedgerState::Unknown(error) => {
            error.message().len() + error.detail().map_or(0, RawJson::len)
        }
        _ => 0,
    }
}

fn has_payload(state: &LedgerState) -> bool {
    match state {
        LedgerState::Answered(reply) => reply.is_some(),
        LedgerState::Failed(error) | LedgerState::Unknown(error) => error.detail().is_some(),
        _ => false,
    }
}

/// Returns a state without its reply or error data. It still prevents another call with the same key.
fn without_payload(state: &LedgerState) -> LedgerState {
    match state {
        LedgerState::Answered(_) => LedgerState::Answered(None),
        LedgerState::Failed(error) => LedgerState::Failed(error.clone().without_detail()),
        LedgerState::Unknown(error) => LedgerState::Unknown(error.clone().without_detail()),
        other => other.clone(),
    }
}

/// Detaches a reply from the message in which it arrived.
fn detached(mut reply: Reply) -> Reply {
    reply.detach();
    reply
}

fn missing_entry() -> ToolError {
    ToolError::new(ErrorKind::Internal, "the ledger has a key without an entry")
}

impl fmt::Debug for MemoryLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLedger")
            .field("limits", &self.limits)
            .field("n_entries", &self.n_entries())
            .finish_non_exhaustive()
    }
}
