use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use foldhash::fast::RandomState;
use futures_util::future::{AbortHandle, AbortRegistration};
use mcp_wire::Id;
use parking_lot::Mutex;
use raw_json::RawJson;

/// The requests of one connection or session that have no answer yet: an id names one of them, and a client may
/// cancel it by that name.
///
/// The table is its client's alone. One that found ids which collide, against a seed that it does not know, would hold
/// up its own requests, and of those there are no more at a time than connections.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<Requests>);

type Requests = HashMap<Id, AbortHandle, RandomState>;

/// Keeps a request's id taken until it is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    in_flight: Arc<InFlight>,
    id: Id,
}

impl InFlight {
    /// Takes an id; nothing when a request with this id is in flight already.
    pub(crate) fn begin(self: &Arc<Self>, id: &Id) -> Option<(Taken, AbortRegistration)> {
        let (handle, registration) = AbortHandle::new_pair();
        match self.0.lock().entry(id.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(entry) => entry.insert(handle),
        };
        let taken = Taken {
            in_flight: Arc::clone(self),
            id: id.clone(),
        };
        Some((taken, registration))
    }

    /// Cancels a request. One that is not in flight, or never was, is none of our business.
    pub(crate) fn cancel(&self, id: &RawJson) {
        let handle = Id::new(id).and_then(|id| self.0.lock().get(&id).cloned());
        if let Some(handle) = handle {
            handle.abort();
        }
    }

    /// Cancels every request.
    pub(crate) fn cancel_all(&self) {
        for handle in self.0.lock().values() {
            handle.abort();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.in_flight.0.lock().remove(&self.id);
    }
}
