use std::sync::{Arc, Weak};

use tokio::sync::watch;
use tool_core::Source;

use crate::{Registry, registry::Shared};

/// Makes a new snapshot whenever a source has changed, as long as the registry exists and has the source. `revisions` closes
/// with the registry.
pub(crate) async fn follow(
    registry: Weak<Shared>,
    source: Arc<dyn Source>,
    mut revisions: watch::Receiver<u64>,
) {
    while has(&registry, &source) {
        let seen = source.snapshot().revision;
        match registry.upgrade() {
            Some(shared) => Registry(shared).refresh_source(&source),
            None => return,
        }
        tokio::select! {
            () = source.changed(seen) => {}
            () = wait_until_removed(&registry, &source, &mut revisions) => return,
        }
    }
}

/// Waits until the registry is dropped, or no longer has the source. Either one wakes the receiver of revisions.
async fn wait_until_removed(
    registry: &Weak<Shared>,
    source: &Arc<dyn Source>,
    revisions: &mut watch::Receiver<u64>,
) {
    while revisions.changed().await.is_ok() && has(registry, source) {}
}

fn has(registry: &Weak<Shared>, source: &Arc<dyn Source>) -> bool {
    registry.upgrade().is_some_and(|shared| shared.has(source))
}
