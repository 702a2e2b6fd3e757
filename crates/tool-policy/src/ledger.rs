//! How many calls each conversation has made, in bounded memory.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tool_core::{ErrorKind, Instant, ToolError};

use crate::{QuotaLimits, MicroDollars};

/// What conversations have used of their limits.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Books>);

#[derive(Debug, Default)]
struct Books {
    owners: HashMap<Owner, HashMap<Digest, Conversation>>,
    n_conversations: usize,
    /// Until when nothing makes room for another: looked for once, not for each one that is refused.
    full_until: Instant,
}

/// Tenant and principal.
type Owner = (Arc<str>, Arc<str>);
type Digest = [u8; 32];

/// Which turn of which conversation of whom.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) owner: Owner,
    pub(crate) conversation: Digest,
    pub(crate) turn: Option<Digest>,
}

/// A call that is to be counted.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) now: Instant,
    pub(crate) cost: MicroDollars,
    /// The same for calls of the same tool with the same arguments.
    pub(crate) identity: Digest,
}

#[derive(Debug, Default)]
struct Conversation {
    last: Instant,
    used: Used,
    /// The latest turns, the newest last.
    turns: VecDeque<Turn>,
    /// How often the latest different calls were made, the newest last.
    identical: VecDeque<(Digest, u32)>,
}

#[derive(Debug)]
struct Turn {
    digest: Digest,
    last: Instant,
    used: Used,
}

#[derive(Debug, Clone, Copy, Default)]
struct Used {
    calls: u32,
    cost: u64,
}

/// Which limit a call would exceed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exceeded {
    #[error("the limit of {0} calls in one {1} is reached")]
    Calls(u32, &'static str),
    #[error("the same call was made {0} times in this conversation already")]
    Identical(u32),
    #[error(
        "the limit of {limit} US dollars in one {of} would be exceeded: {used} are used and the call costs {cost}"
    )]
    Cost {
        limit: MicroDollars,
        of: &'static str,
        used: MicroDollars,
        cost: MicroDollars,
    },
    #[error("too many conversations are going on at once")]
    NoRoom,
    #[error("too many turns are going on at once in this conversation")]
    NoTurn,
}

const TURN: &str = "turn";
const MAX_CONVERSATIONS: usize = 16_384;
const MAX_OF_OWNER: usize = 1_024;
/// So many turns of a conversation are kept in any case, and so many at the most.
const LATEST_TURNS: usize = 16;
const MAX_TURNS: usize = 512;
const MAX_IDENTITIES: usize = 64;
/// After what time without a call a conversation is over.
const OVER: Duration = Duration::from_secs(24 * 60 * 60);
/// After what time without a call a conversation may make room for another.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// After what time without a call a turn may make room for another: as long as two calls last by default. Turns come and go
/// faster than conversations, so this is less.
const TURN_IDLE: Duration = Duration::from_secs(2 * 60);

impl Exceeded {
    /// Which limit, by its name in the configuration.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Calls(_, TURN) => "calls_per_turn",
            Self::Calls(..) => "calls_per_conversation",
            Self::Identical(_) => "identical_calls",
            Self::Cost { of: TURN, .. } => "cost_per_turn",
            Self::Cost { .. } => "cost_per_conversation",
            Self::NoRoom => "conversations",
            Self::NoTurn => "turns",
        }
    }
}

impl Ledger {
    /// Counts a call, unless it would exceed a limit.
    pub(crate) fn take(&self, key: &Key, call: &Call, limits: &QuotaLimits) -> Result<(), Exceeded> {
        let mut books = self.lock();
        let conversation = books.open(key, call.now)?;
        conversation.check(key, call, limits)?;
        if let Some(turn) = key.turn.filter(|_| limits.are_of_turns()) {
            conversation.turn(turn, call.now)?.add(call);
        }
        conversation.last = call.now;
        conversation.used.add(call);
        if limits.identical_calls.is_some() {
            *conversation.n_identical(call.identity) += 1;
        }
        Ok(())
    }

