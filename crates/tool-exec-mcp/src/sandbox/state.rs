use std::{path::PathBuf, sync::Arc};

use mcp_client::Spawner;
use parking_lot::Mutex;
use raw_json::RawJson;
use serde_json::json;
use tokio::time;
use tool_core::{AccessDecision, AccessVerdict, AccessedResource, AlertSubject, Instant, Reply, Update};

use super::{ServerSandbox, ServerSandboxLevel, spawner::spawner};
use crate::notifications::Notifier;

/// State of a server's sandbox: the level that runs, and the receiver of the accesses that it decides about.
pub(crate) struct SandboxState {
    server: Arc<str>,
    sandbox: ServerSandbox,
    /// Level of the program that was started last; `None` before.
    level: Mutex<Option<&'static str>>,
    start: time::Instant,
    notifier: Arc<Notifier>,
}

impl SandboxState {
    pub(crate) fn new(server: &str, sandbox: ServerSandbox, notifier: Arc<Notifier>) -> Arc<Self> {
        let level = (!sandbox.is_enforced()).then_some("none");
        Arc::new(Self {
            server: server.into(),
            sandbox,
            level: Mutex::new(level),
            start: time::Instant::now(),
            notifier,
        })
    }

    /// Returns the level of the program that was started last: `bwrap`, `landlock` or `none`.
    pub(crate) fn level(&self) -> Option<&'static str> {
        *self.level.lock()
    }

    /// Records the level of a program that was started.
    #[cfg_attr(
        not(feature = "sandbox"),
        expect(dead_code, reason = "no program is started in a sandbox")
    )]
    pub(crate) fn set_level(&self, level: &'static str) {
        *self.level.lock() = Some(level);
    }

    pub(crate) fn sandbox(&self) -> &ServerSandbox {
        &self.sandbox
    }

    /// Returns the member of a reply's `_meta`; `None` before the program was started.
    pub(crate) fn meta(&self) -> Option<RawJson> {
        let network = match (self.sandbox.level, self.sandbox.network.is_empty()) {
            (ServerSandboxLevel::Unsandboxed, _) => "unrestricted",
            (_, true) => "off",
            (_, false) => "hosts",
        };
        Some(RawJson::from(json!({"level": self.level()?, "network": network})))
    }

    /// Returns the spawner of programs that may use these paths of the machine. `None` if the operator wants no sandbox.
    pub(crate) fn spawner(
        self: &Arc<Self>,
        reads: Vec<PathBuf>,
        writes: Vec<PathBuf>,
    ) -> Option<Arc<dyn Spawner>> {
        self.sandbox
            .is_enforced()
            .then(|| spawner(self.clone(), reads, writes))
    }

    /// Reports an access that the sandbox decided about.
    #[cfg_attr(
        not(feature = "sandbox"),
        expect(dead_code, reason = "no program is started in a sandbox")
    )]
    pub(crate) fn report(&self, resource: AccessedResource, verdict: AccessVerdict) {
        let subject = AlertSubject::Upstream(self.server.clone());
        let at = Instant::since_start(self.start.elapsed());
        let access = AccessDecision::new(subject, resource, verdict, at);
        self.notifier.notify(&Update::Access(access));
    }
}

/// Adds the sandbox of a server's program to the `_meta` of a tool's reply.
pub(crate) fn add_sandbox(sandbox: Option<&Arc<SandboxState>>, reply: &mut Reply) {
    if let Some(meta) = sandbox.and_then(|sandbox| sandbox.meta()) {
        reply.add_meta(Reply::SANDBOX_KEY, meta);
    }
}
