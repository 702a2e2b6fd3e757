//! Idempotency: runs a tool once for all calls with one idempotency key.

mod layer;
mod memory_ledger;
mod settings;

pub use self::{
    layer::{Idempotency, IdempotencyLayer},
    memory_ledger::{LedgerLimits, MemoryLedger},
    settings::{IdempotencyKeyPlace, IdempotencySettings, LedgerCapacity},
};
