use std::sync::atomic::{AtomicU8, Ordering};

/// How far an attempt got towards its tool: what decides whether it may be sent again, also when its future was
/// dropped.
///
/// An executor marks [`Dispatch::sent`] right before the first byte leaves and [`Dispatch::answered`] when the
/// answer is there. Marks only go forward.
#[derive(Debug, Default)]
pub struct Dispatch(AtomicU8);

/// The marks of a [`Dispatch`], in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DispatchState {
    /// Nothing has left: the tool cannot have run.
    NotSent,
    /// At least a byte may have left: the tool may have run.
    Sent,
    /// The tool has answered.
    Answered,
}

impl Dispatch {
    /// Marks that the first byte is about to leave.
    pub fn sent(&self) {
        self.0.fetch_max(DispatchState::Sent as u8, Ordering::AcqRel);
    }

    /// Marks that the answer has arrived.
    pub fn answered(&self) {
        self.0.fetch_max(DispatchState::Answered as u8, Ordering::AcqRel);
    }

    /// How far the attempt got.
    #[must_use]
    pub fn state(&self) -> DispatchState {
        match self.0.load(Ordering::Acquire) {
            0 => DispatchState::NotSent,
            1 => DispatchState::Sent,
            _ => DispatchState::Answered,
        }
    }
}
