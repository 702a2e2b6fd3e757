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
    BoxFuture, Claim, ClaimResult, Clock, CorrelationId, ErrorKind, Instant, Ledger, LedgerEntry, LedgerState,
    Reply, CallEnd, ToolError,
};

/// A [`Ledger`] in memory, which forgets everything with the process and holds no more than its [`LedgerLimits`].
///
/// # What is given up
/// Entries whose time is over, and beyond the limits those of whoever has the most, so that nobody can get rid of what is
/// remembered of others' calls; of each principal, and where all have as many, those whose time is over first. Answers, and
/// what failures say as data, are given up before entries: a call of which only the answer is gone is still not made twice.
/// What is under way is never given up; when there is nothing else left, calls with a key are refused as overloaded.
pub struct MemoryLedger {
    limits: LedgerLimits,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

/// How much a [`MemoryLedger`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerLimits {
    /// How many calls.
    pub max_entries: usize,
    /// How many bytes, answers and all.
    pub max_bytes: usize,
}

impl Default for LedgerLimits {
    fn default() -> Self {
        Self {
            max_entries: 10_000,
            max_bytes: 64 << 20,
        }
    }
}

#[derive(Default)]
struct State {
    entries: HashMap<CorrelationId, Entry>,
    by_key: HashMap<Key, CorrelationId>,
    /// What may be given up, that whose time is over first before the rest.
    settled: BTreeMap<Place, CorrelationId>,
    /// Those of them that can do with less: see [`lessened`].
    large: BTreeMap<Place, CorrelationId>,
    n_bytes: usize,
    next_number: u64,
}

/// Whose key, and which.
type Key = (Arc<str>, Arc<str>, Arc<str>);
/// When an entry's time is over, and its number among those of the same time.
type Place = (Instant, u64);

struct Entry {
    claim: Claim,
    begun: SystemTime,
    progress: Progress,
    n_bytes: usize,
}

enum Progress {
    /// Dropping the sender wakes those who wait.
    Running(watch::Sender<()>),
    Settled(LedgerState, Place),
}

impl MemoryLedger {
    /// An empty ledger, whose entries expire by this clock.
    #[must_use]
    pub fn new(limits: LedgerLimits, clock: Arc<dyn Clock>) -> Self {
        Self {
            limits,
            clock,
            state: Mutex::default(),
        }
    }

    /// How many calls are remembered now.
    #[must_use]
    pub fn n_entries(&self) -> usize {
        self.state.lock().entries.len()
    }

    /// About how many bytes that takes.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.state.lock().n_bytes
    }

    fn take(&self, claim: &Claim) -> Result<ClaimResult, ToolError> {
        let mut state = self.state.lock();
        state.expire(self.clock.now());
        let known = key(claim).and_then(|key| state.by_key.get(&key).copied());
        let Some(id) = known else {
            state.make_room(&self.limits)?;
            let running = Progress::Running(watch::Sender::new(()));
            state.insert(claim.clone(), self.clock.wall(), running);
            return Ok(ClaimResult::Granted(claim.id));
        };
        let Some(entry) = state.entries.get_mut(&id) else {
            return Err(broken());
        };
        if entry.claim.tool != claim.tool || entry.claim.arguments != claim.arguments {
            return Ok(ClaimResult::Conflict);
        }
        match &entry.progress {
            Progress::Running(sender) => {
                let mut end = sender.subscribe();
                Ok(ClaimResult::Running(Box::pin(async move {
                    let _ = end.changed().await;
                })))
            }
            Progress::Settled(LedgerState::Open, _) => Ok(state.resume(id)),
            Progress::Settled(LedgerState::Unknown(_), _) if claim.may_repeat => Ok(state.resume(id)),
            Progress::Settled(..) => Ok(ClaimResult::Ended(Box::new(entry.view()))),
        }
    }
}

impl State {
    fn insert(&mut self, claim: Claim, begun: SystemTime, progress: Progress) {
        // Two calls with the same id cannot be told apart by it; the later one is the one to find.
        self.remove(claim.id);
        if let Some(key) = key(&claim) {
            self.by_key.insert(key, claim.id);
        }
        let (id, n_bytes) = (claim.id, size_of::<Entry>() * 2 + texts(&claim));
        self.n_bytes += n_bytes;
        let entry = Entry {
            claim,
            begun,
            progress,
            n_bytes,
        };
        self.entries.insert(id, entry);
    }

    /// Lets an entry's call run again.
    fn resume(&mut self, id: CorrelationId) -> ClaimResult {
        if let Some(entry) = self.entries.get_mut(&id) {
            let running = Progress::Running(watch::Sender::new(()));
            if let Progress::Settled(state, place) = std::mem::replace(&mut entry.progress, running) {
                let n_bytes = size(&state);
                entry.n_bytes -= n_bytes;
                self.n_bytes -= n_bytes;
                self.settled.remove(&place);
                self.large.remove(&place);
            }
        }
        ClaimResult::Granted(id)
    }

