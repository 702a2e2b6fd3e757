//! Idempotency: runs a tool once for all calls with one idempotency key.

mod layer;
mod ledger_limits;
mod memory_ledger;
mod settings;

pub use self::{
    layer::{Idempotency, IdempotencyLayer},
    ledger_limits::LedgerLimits,
    memory_ledger::MemoryLedger,
    settings::{IdempotencyKeyPlace, IdempotencySettings, LedgerCapacity},
};
