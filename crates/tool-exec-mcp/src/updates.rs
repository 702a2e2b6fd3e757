use parking_lot::Mutex;
use tool_core::{OnUpdate, Update};

/// Where goes what the server tells of its own accord.
#[derive(Default)]
pub(crate) struct Updates(Mutex<Vec<OnUpdate>>);

impl Updates {
    pub(crate) fn add(&self, tell: OnUpdate) {
        self.0.lock().push(tell);
    }

    /// Hands on what the server tells.
    pub(crate) fn tell(&self, update: &Update) {
        let all = self.0.lock().clone();
        for tell in all {
            tell(update);
        }
    }
}