    fn settle(&mut self, id: CorrelationId, end: LedgerState, now: Instant) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let place = (now + entry.claim.ttl, self.next_number);
        self.next_number += 1;
        let n_bytes = size(&end);
        entry.n_bytes += n_bytes;
        self.n_bytes += n_bytes;
        if is_large(&end) {
            self.large.insert(place, id);
        }
        self.settled.insert(place, id);
        entry.progress = Progress::Settled(end, place);
    }

    fn remove(&mut self, id: CorrelationId) {
        let Some(entry) = self.entries.remove(&id) else {
            return;
        };
        self.n_bytes -= entry.n_bytes;
        if let Some(key) = key(&entry.claim) {
            self.by_key.remove(&key);
        }
        if let Progress::Settled(_, place) = entry.progress {
            self.settled.remove(&place);
            self.large.remove(&place);
        }
    }

    fn expire(&mut self, now: Instant) {
        while let Some((place, id)) = self.settled.first_key_value().map(|(place, id)| (*place, *id))
            && place.0 <= now
        {
            self.remove(id);
        }
    }

    /// Makes room for one more.
    fn make_room(&mut self, limits: &LedgerLimits) -> Result<(), ToolError> {
        while self.entries.len() >= limits.max_entries.max(1) {
            if self.settled.is_empty() {
                let message = "too many calls with an idempotency key are under way";
                return Err(ToolError::new(ErrorKind::Overloaded, message));
            }
            self.give_up();
        }
        Ok(())
    }

    /// Gives up answers, and then entries, until what is left fits.
    fn shrink(&mut self, limits: &LedgerLimits) {
        while self.n_bytes > limits.max_bytes {
            if let Some((_, id)) = self.large.pop_first() {
                self.lessen(id);
            } else if self.settled.is_empty() {
                return;
            } else {
                self.give_up();
            }
        }
    }

    fn lessen(&mut self, id: CorrelationId) {
        if let Some(entry) = self.entries.get_mut(&id)
            && let Progress::Settled(state, _) = &mut entry.progress
        {
            let before = size(state);
            *state = lessened(state);
            let n_bytes = before - size(state);
            entry.n_bytes -= n_bytes;
            self.n_bytes -= n_bytes;
        }
    }

    /// Gives up a part of what may be: a part, so that the entries need not be counted for each new one.
    fn give_up(&mut self) {
        let n_gone = (self.settled.len() / 16).max(1);
        let settled = || {
            let entries = self.settled.values().filter_map(|id| self.entries.get(id));
            entries.map(|entry| &entry.claim)
        };
        let mut counts: HashMap<_, usize> = HashMap::new();
        for claim in settled() {
            *counts.entry(whose(claim)).or_default() += 1;
        }
        let share = fair_share(counts.values().copied().collect(), self.settled.len() - n_gone);
        let mut gone = Vec::with_capacity(n_gone);
        for claim in settled() {
            if let Some(count) = counts.get_mut(&whose(claim))
                && *count > share
                && gone.len() < n_gone
            {
                *count -= 1;
                gone.push(claim.id);
            }
        }
        for id in gone {
            self.remove(id);
        }
    }
}

impl Entry {
    fn is_unknown(&self) -> bool {
        matches!(self.progress, Progress::Settled(LedgerState::Unknown(_), _))
    }

    fn view(&self) -> LedgerEntry {
        let state = match &self.progress {
            Progress::Running(_) => LedgerState::Running,
            Progress::Settled(state, _) => state.clone(),
        };
        LedgerEntry::new(&self.claim, self.begun, state)
    }
}

impl Ledger for MemoryLedger {
    fn claim<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<ClaimResult, ToolError>> {
        Box::pin(ready(self.take(claim)))
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
        // Where everything is under way there is no place for this one.
        if state.make_room(&self.limits).is_ok() {
            let id = claim.id;
            let claim = Claim::unkeyed(claim);
            let running = Progress::Running(watch::Sender::new(()));
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

fn key(claim: &Claim) -> Option<Key> {
    let key = claim.key.clone()?;
    Some((claim.tenant.clone(), claim.principal.clone(), key))
}

fn whose(claim: &Claim) -> (&str, &str) {
    (&claim.tenant, &claim.principal)
}

/// How much each may keep of what they have, so that together they keep no more than there is room for, and only those who
/// have the most give something up.
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

fn texts(claim: &Claim) -> usize {
    let key = claim.key.as_ref().map_or(0, |key| key.len());
    claim.tenant.len() + claim.principal.len() + key
}

/// What an end takes beside its entry.
fn size(state: &LedgerState) -> usize {
    match state {
        LedgerState::Answered(Some(reply)) => reply.raw().len(),
        LedgerState::Failed(error) | LedgerState::Unknown(error) => {
            error.message().len() + error.detail().map_or(0, RawJson::len)
        }
        _ => 0,
    }
}

fn is_large(state: &LedgerState) -> bool {
    match state {
        LedgerState::Answered(reply) => reply.is_some(),
        LedgerState::Failed(error) | LedgerState::Unknown(error) => error.detail().is_some(),
        _ => false,
    }
}

/// An end without its answer, or without what a failure says as data: all that is needed to not make the call again.
fn lessened(state: &LedgerState) -> LedgerState {
    match state {
        LedgerState::Answered(_) => LedgerState::Answered(None),
        LedgerState::Failed(error) => LedgerState::Failed(error.clone().without_detail()),
        LedgerState::Unknown(error) => LedgerState::Unknown(error.clone().without_detail()),
        other => other.clone(),
    }
}

/// The reply without the message that it was cut out of.
fn detached(mut reply: Reply) -> Reply {
    reply.detach();
    reply
}

fn broken() -> ToolError {
    ToolError::new(ErrorKind::Internal, "the ledger knows a key without its call")
}

impl fmt::Debug for MemoryLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLedger")
            .field("limits", &self.limits)
            .field("n_entries", &self.n_entries())
            .finish_non_exhaustive()
    }
}
