use std::sync::{Arc, Weak};

use tokio::sync::watch;
use tool_core::Source;

use crate::{Registry, registry::Shared};

/// Makes a new snapshot whenever a source has changed, for as long as the registry lives: when it goes, so do the
/// revisions.
pub(crate) async fn follow(
    registry: Weak<Shared>,
    source: Arc<dyn Source>,
    mut revisions: watch::Receiver<u64>,
) {
    loop {
        let seen = source.snapshot().revision;
        match registry.upgrade() {
            Some(shared) => Registry(shared).refresh(),
            None => return,
        }
        tokio::select! {
            () = source.changed(seen) => {}
            () = closed(&mut revisions) => return,
        }
    }
}

async fn closed(revisions: &mut watch::Receiver<u64>) {
    while revisions.changed().await.is_ok() {}
}
