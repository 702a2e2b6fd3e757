use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use foldhash::fast::RandomState;
use futures_util::future::{AbortHandle, AbortRegistration};
use mcp_wire::Id;
use parking_lot::Mutex;
use raw_json::RawJson;

/// Requests of one connection or session that are not answered, by the ids under which the client may cancel them.
///
/// Each client has a table of its own. A client that found colliding ids, against a seed that it does not know, would delay
/// only its own requests, and has no more of them at a time than connections.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<Requests>);

type Requests = HashMap<Id, AbortHandle, RandomState>;

/// Request in flight, whose id is reserved until this is dropped.
#[derive(Debug)]
pub(crate) struct InFlightRequest {
    in_flight: Arc<InFlight>,
    id: Id,
}

impl InFlight {
    /// Reserves an id. Returns `None` if a request with this id is in flight already.
    pub(crate) fn begin(self: &Arc<Self>, id: &Id) -> Option<(InFlightRequest, AbortRegistration)> {
        let (handle, registration) = AbortHandle::new_pair();
        match self.0.lock().entry(id.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(entry) => entry.insert(handle),
        };
        let request = InFlightRequest {
            in_flight: Arc::clone(self),
            id: id.clone(),
        };
        Some((request, registration))
    }

    /// Cancels a request. Ids that are not in flight are ignored.
    pub(crate) fn cancel(&self, id: &RawJson) {
        let handle = Id::new(id).and_then(|id| self.0.lock().get(&id).cloned());
        if let Some(handle) = handle {
            handle.abort();
        }
    }

    /// Cancels all requests.
    pub(crate) fn cancel_all(&self) {
        for handle in self.0.lock().values() {
            handle.abort();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.in_flight.0.lock().remove(&self.id);
    }
}
