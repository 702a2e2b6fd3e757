use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::Notify;

use crate::{EndedSpan, Spans};

/// The spans that have ended and are not sent yet. It is bounded: when the collector is too slow, spans are lost and calls
/// go on.
#[derive(Debug)]
pub(super) struct Queue {
    batches: Mutex<Batches>,
    max_spans: usize,
    max_batch: usize,
    n_lost: AtomicU64,
    full: Notify,
}

#[derive(Debug, Default)]
struct Batches {
    /// Spans that are sent together.
    list: VecDeque<Vec<EndedSpan>>,
    n_spans: usize,
}

impl Queue {
    pub(super) fn new(max_spans: usize, max_batch: usize) -> Self {
        Self {
            batches: Mutex::default(),
            max_spans,
            max_batch: max_batch.clamp(1, max_spans.max(1)),
            n_lost: AtomicU64::new(0),
            full: Notify::new(),
        }
    }

    /// Waits until there are so many spans that they should be sent before it is time.
    pub(super) async fn filled(&self) {
        self.full.notified().await;
    }

    /// The oldest spans; of those that are too few for a batch only if they are asked for.
    pub(super) fn take(&self, also_few: bool) -> Option<Vec<EndedSpan>> {
        let mut batches = self.lock();
        let first = batches.list.front()?;
        if first.len() < self.max_batch && !also_few {
            return None;
        }
        let batch = batches.list.pop_front()?;
        batches.n_spans -= batch.len();
        Some(batch)
    }

    /// How many spans were lost since this was asked the last time.
    pub(super) fn lost(&self) -> u64 {
        self.n_lost.swap(0, Ordering::Relaxed)
    }

    /// Counts spans that were taken and could not be sent.
    pub(super) fn lose(&self, n_spans: usize) {
        self.n_lost.fetch_add(n_spans as u64, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Batches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spans for Queue {
    fn ended(&self, span: EndedSpan) {
        let mut batches = self.lock();
        if batches.n_spans >= self.max_spans {
            drop(batches);
            return self.lose(1);
        }
        batches.n_spans += 1;
        if batches
            .list
            .back()
            .is_none_or(|last| last.len() >= self.max_batch)
        {
            batches.list.push_back(Vec::new());
        }
        let Some(last) = batches.list.back_mut() else {
            return;
        };
        last.push(span);
        let is_full = last.len() == self.max_batch;
        drop(batches);
        if is_full {
            self.full.notify_one();
        }
    }
}
