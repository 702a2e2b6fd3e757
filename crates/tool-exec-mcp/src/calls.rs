use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mcp_wire::LogLevel;
use raw_json::RawJson;
use tokio::{sync::Notify, time::Instant};
use tool_core::{Asker, ClientKey};

use crate::addressees::Addressees;

/// The calls that are under way on one connection: whom the server may ask, and tell what it logs.
///
/// # Attribution
/// Over HTTP a message that comes with the answer to a request belongs to that request. Any other message may be about
/// any call that is under way, so it goes nowhere unless all of them are of one client: then it is for that client,
/// and goes to the call that began last.
pub(crate) struct Calls {
    running: Mutex<Running>,
    /// Tells when a call has ended.
    ended: Notify,
    /// Whom news of what outlives a call are for.
    pub(crate) addressees: Addressees,
}

struct Running {
    n_begun: u64,
    /// In the order in which they began.
    calls: Vec<Call>,
    /// How many tasks are kept that callers may come back for.
    n_kept: usize,
    /// Since when nothing runs, if nothing does.
    idle_since: Instant,
}

/// A call that is under way.
#[derive(Clone)]
pub(crate) struct Call {
    /// What requests of the call are tagged with.
    pub(crate) tag: u64,
    /// The way back to its client.
    pub(crate) asker: Option<Asker>,
    /// The lowest level of log messages that its client wants.
    pub(crate) level: Option<LogLevel>,
}

/// The place of a call among those that are under way, until this is dropped.
pub(crate) struct Seat {
    calls: Arc<Calls>,
    pub(crate) call: Call,
}

/// A task that a caller may come back for.
pub(crate) struct Kept(Arc<Calls>);

/// Why a message of the server is no call's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unclaimed {
    /// No call is under way, or not the one that the message belongs to.
    NoCall,
    /// Calls of several clients are.
    SeveralClients,
}

impl Calls {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            running: Mutex::new(Running {
                n_begun: 0,
                calls: Vec::new(),
                n_kept: 0,
                idle_since: Instant::now(),
            }),
            ended: Notify::new(),
            addressees: Addressees::default(),
        })
    }

    /// Notes a call from its beginning to its end.
    pub(crate) fn begin(self: &Arc<Self>, asker: Option<Asker>) -> Seat {
        let level = asker.as_ref().and_then(|asker| asker.client().log_level());
        let mut running = self.running();
        running.n_begun += 1;
        let call = Call {
            tag: running.n_begun,
            asker,
            level: level.and_then(|level| level.parse().ok()),
        };
        running.calls.push(call.clone());
        drop(running);
        Seat {
            calls: self.clone(),
            call,
        }
    }

    /// Since when nothing runs; nothing while a call does, or a task that is kept.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let running = self.running();
        (running.calls.is_empty() && running.n_kept == 0).then_some(running.idle_since)
    }

    /// Notes a task that a caller may come back for: until this is dropped, something counts as running.
    pub(crate) fn keep(self: &Arc<Self>) -> Kept {
        self.running().n_kept += 1;
        Kept(self.clone())
    }

    /// The call that a message of the server is for; `tag` is that of the request that it came with.
    pub(crate) fn addressee(&self, tag: Option<u64>) -> Result<Call, Unclaimed> {
        let running = self.running();
        let calls = &running.calls;
        if tag.is_some() {
            let call = calls.iter().find(|call| Some(call.tag) == tag);
            return call.cloned().ok_or(Unclaimed::NoCall);
        }
        let last = calls.last().ok_or(Unclaimed::NoCall)?;
        let client = last.client();
        let alone = calls.len() == 1
            || (matches!(client, Some(ClientKey::Session(_)))
                && calls.iter().all(|call| call.client() == client));
        if alone {
            Ok(last.clone())
        } else {
            Err(Unclaimed::SeveralClients)
        }
    }

    /// Hands a log message to the client that it is for, if that client wants it.
    pub(crate) fn log(&self, message: &RawJson, tag: Option<u64>) {
        match self.addressee(tag) {
            Ok(call) => call.log(message),
            Err(reason) => tracing::debug!(?reason, "a log message of a server is nobody's"),
        }
    }

    /// Waits until a call has ended.
    pub(crate) async fn end_of(&self, tag: u64) {
        loop {
            let mut ended = pin!(self.ended.notified());
            ended.as_mut().enable();
            if !self.running().calls.iter().any(|call| call.tag == tag) {
                return;
            }
            ended.await;
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call {
    /// Which client it is of, if that can be asked anything.
    pub(crate) fn client(&self) -> Option<ClientKey> {
        self.asker.as_ref().map(|asker| asker.client().client())
    }

    /// Hands a log message to the client if it wants it.
    pub(crate) fn log(&self, message: &RawJson) {
        let (Some(asker), Some(wanted)) = (&self.asker, self.level) else {
            return;
        };
        let level = message.get("level").and_then(|level| level.string());
        // A level that no revision knows is shown rather than lost.
        if level
            .and_then(|level| level.parse().ok())
            .is_none_or(|level: LogLevel| level >= wanted)
        {
            asker.client().log(message);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut running = self.calls.running();
        running.calls.retain(|call| call.tag != self.call.tag);
        if running.calls.is_empty() {
            running.idle_since = Instant::now();
        }
        drop(running);
        self.calls.ended.notify_waiters();
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut running = self.0.running();
        running.n_kept -= 1;
        if running.n_kept == 0 {
            running.idle_since = Instant::now();
        }
    }
}
