use std::sync::Arc;

use parking_lot::Mutex;
use tool_core::Caller;
use tool_policy::Rules;
use tool_registry::Snapshot;

use crate::View;

/// The views of the present snapshot, so that a list that nobody changed is not filtered again.
#[derive(Debug, Default)]
pub(crate) struct Views(Mutex<Vec<(Caller, View)>>);

/// How many callers' views are kept: the oldest goes first.
const MAX_VIEWS: usize = 64;

impl Views {
    /// Forgets all: with them, what they hold of tools that are gone.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    pub(crate) fn get(&self, snapshot: &Arc<Snapshot>, rules: &Rules, caller: &Caller) -> View {
        // Of one client, and seldom asked for.
        if snapshot.scope() != 0 {
            return View::new(snapshot, rules, caller);
        }
        let mut views = self.0.lock();
        // Nobody asks for an older one again.
        views.retain(|(_, view)| view.revision() >= snapshot.revision());
        let known = views
            .iter()
            .find(|(of, view)| of == caller && view.revision() == snapshot.revision());
        if let Some((_, view)) = known {
            return view.clone();
        }
        let view = View::new(snapshot, rules, caller);
        if views.len() >= MAX_VIEWS {
            views.remove(0);
        }
        views.push((caller.clone(), view.clone()));
        view
    }
}
