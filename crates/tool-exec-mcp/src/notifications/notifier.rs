use parking_lot::Mutex;
use tool_core::{OnUpdate, Update};

/// Passes the server's notifications to all listeners.
#[derive(Default)]
pub(crate) struct Notifier(Mutex<Vec<OnUpdate>>);

impl Notifier {
    pub(crate) fn add_listener(&self, tell: OnUpdate) {
        self.0.lock().push(tell);
    }

    /// Passes an update to all listeners.
    pub(crate) fn notify(&self, update: &Update) {
        let all = self.0.lock().clone();
        for tell in all {
            tell(update);
        }
    }
}
