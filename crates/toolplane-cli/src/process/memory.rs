//! Return of free memory to the system.

use std::{hint::black_box, time::Duration};

use tokio::time::sleep;

/// Time between two returns. The allocator keeps a free page for a second in case it is needed again.
const INTERVAL: Duration = Duration::from_secs(2);
/// Size of the block, in bytes: larger than the allocator cuts from existing pages, so that it takes new pages and
/// frees them.
const BLOCK_SIZE: usize = 1 << 20;

/// Makes the allocator return free memory to the system while the process is idle. Never ends.
///
/// mimalloc looks for long-free pages whenever a page becomes free, and an idle gateway frees none: it would keep the
/// memory of a burst of calls until the next one. The block is never written to, so it costs no memory.
pub(crate) async fn return_free_memory() {
    loop {
        sleep(INTERVAL).await;
        drop(black_box(Vec::<u8>::with_capacity(BLOCK_SIZE)));
    }
}
