use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::atomic::{AtomicU64, Ordering},
};

use mcp_client::Endpoint;
use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;
use tool_core::{BoxFuture, Reference, Refresh, Secret, SecretError, Secrets};

use crate::{ServerTarget, settings::ResolveError};

/// Where a server is, and with which credentials it is reached: its references have the values that they had when they
/// were looked at last.
#[derive(Default)]
pub(crate) struct ResolvedEndpoint {
    known: Mutex<Option<Resolution>>,
    /// How often there were other values before: read by every call, and changed with what is known.
    generation: AtomicU64,
}

struct Resolution {
    endpoint: Endpoint,
    /// Tells the values apart that it was made with, within this process.
    digest: u64,
}

impl ResolvedEndpoint {
    /// How often there were other values before.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Where the server is.
    pub(crate) async fn get(
        &self,
        target: &ServerTarget,
        secrets: &dyn Secrets,
    ) -> Result<Endpoint, ResolveError> {
        let mut known = self.known.lock().await;
        if known.is_none() {
            let (endpoint, digest) = resolve(target, secrets).await?;
            *known = Some(Resolution { endpoint, digest });
        }
        let known = known.as_ref().expect("it was put there above");
        Ok(known.endpoint.clone())
    }

    /// Returns `true` if there are other values than in the generation that the server refused. If that is found out here,
    /// calls `moved` with the endpoint that counts from now on. Many who ask at once share one renewal.
    pub(crate) async fn refresh(
        &self,
        target: &ServerTarget,
        secrets: &dyn Secrets,
        refused: u64,
        refresh: Refresh,
        moved: impl Fn(&Endpoint),
    ) -> bool {
        let mut known = self.known.lock().await;
        let Some(known) = known.as_mut() else {
            return false;
        };
        if self.generation() > refused {
            return true;
        }
        let mut now = resolve(target, secrets).await;
        if refresh == Refresh::Force && now.as_ref().is_ok_and(|(_, digest)| *digest == known.digest) {
            for reference in target.references() {
                if let Err(error) = secrets.renew(reference).await {
                    tracing::debug!(%error, "a credential cannot be renewed");
                }
            }
            now = resolve(target, secrets).await;
        }
        match now {
            Ok((endpoint, digest)) if digest != known.digest => {
                moved(&endpoint);
                *known = Resolution { endpoint, digest };
                self.generation.fetch_add(1, Ordering::SeqCst);
                true
            }
            _ => false,
        }
    }
}

async fn resolve(target: &ServerTarget, secrets: &dyn Secrets) -> Result<(Endpoint, u64), ResolveError> {
    let seen = HashingSecrets {
        secrets,
        hasher: SyncMutex::default(),
    };
    let endpoint = target.resolve(&seen).await?;
    let hasher = seen.hasher.into_inner();
    Ok((endpoint, hasher.finish()))
}

/// Takes note of every value that is used.
struct HashingSecrets<'a> {
    secrets: &'a dyn Secrets,
    hasher: SyncMutex<DefaultHasher>,
}

impl Secrets for HashingSecrets<'_> {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move {
            let value = self.secrets.get(reference).await?;
            let mut hasher = self.hasher.lock();
            value.as_ref().map(Secret::expose).hash(&mut *hasher);
            Ok(value)
        })
    }

    fn learn_written(&self, name: &str, value: &str) {
        self.secrets.learn_written(name, value);
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        self.secrets.has(reference)
    }
}
