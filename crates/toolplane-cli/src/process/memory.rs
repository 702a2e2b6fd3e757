//! Memory that is not needed any more.

use std::{hint::black_box, time::Duration};

use tokio::time::sleep;

/// How often what is free is given back. The allocator keeps it for a second first, lest it is asked for it again.
const INTERVAL: Duration = Duration::from_secs(2);
/// More than the allocator cuts out of what it has, so that it takes pages for it and frees them.
const BLOCK_SIZE: usize = 1 << 20;

/// Has the allocator give free memory back to the system while nothing else does. Never ends.
///
/// mimalloc looks for pages that have been free for long whenever a page becomes free, and an idle gateway frees none: it
/// would keep what a storm of calls took until the next one. The block here is never written to, so it costs no memory.
pub(crate) async fn return_free_memory() {
    loop {
        sleep(INTERVAL).await;
        drop(black_box(Vec::<u8>::with_capacity(BLOCK_SIZE)));
    }
}
