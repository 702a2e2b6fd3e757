use std::{collections::VecDeque, future::pending, num::NonZeroUsize, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// Limits the number of concurrent server starts. Cloning shares the limit: give the same one to all servers.
///
/// A priority queue: servers that a caller waits for start first, in order of demand, then background starts
/// ([`Upstream::start_in_background`](crate::Upstream::start_in_background)) in theirs. If the limit is two or more,
/// background starts never use the last permit, so that hanging servers do not block one that is needed. The start
/// timeout counts from the permit on.
#[derive(Debug, Clone)]
pub struct StartLimit(Arc<Mutex<Queue>>);

#[derive(Debug)]
struct Queue {
    max: usize,
    n_needed: usize,
    n_background: usize,
    n_entered: u64,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    is_needed: bool,
    sender: oneshot::Sender<LimitPermit>,
}

/// State of a start, beginning before it enters the queue.
#[derive(Debug)]
pub(super) struct StartTicket(Mutex<TicketState>);

#[derive(Debug)]
struct TicketState {
    is_needed: bool,
    place: Option<QueueEntry>,
}

/// Position of a start in the queue.
#[derive(Debug)]
struct QueueEntry {
    limit: StartLimit,
    id: u64,
}

/// Permit to start, released on drop.
#[derive(Debug)]
pub(super) struct LimitPermit {
    limit: StartLimit,
    is_needed: bool,
    /// `true` if the permit is released on drop.
    is_active: bool,
}

impl StartLimit {
    /// Creates a limit of `max` concurrent starts.
    #[must_use]
    pub fn new(max: NonZeroUsize) -> Self {
        Self(Arc::new(Mutex::new(Queue {
            max: max.get(),
            n_needed: 0,
            n_background: 0,
            n_entered: 0,
            waiting: VecDeque::new(),
        })))
    }

    /// Changes the limit. Running starts continue.
    pub fn set_max(&self, max: NonZeroUsize) {
        self.queue().max = max.get();
        self.grant();
    }

    /// Enters the queue.
    fn enter(&self, is_needed: bool) -> (QueueEntry, oneshot::Receiver<LimitPermit>) {
        let (sender, granted) = oneshot::channel();
        let mut queue = self.queue();
        let id = queue.n_entered;
        queue.n_entered += 1;
        queue.waiting.push_back(Waiter {
            id,
            is_needed,
            sender,
        });
        drop(queue);
        self.grant();
        let limit = self.clone();
        (QueueEntry { limit, id }, granted)
    }

    /// Grants free permits.
    fn grant(&self) {
        loop {
            let Some((waiter, is_needed)) = self.queue().next() else {
                return;
            };
            let turn = LimitPermit {
                limit: self.clone(),
                is_needed,
                is_active: true,
            };
            // A waiter that has left passes its permit on.
            if let Err(mut turn) = waiter.sender.send(turn) {
                turn.is_active = false;
                self.queue().leave(is_needed);
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock()
    }
}

impl Queue {
    fn next(&mut self) -> Option<(Waiter, bool)> {
        if self.n_needed + self.n_background >= self.max {
            return None;
        }
        let needed = self.waiting.iter().position(|waiter| waiter.is_needed);
        let first = || (self.n_background < (self.max - 1).max(1) && !self.waiting.is_empty()).then_some(0);
        let waiter = self.waiting.remove(needed.or_else(first)?)?;
        match waiter.is_needed {
            true => self.n_needed += 1,
            false => self.n_background += 1,
        }
        let is_needed = waiter.is_needed;
        Some((waiter, is_needed))
    }

    fn leave(&mut self, is_needed: bool) {
        match is_needed {
            true => self.n_needed -= 1,
            false => self.n_background -= 1,
        }
    }
}

impl StartTicket {
    pub(super) fn new(is_needed: bool) -> Self {
        let place = None;
        Self(Mutex::new(TicketState { is_needed, place }))
    }

    /// Moves the start ahead of background starts, because a caller waits for it.
    pub(super) fn prioritize(&self) {
        let mut state = self.state();
        state.is_needed = true;
        if let Some(place) = &state.place {
            place.prioritize();
        }
    }

    /// Waits for the permit.
    pub(super) async fn acquire(&self, limit: &StartLimit) -> LimitPermit {
        let granted = {
            let mut state = self.state();
            let (place, granted) = limit.enter(state.is_needed);
            state.place = Some(place);
            granted
        };
        match granted.await {
            Ok(turn) => turn,
            // The limit keeps the sender until it grants the permit.
            Err(_) => pending().await,
        }
    }

    fn state(&self) -> MutexGuard<'_, TicketState> {
        self.0.lock()
    }
}

impl QueueEntry {
    fn prioritize(&self) {
        let mut queue = self.limit.queue();
        let waiter = queue.waiting.iter_mut().find(|waiter| waiter.id == self.id);
        if let Some(waiter) = waiter {
            waiter.is_needed = true;
        }
        drop(queue);
        self.limit.grant();
    }
}

impl Drop for LimitPermit {
    fn drop(&mut self) {
        if self.is_active {
            self.limit.queue().leave(self.is_needed);
            self.limit.grant();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(max: usize) -> StartLimit {
        StartLimit::new(NonZeroUsize::new(max).expect("it is not 0"))
    }

    /// Collects the permits granted so far.
    fn granted(waiting: &mut [(usize, oneshot::Receiver<LimitPermit>)]) -> Vec<(usize, LimitPermit)> {
        let granted = waiting
            .iter_mut()
            .filter_map(|(n, turn)| Some((*n, turn.try_recv().ok()?)));
        granted.collect()
    }

    fn numbers(granted: &[(usize, LimitPermit)]) -> Vec<usize> {
        granted.iter().map(|(n, _)| *n).collect()
    }

    #[test]
    fn starts_have_their_turns_in_their_order_and_those_that_are_needed_first() {
        let limit = limit(3);
        let entered: Vec<_> = (0..6).map(|n| (n, limit.enter(n == 5))).collect();
        let (places, mut waiting): (Vec<_>, Vec<_>) = entered
            .into_iter()
            .map(|(n, (place, turn))| (place, (n, turn)))
            .unzip();
        let first = granted(&mut waiting);
        assert_eq!(numbers(&first), [0, 1, 5], "one place is for what is needed");
        drop(first);
        let second = granted(&mut waiting);
        assert_eq!(numbers(&second), [2, 3]);
        places[4].prioritize();
        let third = granted(&mut waiting);
        assert_eq!(numbers(&third), [4], "it is needed by now");
        // Prioritizing a start that has begun has no effect.
        places[0].prioritize();
    }

    #[tokio::test]
    async fn a_start_can_be_hurried_before_it_is_in_the_queue_and_after() {
        let limit = limit(1);
        let held = limit.enter(false).1.await.expect("the first turn");
        let _waiting = limit.enter(false);
        let [before, after] = [(); 2].map(|()| Arc::new(StartTicket::new(false)));
        before.prioritize();
        let turns = [&before, &after].map(|ticket| {
            let (ticket, limit) = (ticket.clone(), limit.clone());
            tokio::spawn(async move { ticket.acquire(&limit).await })
        });
        tokio::task::yield_now().await;
        after.prioritize();
        drop(held);
        for turn in turns {
            drop(turn.await.expect("it comes before what waits in the background"));
        }
    }

    #[test]
    fn one_at_a_time_is_possible() {
        let limit = limit(1);
        let mut waiting: Vec<_> = (0..3).map(|n| (n, limit.enter(false).1)).collect();
        let (_, needed) = limit.enter(true);
        waiting.push((3, needed));
        for expected in [0, 3, 1, 2] {
            assert_eq!(numbers(&granted(&mut waiting)), [expected]);
        }
    }

    #[test]
    fn whoever_leaves_holds_up_nobody() {
        let limit = limit(2);
        let mut waiting: Vec<_> = (0..5).map(|n| (n, limit.enter(false).1)).collect();
        let first = granted(&mut waiting);
        assert_eq!(numbers(&first), [0]);
        waiting.retain(|(n, _)| ![1, 2].contains(n));
        drop(first);
        // Granted, but not taken.
        waiting.retain(|(n, _)| *n != 3);
        assert_eq!(numbers(&granted(&mut waiting)), [4]);
        let queue = limit.queue();
        assert_eq!(
            (queue.n_needed, queue.n_background, queue.waiting.len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn a_larger_limit_counts_at_once() {
        let limit = limit(1);
        let mut waiting: Vec<_> = (0..4).map(|n| (n, limit.enter(true).1)).collect();
        let first = granted(&mut waiting);
        limit.set_max(NonZeroUsize::new(3).expect("it is not 0"));
        let more = granted(&mut waiting);
        assert_eq!((numbers(&first), numbers(&more)), (vec![0], vec![1, 2]));
    }
}
