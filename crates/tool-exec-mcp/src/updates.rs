use std::sync::{Mutex, PoisonError};

use raw_json::RawJson;
use tool_core::OnUpdate;

/// Where news of resources go.
#[derive(Default)]
pub(crate) struct Updates(Mutex<Vec<OnUpdate>>);

impl Updates {
    pub(crate) fn add(&self, tell: OnUpdate) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(tell);
    }

    /// Hands on what the server says of a resource that has changed.
    pub(crate) fn tell(&self, update: &RawJson) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for tell in all {
            tell(update);
        }
    }
}
