//! The tests that every storage of approvals passes, on the one in memory.

use std::sync::Arc;

use tool_core::Approvals;
use tool_policy::MemoryApprovals;

async fn approvals() -> ((), Arc<dyn Approvals>, Arc<dyn Approvals>) {
    let approvals = Arc::new(MemoryApprovals::default());
    ((), approvals.clone(), approvals)
}

tool_store_suite::approval_tests!(approvals);
