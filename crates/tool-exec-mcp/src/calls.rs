use std::{
    pin::pin,
    sync::{Arc, OnceLock},
};

use mcp_wire::LogLevel;
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::{sync::Notify, time::Instant};
use tool_core::{Asker, CallContext, Caller, ClientKey};

use crate::addressees::Addressees;

/// The calls that are under way on one connection: whom the server may ask, and tell what it logs.
///
/// # Attribution
/// Over HTTP a message that comes with the answer to a request belongs to that request. Any other message may be about
/// any call that is under way, so it goes nowhere unless all of them are of one client: then it is for that client,
/// and goes to the call that began last.
///
/// A call that was given up before it was answered may still be under way at the server. So it counts as one until the
/// connection is closed: that the server was told to cancel it says nothing of when it does.
pub(crate) struct Calls {
    running: Mutex<Running>,
    /// Tells when a call has ended.
    ended: Notify,
    /// Is told when nothing runs any more.
    on_free: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Whom news of what outlives a call are for.
    pub(crate) addressees: Addressees,
}

struct Running {
    n_begun: u64,
    /// In the order in which they began.
    calls: Vec<Call>,
    /// Whose calls the server may still be at although they were given up. Two say as much as any number.
    given_up: Vec<ClientKey>,
    served: Served,
    /// How many tasks are kept that callers may come back for.
    n_kept: usize,
    /// How many things of our own use the connection.
    n_working: usize,
    /// Since when nothing runs, if nothing does.
    idle_since: Instant,
}

/// Whose calls the connection has ever served.
enum Served {
    Nobodys,
    /// Those of one principal.
    Ones(Arc<Caller>),
    Severals,
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

/// Something of a call that the server works on, which is given up if this is dropped before it is over.
pub(crate) struct Open<'a>(Option<&'a Seat>);

/// A task that a caller may come back for.
pub(crate) struct Kept(Arc<Calls>);

/// Something of our own that uses the connection, such as the reading of lists. It does not count as use of the server.
pub(crate) struct Working(Arc<Calls>);

/// What a connection can be used for by a client that cannot be told from others of its principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Idle,
    InUse,
    /// Nothing runs, but the server may still be at what others gave up.
    GivenUp,
}

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
                given_up: Vec::new(),
                served: Served::Nobodys,
                n_kept: 0,
                n_working: 0,
                idle_since: Instant::now(),
            }),
            ended: Notify::new(),
            on_free: OnceLock::new(),
            addressees: Addressees::default(),
        })
    }

    /// Has this told whenever nothing runs any more. It is told outside of any lock.
    pub(crate) fn on_free(&self, tell: impl Fn() + Send + Sync + 'static) {
        // Nobody else wants to know.
        let _ = self.on_free.set(Box::new(tell));
    }

    /// Tells the listener of [`on_free`](Self::on_free) that a call may be seated, as when nothing runs any more.
    pub(crate) fn tell_free(&self) {
        if let Some(tell) = self.on_free.get() {
            tell();
        }
    }

    /// Notes a call from its beginning to its end.
    pub(crate) fn begin(self: &Arc<Self>, cx: &CallContext) -> Seat {
        self.begin_for(cx.origin.ask.clone(), &cx.origin.caller)
    }

    /// Notes a call of this client and caller.
    pub(crate) fn begin_for(self: &Arc<Self>, asker: Option<Asker>, caller: &Arc<Caller>) -> Seat {
        let level = asker.as_ref().and_then(|asker| asker.client().log_level());
        let mut running = self.running();
        running.serve(caller);
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
        running.is_free().then_some(running.idle_since)
    }

    /// Notes something of our own that uses the connection, until this is dropped.
    pub(crate) fn work(self: &Arc<Self>) -> Working {
        self.running().n_working += 1;
        Working(self.clone())
    }

    /// Since when nobody has used the connection; `None` while somebody does.
    pub(crate) fn unused_since(&self) -> Option<Instant> {
        let running = self.running();
        running.is_unused().then_some(running.idle_since)
    }

    /// Does this unless the connection is in use. No call begins meanwhile: one that comes later finds what was done.
    pub(crate) fn if_unused<T>(&self, act: impl FnOnce() -> Option<T>) -> Option<T> {
        let running = self.running();
        if running.is_unused() { act() } else { None }
    }

    /// What the connection can be used for by the next call of this client.
    pub(crate) fn standing(&self, client: Option<&ClientKey>) -> Standing {
        let running = self.running();
        if !running.is_free() {
            Standing::InUse
        } else if running.given_up.iter().all(|other| is_same(Some(other), client)) {
            Standing::Idle
        } else {
            Standing::GivenUp
        }
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
        let mut others = calls.iter().rev().skip(1).map(Call::client);
        let alone = others.all(|other| is_same(other.as_ref(), client.as_ref()))
            && running
                .given_up
                .iter()
                .all(|other| is_same(Some(other), client.as_ref()));
        if alone {
            Ok(last.clone())
        } else {
            Err(Unclaimed::SeveralClients)
        }
    }

    /// Hands a log message that came with no answer to the client that it is for, if that client wants it. It may be
    /// about a call that has ended, so it goes nowhere where the connection has served another principal.
    pub(crate) fn log(&self, message: &RawJson) {
        if let Served::Severals = self.running().served {
            return tracing::debug!("a log message of a server may be about another principal's call");
        }
        match self.addressee(None) {
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
        self.running.lock()
    }
}

impl Running {
    fn is_free(&self) -> bool {
        self.calls.is_empty() && self.n_kept == 0
    }

    fn is_unused(&self) -> bool {
        self.is_free() && self.n_working == 0
    }

    fn serve(&mut self, caller: &Arc<Caller>) {
        match &self.served {
            Served::Ones(one) if one.principal != caller.principal || one.tenant != caller.tenant => {
                self.served = Served::Severals;
            }
            Served::Nobodys => self.served = Served::Ones(Arc::clone(caller)),
            Served::Ones(_) | Served::Severals => {}
        }
    }

    fn give_up(&mut self, call: &Call) {
        // Of a call that has no client to ask, nothing is asked.
        let Some(client) = call.client() else { return };
        if self.given_up.len() < 2 && !self.given_up.contains(&client) {
            self.given_up.push(client);
        }
    }
}

/// Whether two calls are surely of one client.
fn is_same(one: Option<&ClientKey>, other: Option<&ClientKey>) -> bool {
    matches!(one, Some(ClientKey::Session(_))) && one == other
}

impl Seat {
    /// Notes that the server works on something of this call from now on.
    pub(crate) fn open(&self) -> Open<'_> {
        Open(Some(self))
    }
}

impl Open<'_> {
    /// It is over: the server asks nothing more for it.
    pub(crate) fn is_over(&mut self) {
        self.0 = None;
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(seat) = self.0 {
            seat.calls.running().give_up(&seat.call);
        }
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
        let is_free = running.is_free();
        drop(running);
        self.calls.ended.notify_waiters();
        if is_free {
            self.calls.tell_free();
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut running = self.0.running();
        running.n_kept -= 1;
        if running.n_kept == 0 {
            running.idle_since = Instant::now();
        }
        let is_free = running.is_free();
        drop(running);
        if is_free {
            self.0.tell_free();
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.running().n_working -= 1;
    }
}
