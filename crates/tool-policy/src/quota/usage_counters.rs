//! Usage counters: calls and costs of each conversation and turn, in bounded memory.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tool_core::{ErrorKind, Instant, ToolError};

use super::{MicroDollars, QuotaLimits};

/// Calls and costs so far of all conversations.
#[derive(Debug, Default)]
pub(crate) struct UsageCounters(Mutex<Conversations>);

#[derive(Debug, Default)]
struct Conversations {
    owners: HashMap<Owner, HashMap<Digest, Conversation>>,
    n_conversations: usize,
    /// Earliest time at which a conversation can be evicted. It is searched for once, not for each refused call.
    full_until: Instant,
}

/// Tenant and principal.
type Owner = (Arc<str>, Arc<str>);
type Digest = [u8; 32];

/// A turn of a conversation, with the owner of the conversation.
#[derive(Debug, Clone)]
pub(crate) struct UsageKey {
    pub(crate) owner: Owner,
    pub(crate) conversation: Digest,
    pub(crate) turn: Option<Digest>,
}

/// A call, as it is counted.
#[derive(Debug, Clone)]
pub(crate) struct CountedCall {
    pub(crate) now: Instant,
    pub(crate) cost: MicroDollars,
    /// Digest of the tool and the arguments.
    pub(crate) identity: Digest,
}

#[derive(Debug, Default)]
struct Conversation {
    last: Instant,
    used: Usage,
    /// Latest turns, the newest last.
    turns: VecDeque<Turn>,
    /// Number of calls of each of the latest identities, the newest last.
    identical: VecDeque<(Digest, u32)>,
}

#[derive(Debug)]
struct Turn {
    digest: Digest,
    last: Instant,
    used: Usage,
}

#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    calls: u32,
    cost: u64,
}

/// The limit that a call would exceed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuotaExceeded {
    #[error("the limit of {0} calls in one {1} is reached")]
    Calls(u32, &'static str),
    #[error("the same call was already made {0} times in this conversation")]
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
    #[error("too many conversations are active at once")]
    TooManyConversations,
    #[error("too many turns are active at once in this conversation")]
    TooManyTurns,
}

const TURN: &str = "turn";
const MAX_CONVERSATIONS: usize = 16_384;
const MAX_OF_OWNER: usize = 1_024;
/// Minimum number of turns that are retained per conversation.
const MIN_TURNS: usize = 16;
/// Maximum number of turns that are retained per conversation.
const MAX_TURNS: usize = 512;
const MAX_IDENTITIES: usize = 64;
/// Time without a call after which a conversation is forgotten.
const CONVERSATION_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// Time without a call after which a conversation may be evicted.
const CONVERSATION_IDLE: Duration = Duration::from_secs(5 * 60);
/// Time without a call after which a turn may be evicted. It is twice the default call timeout. Turns are shorter than
/// conversations, so this is less than [`CONVERSATION_IDLE`].
const TURN_IDLE: Duration = Duration::from_secs(2 * 60);

impl QuotaExceeded {
    /// Returns the limit's name in the configuration.
    pub(crate) fn limit_name(&self) -> &'static str {
        match self {
            Self::Calls(_, TURN) => "calls_per_turn",
            Self::Calls(..) => "calls_per_conversation",
            Self::Identical(_) => "identical_calls",
            Self::Cost { of: TURN, .. } => "cost_per_turn",
            Self::Cost { .. } => "cost_per_conversation",
            Self::TooManyConversations => "conversations",
            Self::TooManyTurns => "turns",
        }
    }
}

impl UsageCounters {
    /// Counts a call, unless it would exceed a limit.
    pub(crate) fn count(
        &self,
        key: &UsageKey,
        call: &CountedCall,
        limits: &QuotaLimits,
    ) -> Result<(), QuotaExceeded> {
        let mut conversations = self.lock();
        let conversation = conversations.get_or_create(key, call.now)?;
        conversation.check(key, call, limits)?;
        if let Some(turn) = key.turn.filter(|_| limits.has_turn_limits()) {
            conversation.turn(turn, call.now)?.add(call);
        }
        conversation.last = call.now;
        conversation.used.add(call);
        if limits.identical_calls.is_some() {
            *conversation.n_identical(call.identity) += 1;
        }
        Ok(())
    }

    /// Checks that a call would not exceed a limit, without counting it.
    pub(crate) fn check(
        &self,
        key: &UsageKey,
        call: &CountedCall,
        limits: &QuotaLimits,
    ) -> Result<(), QuotaExceeded> {
        let conversations = self.lock();
        let known = conversations
            .owners
            .get(&key.owner)
            .and_then(|all| all.get(&key.conversation));
        match known.filter(|known| call.now.since(known.last) < CONVERSATION_TTL) {
            Some(known) => known.check(key, call, limits),
            None => Conversation::default().check(key, call, limits),
        }
    }

