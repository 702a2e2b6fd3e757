use std::sync::Arc;

use parking_lot::Mutex;
use tool_core::Caller;
use tool_policy::SharedRules;
use tool_registry::Snapshot;

use crate::View;

/// Views of the current snapshot, so that an unchanged list is filtered once.
#[derive(Debug, Default)]
pub(crate) struct Views(Mutex<Vec<(Caller, View)>>);

/// Maximum number of stored views: the oldest is evicted first.
const MAX_VIEWS: usize = 64;

impl Views {
    /// Removes all views, and with them their references to removed tools.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    pub(crate) fn get(&self, snapshot: &Arc<Snapshot>, rules: &SharedRules, caller: &Caller) -> View {
        // The view of one client, which is rarely requested.
        if snapshot.scope() != 0 {
            return View::new(snapshot, &rules.load(), caller);
        }
        let mut views = self.0.lock();
        // Nobody requests an older one again.
        views.retain(|(_, view)| view.revision() >= snapshot.revision());
        let known = views
            .iter()
            .find(|(of, view)| of == caller && view.revision() == snapshot.revision());
        if let Some((_, view)) = known {
            return view.clone();
        }
        // Read while no other thread clears the views: a view by replaced rules does not stay.
        let view = View::new(snapshot, &rules.load(), caller);
        if views.len() >= MAX_VIEWS {
            views.remove(0);
        }
        views.push((caller.clone(), view.clone()));
        view
    }
}
