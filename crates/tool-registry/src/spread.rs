//! Work on many items, spread over all cores.

use std::{
    panic::resume_unwind,
    thread::{self, available_parallelism},
};

/// Minimum number of items for each thread. Starting a thread costs as much as about ten items.
const MIN_PER_THREAD: usize = 500;

/// Applies a function to all items and returns the results in their order. Many items are spread over all cores.
pub(crate) fn map_all<T: Sync, R: Send>(items: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let n_threads = (items.len() / MIN_PER_THREAD).clamp(1, available_parallelism().map_or(1, usize::from));
    let mut parts = items.chunks(items.len().div_ceil(n_threads).max(1));
    let first = parts.next().unwrap_or_default();
    let make_part = |part: &[T]| part.iter().map(&make).collect::<Vec<_>>();
    thread::scope(|scope| {
        let others: Vec<_> = parts.map(|part| scope.spawn(move || make_part(part))).collect();
        let mut made = make_part(first);
        for other in others {
            made.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        made
    })
}
