use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use mcp_client::Endpoint;
use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;
use tool_core::{BoxFuture, Reference, Refresh, Secret, SecretError, Secrets};

use crate::{ServerTarget, sandbox::SandboxState, target::ResolveError};

/// Endpoint of a server, with the values that its references had when they were last resolved.
#[derive(Default)]
pub(crate) struct ResolvedEndpoint {
    /// State of the sandbox of its program.
    sandbox: Option<Arc<SandboxState>>,
    resolution: Mutex<Option<Resolution>>,
    /// Number of times that the values have changed. An atomic, since every call reads it; written under the lock.
    generation: AtomicU64,
}

struct Resolution {
    endpoint: Endpoint,
    /// Hash of the resolved values, meaningful within this process only.
    digest: u64,
}

impl ResolvedEndpoint {
    pub(crate) fn new(sandbox: Option<Arc<SandboxState>>) -> Self {
        Self {
            sandbox,
            ..Self::default()
        }
    }

    /// Returns the state of the sandbox of the server's program, if it has one.
    pub(crate) fn sandbox(&self) -> Option<&Arc<SandboxState>> {
        self.sandbox.as_ref()
    }

    /// Returns the number of times that the values have changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Returns the endpoint, resolved at the first call.
    pub(crate) async fn get(
        &self,
        target: &ServerTarget,
        secrets: &dyn Secrets,
    ) -> Result<Endpoint, ResolveError> {
        let mut resolution = self.resolution.lock().await;
        if resolution.is_none() {
            let (endpoint, digest) = self.resolve(target, secrets).await?;
            *resolution = Some(Resolution { endpoint, digest });
        }
        let resolution = resolution.as_ref().expect("it was put there above");
        Ok(resolution.endpoint.clone())
    }

    /// Returns `true` if the values differ from those of the generation that the server refused. If this call finds the
    /// difference, it passes the new endpoint to `moved`. Concurrent calls share one renewal.
    pub(crate) async fn refresh(
        &self,
        target: &ServerTarget,
        secrets: &dyn Secrets,
        refused: u64,
        refresh: Refresh,
        moved: impl Fn(&Endpoint),
    ) -> bool {
        let mut resolution = self.resolution.lock().await;
        let Some(resolution) = resolution.as_mut() else {
            return false;
        };
        if self.generation() > refused {
            return true;
        }
        let mut now = self.resolve(target, secrets).await;
        if refresh == Refresh::Force && now.as_ref().is_ok_and(|(_, digest)| *digest == resolution.digest) {
            for reference in target.references() {
                if let Err(error) = secrets.renew(reference).await {
                    tracing::debug!(%error, "a credential cannot be renewed");
                }
            }
            now = self.resolve(target, secrets).await;
        }
        match now {
            Ok((endpoint, digest)) if digest != resolution.digest => {
                moved(&endpoint);
                *resolution = Resolution { endpoint, digest };
                self.generation.fetch_add(1, Ordering::SeqCst);
                true
            }
            _ => false,
        }
    }

    async fn resolve(
        &self,
        target: &ServerTarget,
        secrets: &dyn Secrets,
    ) -> Result<(Endpoint, u64), ResolveError> {
        let seen = HashingSecrets {
            secrets,
            hasher: SyncMutex::default(),
        };
        let endpoint = target.resolve(&seen, self.sandbox.as_ref()).await?;
        let hasher = seen.hasher.into_inner();
        Ok((endpoint, hasher.finish()))
    }
}

/// Secrets that hash every value that is read.
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