    /// Whether a call would exceed a limit.
    pub(crate) fn look(&self, key: &Key, call: &Call, limits: &QuotaLimits) -> Result<(), Exceeded> {
        let books = self.lock();
        let known = books
            .owners
            .get(&key.owner)
            .and_then(|all| all.get(&key.conversation));
        match known.filter(|known| call.now.since(known.last) < OVER) {
            Some(known) => known.check(key, call, limits),
            None => Conversation::default().check(key, call, limits),
        }
    }

    /// Takes a call back that was counted and then not made.
    pub(crate) fn give_back(&self, key: &Key, call: &Call) {
        let mut books = self.lock();
        let owner = books.owners.get_mut(&key.owner);
        let Some(conversation) = owner.and_then(|all| all.get_mut(&key.conversation)) else {
            return;
        };
        conversation.used.subtract(call);
        let is_its = |turn: &&mut Turn| Some(turn.digest) == key.turn;
        if let Some(turn) = conversation.turns.iter_mut().find(is_its) {
            turn.used.subtract(call);
        }
        let is_same = |(identity, _): &&mut (Digest, u32)| *identity == call.identity;
        if let Some((_, n_calls)) = conversation.identical.iter_mut().find(is_same) {
            *n_calls = n_calls.saturating_sub(1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.0.lock()
    }
}

impl Books {
    /// The conversation that a call belongs to: a new one, if there is room for it.
    fn open(&mut self, key: &Key, now: Instant) -> Result<&mut Conversation, Exceeded> {
        let n_own = self.owners.get(&key.owner).map_or(0, HashMap::len);
        let known = self
            .owners
            .get(&key.owner)
            .and_then(|all| all.get(&key.conversation));
        let is_over = known.map(|known| now.since(known.last) >= OVER);
        if is_over.is_none() && n_own >= MAX_OF_OWNER {
            self.make_room(Some(&key.owner), now)?;
        }
        if is_over.is_none() && self.n_conversations >= MAX_CONVERSATIONS {
            self.make_room(None, now)?;
        }
        if is_over.is_none() {
            self.n_conversations += 1;
        }
        let own = self.owners.entry(key.owner.clone()).or_default();
        let conversation = own.entry(key.conversation).or_default();
        if is_over != Some(false) {
            *conversation = Conversation {
                last: now,
                ..Conversation::default()
            };
        }
        Ok(conversation)
    }

    /// Forgets a part of those that nobody went on with for the longest time: a part, so that this need not be done for
    /// each new one.
    fn make_room(&mut self, of: Option<&Owner>, now: Instant) -> Result<(), Exceeded> {
        if of.is_none() && now < self.full_until {
            return Err(Exceeded::NoRoom);
        }
        let owners = self
            .owners
            .iter()
            .filter(|(owner, _)| of.is_none_or(|of| of == *owner));
        let mut last: Vec<Instant> = owners
            .flat_map(|(_, own)| own.values())
            .map(|conversation| conversation.last)
            .collect();
        let nth = last.len() / 16;
        let (_, oldest, _) = last.select_nth_unstable(nth);
        let latest = *oldest;
        let before = self.n_conversations;
        for (owner, own) in &mut self.owners {
            if of.is_none_or(|of| of == owner) {
                own.retain(|_, known| known.last > latest || now.since(known.last) < IDLE);
            }
        }
        self.owners.retain(|_, own| !own.is_empty());
        self.n_conversations = self.owners.values().map(HashMap::len).sum();
        if self.n_conversations < before {
            return Ok(());
        }
        if of.is_none() {
            let oldest = last.into_iter().min().unwrap_or_default();
            self.full_until = oldest + IDLE;
        }
        Err(Exceeded::NoRoom)
    }
}

impl Conversation {
    fn check(&self, key: &Key, call: &Call, limits: &QuotaLimits) -> Result<(), Exceeded> {
        let turn = self.turns.iter().find(|turn| Some(turn.digest) == key.turn);
        let in_turn = turn.map(|turn| turn.used).unwrap_or_default();
        // Calls that name no turn are in none.
        let per_turn = |limit: Option<u32>| limit.filter(|_| key.turn.is_some());
        let cost_per_turn = limits.cost_per_turn.filter(|_| key.turn.is_some());
        for (used, calls, cost, of) in [
            (in_turn, per_turn(limits.calls_per_turn), cost_per_turn, TURN),
            (
                self.used,
                limits.calls_per_conversation,
                limits.cost_per_conversation,
                "conversation",
            ),
        ] {
            if let Some(limit) = calls.filter(|limit| used.calls >= *limit) {
                return Err(Exceeded::Calls(limit, of));
            }
            if let Some(limit) = cost.filter(|limit| used.cost.saturating_add(call.cost.0) > limit.0) {
                return Err(Exceeded::Cost {
                    limit,
                    of,
                    used: MicroDollars(used.cost),
                    cost: call.cost,
                });
            }
        }
        let same = self
            .identical
            .iter()
            .find(|(identity, _)| *identity == call.identity);
        let n_same = same.map_or(0, |(_, n_calls)| *n_calls);
        match limits.identical_calls {
            Some(limit) if n_same >= limit => Err(Exceeded::Identical(n_same)),
            _ => Ok(()),
        }
    }

    /// What was used in this turn, which is the newest now: another one goes for it only if it is over by all that is known.
    fn turn(&mut self, digest: Digest, now: Instant) -> Result<&mut Used, Exceeded> {
        let known = self.turns.iter().position(|turn| turn.digest == digest);
        let known = known.and_then(|at| self.turns.remove(at));
        if known.is_none() {
            let is_over = |turn: &Turn| now.since(turn.last) >= TURN_IDLE;
            while self.turns.len() >= LATEST_TURNS && self.turns.front().is_some_and(is_over) {
                self.turns.pop_front();
            }
            if self.turns.len() >= MAX_TURNS {
                return Err(Exceeded::NoTurn);
            }
        }
        let used = known.map(|turn| turn.used).unwrap_or_default();
        Ok(&mut newest(
            &mut self.turns,
            Turn {
                digest,
                last: now,
                used,
            },
        )
        .used)
    }

    /// How often this call was made, which is the newest now; the oldest goes where there are too many.
    fn n_identical(&mut self, identity: Digest) -> &mut u32 {
        let known = self.identical.iter().position(|(known, _)| *known == identity);
        let entry = known.and_then(|at| self.identical.remove(at));
        if self.identical.len() >= MAX_IDENTITIES {
            self.identical.pop_front();
        }
        &mut newest(&mut self.identical, entry.unwrap_or((identity, 0))).1
    }
}

fn newest<T>(entries: &mut VecDeque<T>, entry: T) -> &mut T {
    entries.push_back(entry);
    entries.back_mut().expect("one was just put there")
}

impl Used {
    fn add(&mut self, call: &Call) {
        self.calls = self.calls.saturating_add(1);
        self.cost = self.cost.saturating_add(call.cost.0);
    }

    fn subtract(&mut self, call: &Call) {
        self.calls = self.calls.saturating_sub(1);
        self.cost = self.cost.saturating_sub(call.cost.0);
    }
}

impl From<Exceeded> for ToolError {
    fn from(exceeded: Exceeded) -> Self {
        let kind = match exceeded {
            Exceeded::NoRoom | Exceeded::NoTurn => ErrorKind::Overloaded,
            _ => ErrorKind::Denied,
        };
        let error = Self::new(kind, exceeded.to_string());
        // The message is the reason itself: a source would say it again.
        match exceeded {
            Exceeded::NoRoom => error.with_retry_after(IDLE),
            Exceeded::NoTurn => error.with_retry_after(TURN_IDLE),
            _ => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(owner: &str, conversation: usize) -> Key {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&conversation.to_be_bytes());
        Key {
            owner: ("default".into(), owner.into()),
            conversation: digest,
            turn: None,
        }
    }

    fn call(seconds: u64) -> Call {
        Call {
            now: Instant::since_start(Duration::from_secs(seconds)),
            cost: MicroDollars(0),
            identity: [0; 32],
        }
    }

    #[test]
    fn a_budget_that_is_being_used_is_never_reset() {
        let ledger = Ledger::default();
        let limits = QuotaLimits {
            calls_per_conversation: Some(1),
            ..QuotaLimits::default()
        };
        let take = |owner, n, seconds| ledger.take(&key(owner, n), &call(seconds), &limits);
        for n in 0..MAX_OF_OWNER {
            take("ann", n, 0).unwrap();
        }
        assert_eq!(take("ann", MAX_OF_OWNER, 299), Err(Exceeded::NoRoom));
        assert_eq!(take("ann", 0, 299), Err(Exceeded::Calls(1, "conversation")));
        take("bob", 0, 299).unwrap();
        // Those that were idle for long enough make room, and no others.
        take("ann", MAX_OF_OWNER, 300).unwrap();
        assert_eq!(take("bob", 0, 300), Err(Exceeded::Calls(1, "conversation")));
        // After a day, a conversation begins anew.
        take("bob", 0, 299 + 86_400).unwrap();
    }

    #[test]
    fn a_turn_that_is_being_used_is_never_forgotten() {
        let ledger = Ledger::default();
        let limits = QuotaLimits {
            calls_per_turn: Some(1),
            ..QuotaLimits::default()
        };
        let take = |turn: usize, seconds| {
            let mut key = key("ann", 1);
            key.turn = Some([0; 32]);
            key.turn.as_mut().unwrap()[..8].copy_from_slice(&turn.to_be_bytes());
            ledger.take(&key, &call(seconds), &limits)
        };
        for turn in 0..MAX_TURNS {
            take(turn, 0).unwrap();
        }
        assert_eq!(take(MAX_TURNS, 119), Err(Exceeded::NoTurn));
        assert_eq!(take(0, 119), Err(Exceeded::Calls(1, TURN)));
        // Those that nobody goes on with make room, but for the latest.
        take(MAX_TURNS, 120).unwrap();
        take(0, 120).unwrap();
        assert_eq!(take(MAX_TURNS - 1, 120), Err(Exceeded::Calls(1, TURN)));
    }

    #[test]
    fn memory_is_bounded() {
        let ledger = Ledger::default();
        let limits = QuotaLimits {
            identical_calls: Some(9),
            calls_per_turn: Some(9),
            ..QuotaLimits::default()
        };
        let mut n_refused = 0;
        for n in 0..40_000_usize {
            let owner = format!("p{}", n % 40);
            // A thousand a second: nobody is idle for long enough at first.
            let now = u64::try_from(n / 1000).unwrap();
            n_refused += usize::from(ledger.take(&key(&owner, n), &call(now), &limits).is_err());
        }
        let books = ledger.lock();
        assert!(
            books.n_conversations <= MAX_CONVERSATIONS,
            "{}",
            books.n_conversations
        );
        assert_eq!(n_refused, 40_000 - MAX_CONVERSATIONS);
        drop(books);
        let one = key("eve", 1);
        // A turn each 10 seconds, and each a call that was not made before.
        for turn in 1..=200_u8 {
            let key = Key {
                turn: Some([turn; 32]),
                ..one.clone()
            };
            let call = Call {
                identity: [turn; 32],
                ..call(100_000 + u64::from(turn) * 10)
            };
            ledger.take(&key, &call, &limits).unwrap();
        }
        let books = ledger.lock();
        let conversation = &books.owners[&one.owner][&one.conversation];
        assert_eq!(
            (
                conversation.turns.len(),
                conversation.identical.len(),
                conversation.used.calls
            ),
            (LATEST_TURNS, MAX_IDENTITIES, 200)
        );
    }
}
