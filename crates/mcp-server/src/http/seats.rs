//! How many streams may stand open without a call, so that there are connections left for calls.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::Principal;

/// The seats of one endpoint: so many in all, and so many for one principal.
#[derive(Debug)]
pub(super) struct Seats {
    taken: Mutex<Taken>,
    max: usize,
    max_each: usize,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    by_principal: HashMap<Principal, usize>,
}

/// Stands for one stream until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    principal: Principal,
}

/// Why there is no seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSeat {
    /// The principal has as many streams as one may have.
    ForPrincipal,
    ForAnyone,
}

impl Seats {
    pub(super) fn new(max: usize, max_each: usize) -> Self {
        Self {
            taken: Mutex::default(),
            max,
            max_each,
        }
    }

    pub(super) fn take(self: &Arc<Self>, principal: &Principal) -> Result<Seat, NoSeat> {
        let mut taken = self.taken.lock();
        let of_principal = taken.by_principal.get(principal).copied().unwrap_or_default();
        if of_principal >= self.max_each {
            return Err(NoSeat::ForPrincipal);
        }
        if taken.total >= self.max {
            return Err(NoSeat::ForAnyone);
        }
        taken.total += 1;
        taken.by_principal.insert(principal.clone(), of_principal + 1);
        Ok(Seat {
            seats: Arc::clone(self),
            principal: principal.clone(),
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken.lock();
        taken.total -= 1;
        if let Some(of_principal) = taken.by_principal.get_mut(&self.principal) {
            *of_principal -= 1;
            if *of_principal == 0 {
                taken.by_principal.remove(&self.principal);
            }
        }
    }
}
