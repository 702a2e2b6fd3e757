use std::sync::{Arc, Weak};

use tokio::sync::watch;
use tool_core::Source;

use crate::{Registry, registry::Shared};

/// Reports each change of a source to [`refresh`], as long as the registry exists and has the source. `replacements` closes with
/// the registry.
pub(crate) async fn follow(
    registry: Weak<Shared>,
    source: Arc<dyn Source>,
    mut replacements: watch::Receiver<u64>,
) {
    while has(&registry, &source) {
        let seen = source.snapshot().revision;
        match registry.upgrade() {
            Some(shared) => shared.report_change(&source),
            None => return,
        }
        tokio::select! {
            () = source.changed(seen) => {}
            () = wait_until_removed(&registry, &source, &mut replacements) => return,
        }
    }
}

/// Makes a new snapshot whenever sources have changed, as long as the registry exists. Changes that arrive while a snapshot is made
/// are in one next snapshot: with many servers that start at the same time, one for each would take longer than the starts.
pub(crate) async fn refresh(registry: Weak<Shared>, mut changes: watch::Receiver<()>) {
    while changes.changed().await.is_ok() {
        let Some(pins) = registry
            .upgrade()
            .map(|shared| shared.parts.load().pins.store().clone())
        else {
            return;
        };
        pins.ready().await;
        match registry.upgrade() {
            Some(shared) => Registry(shared).refresh(),
            None => return,
        }
    }
}

/// Waits until the registry is dropped, or no longer has the source. Either one wakes the receiver of replacements.
async fn wait_until_removed(
    registry: &Weak<Shared>,
    source: &Arc<dyn Source>,
    replacements: &mut watch::Receiver<u64>,
) {
    while replacements.changed().await.is_ok() && has(registry, source) {}
}

fn has(registry: &Weak<Shared>, source: &Arc<dyn Source>) -> bool {
    registry.upgrade().is_some_and(|shared| shared.has(source))
}