    /// Reverts the count of a call that was not made.
    pub(crate) fn uncount(&self, key: &UsageKey, call: &CountedCall) {
        let mut conversations = self.lock();
        let owner = conversations.owners.get_mut(&key.owner);
        let Some(conversation) = owner.and_then(|all| all.get_mut(&key.conversation)) else {
            return;
        };
        conversation.used.subtract(call);
        let is_its_turn = |turn: &&mut Turn| Some(turn.digest) == key.turn;
        if let Some(turn) = conversation.turns.iter_mut().find(is_its_turn) {
            turn.used.subtract(call);
        }
        let is_same = |(identity, _): &&mut (Digest, u32)| *identity == call.identity;
        if let Some((_, n_calls)) = conversation.identical.iter_mut().find(is_same) {
            *n_calls = n_calls.saturating_sub(1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Conversations> {
        self.0.lock()
    }
}

impl Conversations {
    /// Returns the conversation of a call. Creates it if there is room.
    fn get_or_create(&mut self, key: &UsageKey, now: Instant) -> Result<&mut Conversation, QuotaExceeded> {
        let n_own = self.owners.get(&key.owner).map_or(0, HashMap::len);
        let known = self
            .owners
            .get(&key.owner)
            .and_then(|all| all.get(&key.conversation));
        let is_expired = known.map(|known| now.since(known.last) >= CONVERSATION_TTL);
        if is_expired.is_none() && n_own >= MAX_OF_OWNER {
            self.evict_idle(Some(&key.owner), now)?;
        }
        if is_expired.is_none() && self.n_conversations >= MAX_CONVERSATIONS {
            self.evict_idle(None, now)?;
        }
        if is_expired.is_none() {
            self.n_conversations += 1;
        }
        let own = self.owners.entry(key.owner.clone()).or_default();
        let conversation = own.entry(key.conversation).or_default();
        if is_expired != Some(false) {
            *conversation = Conversation {
                last: now,
                ..Conversation::default()
            };
        }
        Ok(conversation)
    }

    /// Evicts the conversations that have been idle longest: a sixteenth of them, so that this is not needed for each new one.
    fn evict_idle(&mut self, of: Option<&Owner>, now: Instant) -> Result<(), QuotaExceeded> {
        if of.is_none() && now < self.full_until {
            return Err(QuotaExceeded::TooManyConversations);
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
                own.retain(|_, known| known.last > latest || now.since(known.last) < CONVERSATION_IDLE);
            }
        }
        self.owners.retain(|_, own| !own.is_empty());
        self.n_conversations = self.owners.values().map(HashMap::len).sum();
        if self.n_conversations < before {
            return Ok(());
        }
        if of.is_none() {
            let oldest = last.into_iter().min().unwrap_or_default();
            self.full_until = oldest + CONVERSATION_IDLE;
        }
        Err(QuotaExceeded::TooManyConversations)
    }
}

impl Conversation {
    fn check(&self, key: &UsageKey, call: &CountedCall, limits: &QuotaLimits) -> Result<(), QuotaExceeded> {
        let turn = self.turns.iter().find(|turn| Some(turn.digest) == key.turn);
        let in_turn = turn.map(|turn| turn.used).unwrap_or_default();
        // Calls that name no turn belong to none.
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
                return Err(QuotaExceeded::Calls(limit, of));
            }
            if let Some(limit) = cost.filter(|limit| used.cost.saturating_add(call.cost.0) > limit.0) {
                return Err(QuotaExceeded::Cost {
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
            Some(limit) if n_same >= limit => Err(QuotaExceeded::Identical(n_same)),
            _ => Ok(()),
        }
    }

    /// Returns the usage of this turn, which becomes the newest. Another turn is evicted for it only if that one is idle.
    fn turn(&mut self, digest: Digest, now: Instant) -> Result<&mut Usage, QuotaExceeded> {
        let known = self.turns.iter().position(|turn| turn.digest == digest);
        let known = known.and_then(|at| self.turns.remove(at));
        if known.is_none() {
            let is_idle = |turn: &Turn| now.since(turn.last) >= TURN_IDLE;
            while self.turns.len() >= MIN_TURNS && self.turns.front().is_some_and(is_idle) {
                self.turns.pop_front();
            }
            if self.turns.len() >= MAX_TURNS {
                return Err(QuotaExceeded::TooManyTurns);
            }
        }
        let used = known.map(|turn| turn.used).unwrap_or_default();
        Ok(&mut push_newest(
            &mut self.turns,
            Turn {
                digest,
                last: now,
                used,
            },
        )
        .used)
    }

    /// Returns the number of calls with this identity, which becomes the newest. Drops the oldest identity if there are too
    /// many.
    fn n_identical(&mut self, identity: Digest) -> &mut u32 {
        let known = self.identical.iter().position(|(known, _)| *known == identity);
        let entry = known.and_then(|at| self.identical.remove(at));
        if self.identical.len() >= MAX_IDENTITIES {
            self.identical.pop_front();
        }
        &mut push_newest(&mut self.identical, entry.unwrap_or((identity, 0))).1
    }
}

fn push_newest<T>(entries: &mut VecDeque<T>, entry: T) -> &mut T {
    entries.push_back(entry);
    entries.back_mut().expect("an entry was pushed")
}

impl Usage {
    fn add(&mut self, call: &CountedCall) {
        self.calls = self.calls.saturating_add(1);
        self.cost = self.cost.saturating_add(call.cost.0);
    }

    fn subtract(&mut self, call: &CountedCall) {
        self.calls = self.calls.saturating_sub(1);
        self.cost = self.cost.saturating_sub(call.cost.0);
    }
}

impl From<QuotaExceeded> for ToolError {
    fn from(exceeded: QuotaExceeded) -> Self {
        let kind = match exceeded {
            QuotaExceeded::TooManyConversations | QuotaExceeded::TooManyTurns => ErrorKind::Overloaded,
            _ => ErrorKind::Denied,
        };
        let error = Self::new(kind, exceeded.to_string());
        // The message states the reason; a source would repeat it.
        match exceeded {
            QuotaExceeded::TooManyConversations => error.with_retry_after(CONVERSATION_IDLE),
            QuotaExceeded::TooManyTurns => error.with_retry_after(TURN_IDLE),
            _ => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(owner: &str, conversation: usize) -> UsageKey {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&conversation.to_be_bytes());
        UsageKey {
            owner: ("default".into(), owner.into()),
            conversation: digest,
            turn: None,
        }
    }

    fn call(seconds: u64) -> CountedCall {
        CountedCall {
            now: Instant::since_start(Duration::from_secs(seconds)),
            cost: MicroDollars(0),
            identity: [0; 32],
        }
    }

    #[test]
    fn a_quota_in_use_is_never_reset() {
        let counters = UsageCounters::default();
        let limits = QuotaLimits {
            calls_per_conversation: Some(1),
            ..QuotaLimits::default()
        };
        let take = |owner, n, seconds| counters.count(&key(owner, n), &call(seconds), &limits);
        for n in 0..MAX_OF_OWNER {
            take("ann", n, 0).unwrap();
        }
        assert_eq!(
            take("ann", MAX_OF_OWNER, 299),
            Err(QuotaExceeded::TooManyConversations)
        );
        assert_eq!(take("ann", 0, 299), Err(QuotaExceeded::Calls(1, "conversation")));
        take("bob", 0, 299).unwrap();
        // Only conversations that have been idle long enough are evicted.
        take("ann", MAX_OF_OWNER, 300).unwrap();
        assert_eq!(take("bob", 0, 300), Err(QuotaExceeded::Calls(1, "conversation")));
        // After a day, a conversation begins anew.
        take("bob", 0, 299 + 86_400).unwrap();
    }

    #[test]
    fn a_turn_in_use_is_never_forgotten() {
        let counters = UsageCounters::default();
        let limits = QuotaLimits {
            calls_per_turn: Some(1),
            ..QuotaLimits::default()
        };
        let take = |turn: usize, seconds| {
            let mut key = key("ann", 1);
            key.turn = Some([0; 32]);
            key.turn.as_mut().unwrap()[..8].copy_from_slice(&turn.to_be_bytes());
            counters.count(&key, &call(seconds), &limits)
        };
        for turn in 0..MAX_TURNS {
            take(turn, 0).unwrap();
        }
        assert_eq!(take(MAX_TURNS, 119), Err(QuotaExceeded::TooManyTurns));
        assert_eq!(take(0, 119), Err(QuotaExceeded::Calls(1, TURN)));
        // Idle turns are evicted, except for the latest ones.
        take(MAX_TURNS, 120).unwrap();
        take(0, 120).unwrap();
        assert_eq!(take(MAX_TURNS - 1, 120), Err(QuotaExceeded::Calls(1, TURN)));
    }

    #[test]
    fn memory_is_bounded() {
        let counters = UsageCounters::default();
        let limits = QuotaLimits {
            identical_calls: Some(9),
            calls_per_turn: Some(9),
            ..QuotaLimits::default()
        };
        let mut n_refused = 0;
        for n in 0..40_000_usize {
            let owner = format!("p{}", n % 40);
            // A thousand a second: none is idle long enough at first.
            let now = u64::try_from(n / 1000).unwrap();
            n_refused += usize::from(counters.count(&key(&owner, n), &call(now), &limits).is_err());
        }
        let conversations = counters.lock();
        assert!(
            conversations.n_conversations <= MAX_CONVERSATIONS,
            "{}",
            conversations.n_conversations
        );
        assert_eq!(n_refused, 40_000 - MAX_CONVERSATIONS);
        drop(conversations);
        let one = key("eve", 1);
        // A new turn every 10 seconds, each with a new call.
        for turn in 1..=200_u8 {
            let key = UsageKey {
                turn: Some([turn; 32]),
                ..one.clone()
            };
            let call = CountedCall {
                identity: [turn; 32],
                ..call(100_000 + u64::from(turn) * 10)
            };
            counters.count(&key, &call, &limits).unwrap();
        }
        let conversations = counters.lock();
        let conversation = &conversations.owners[&one.owner][&one.conversation];
        assert_eq!(
            (
                conversation.turns.len(),
                conversation.identical.len(),
                conversation.used.calls
            ),
            (MIN_TURNS, MAX_IDENTITIES, 200)
        );
    }
}
