use std::sync::atomic::{AtomicUsize, Ordering};

/// Limit on the bytes that are kept for all sessions together.
#[derive(Debug, Default)]
pub(crate) struct ByteBudget(AtomicUsize);

impl ByteBudget {
    /// Maximum number of bytes: 32 MiB.
    pub(crate) const MAX: usize = 32 * 1024 * 1024;

    /// Takes bytes from the budget. Returns `false`, and takes none, if there are too few left.
    pub(crate) fn take(&self, length: usize) -> bool {
        let before = self.0.fetch_add(length, Ordering::Relaxed);
        if before + length > Self::MAX {
            self.give_back(length);
            return false;
        }
        true
    }

    /// Returns bytes to the budget.
    pub(crate) fn give_back(&self, length: usize) {
        self.0.fetch_sub(length, Ordering::Relaxed);
    }

    /// Returns the number of bytes that are taken.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
