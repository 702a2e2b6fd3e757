use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::Principal;

/// Semaphore for the streams that stand open without a call, so that connections are left for calls. It has a limit for
/// all streams, and one for those of each principal.
#[derive(Debug)]
pub(crate) struct StreamPermits {
    taken: Mutex<TakenPermits>,
    max: usize,
    max_each: usize,
}

#[derive(Debug, Default)]
struct TakenPermits {
    total: usize,
    by_principal: HashMap<Principal, usize>,
}

/// Permit for one stream, given back when dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    permits: Arc<StreamPermits>,
    principal: Principal,
}

/// Reason why a stream gets no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoStreamPermit {
    /// The principal has as many streams as one may have.
    ForPrincipal,
    /// The endpoint has as many streams as it may have.
    ForAnyone,
}

impl StreamPermits {
    pub(crate) fn new(max: usize, max_each: usize) -> Self {
        Self {
            taken: Mutex::default(),
            max,
            max_each,
        }
    }

    /// Takes a permit for a stream of this principal.
    pub(crate) fn try_acquire(
        self: &Arc<Self>,
        principal: &Principal,
    ) -> Result<StreamPermit, NoStreamPermit> {
        let mut taken = self.taken.lock();
        let of_principal = taken.by_principal.get(principal).copied().unwrap_or_default();
        if of_principal >= self.max_each {
            return Err(NoStreamPermit::ForPrincipal);
        }
        if taken.total >= self.max {
            return Err(NoStreamPermit::ForAnyone);
        }
        taken.total += 1;
        taken.by_principal.insert(principal.clone(), of_principal + 1);
        Ok(StreamPermit {
            permits: Arc::clone(self),
            principal: principal.clone(),
        })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut taken = self.permits.taken.lock();
        taken.total -= 1;
        if let Some(of_principal) = taken.by_principal.get_mut(&self.principal) {
            *of_principal -= 1;
            if *of_principal == 0 {
                taken.by_principal.remove(&self.principal);
            }
        }
    }
}
