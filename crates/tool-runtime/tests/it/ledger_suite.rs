//! The tests that every ledger passes, on the one in memory.

use std::sync::Arc;

use tool_core::{Ledger, SystemClock};
use tool_runtime::{LedgerLimits, MemoryLedger};

async fn ledgers() -> ((), Arc<dyn Ledger>, Arc<dyn Ledger>) {
    let ledger = Arc::new(MemoryLedger::new(
        LedgerLimits::default(),
        Arc::new(SystemClock::new()),
    ));
    ((), ledger.clone(), ledger)
}

tool_store_suite::ledger_tests!(ledgers);
