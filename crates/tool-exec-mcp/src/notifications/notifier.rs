use parking_lot::Mutex;
use tool_core::{OnUpdate, Update};

/// Where goes what the server tells of its own accord.
#[derive(Default)]
pub(crate) struct Notifier(Mutex<Vec<OnUpdate>>);

impl Notifier {
    pub(crate) fn add_listener(&self, tell: OnUpdate) {
        self.0.lock().push(tell);
    }

    /// Hands on what the server tells.
    pub(crate) fn notify(&self, update: &Update) {
        let all = self.0.lock().clone();
        for tell in all {
            tell(update);
        }
    }
}
