use std::{
    pin::pin,
    sync::{Arc, OnceLock},
};

use mcp_wire::LogLevel;
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::{sync::Notify, time::Instant};
use tool_core::{Asker, CallContext, Caller, ClientKey};

use crate::notifications::NotificationRouter;

/// The calls that are under way on one connection: whom the server may ask, and tell what it logs.
///
/// # Attribution
/// Over HTTP a message that comes with the answer to a request belongs to that request. Any other message may be about
/// any call that is under way, so it goes nowhere unless all of them are of one client: then it is for that client,
/// and goes to the call that began last.
///
/// A call that was given up before it was answered may still be under way at the server. So it counts as one until the
/// connection is closed: that the server was told to cancel it says nothing of when it does.
pub(crate) struct CallSlots {
    state: Mutex<SlotState>,
    /// Tells when a call has ended.
    ended: Notify,
    /// Is told when nothing runs any more.
    on_free: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Whom news of what outlives a call are for.
    pub(crate) router: NotificationRouter,
}

struct SlotState {
    n_begun: u64,
    /// In the order in which they began.
    calls: Vec<ActiveCall>,
    /// Whose calls the server may still be at although they were given up. Two say as much as any number.
    abandoned: Vec<ClientKey>,
    served: ServedPrincipals,
    /// How many tasks are kept that callers may come back for.
    n_task_holds: usize,
    /// How many things of our own use the connection.
    n_internal_uses: usize,
    /// Since when nothing runs, if nothing does.
    idle_since: Instant,
}

/// Whose calls the connection has ever served.
enum ServedPrincipals {
    None,
    /// Those of one principal.
    One(Arc<Caller>),
    Several,
}

/// A call that is under way.
#[derive(Clone)]
pub(crate) struct ActiveCall {
    /// What requests of the call are tagged with.
    pub(crate) tag: u64,
    /// The way back to its client.
    pub(crate) asker: Option<Asker>,
    /// The lowest level of log messages that its client wants.
    pub(crate) level: Option<LogLevel>,
}

/// The place of a call among those that are under way, until this is dropped.
pub(crate) struct CallSlot {
    slots: Arc<CallSlots>,
    pub(crate) call: ActiveCall,
}

/// Something of a call that the server works on, which is given up if this is dropped before it is over.
pub(crate) struct PendingWork<'a>(Option<&'a CallSlot>);

/// A task that a caller may come back for.
pub(crate) struct TaskHold(Arc<CallSlots>);

/// Something of our own that uses the connection, such as the reading of lists. It does not count as use of the server.
pub(crate) struct InternalUse(Arc<CallSlots>);

/// What a connection can be used for by a client that cannot be told from others of its principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reuse {
    Idle,
    InUse,
    /// Nothing runs, but the server may still be at what others gave up.
    Abandoned,
}

/// Why a message of the server is no call's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unattributed {
    /// No call is under way, or not the one that the message belongs to.
    NoCall,
    /// Calls of several clients are.
    SeveralClients,
}

impl CallSlots {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(SlotState {
                n_begun: 0,
                calls: Vec::new(),
                abandoned: Vec::new(),
                served: ServedPrincipals::None,
                n_task_holds: 0,
                n_internal_uses: 0,
                idle_since: Instant::now(),
            }),
            ended: Notify::new(),
            on_free: OnceLock::new(),
            router: NotificationRouter::default(),
        })
    }

    /// Has this told whenever nothing runs any more. It is told outside of any lock.
    pub(crate) fn on_free(&self, tell: impl Fn() + Send + Sync + 'static) {
        // Nobody else wants to know.
        let _ = self.on_free.set(Box::new(tell));
    }

    /// Tells the listener of [`on_free`](Self::on_free) that a call may be seated, as when nothing runs any more.
    pub(crate) fn notify_free(&self) {
        if let Some(tell) = self.on_free.get() {
            tell();
        }
    }

    /// Notes a call from its beginning to its end.
    pub(crate) fn begin(self: &Arc<Self>, cx: &CallContext) -> CallSlot {
        self.begin_for(cx.origin.ask.clone(), &cx.origin.caller)
    }

    /// Notes a call of this client and caller.
    pub(crate) fn begin_for(self: &Arc<Self>, asker: Option<Asker>, caller: &Arc<Caller>) -> CallSlot {
        let level = asker.as_ref().and_then(|asker| asker.client().log_level());
        let mut state = self.state();
        state.record_principal(caller);
        state.n_begun += 1;
        let call = ActiveCall {
            tag: state.n_begun,
            asker,
            level: level.and_then(|level| level.parse().ok()),
        };
        state.calls.push(call.clone());
        drop(state);
        CallSlot {
            slots: self.clone(),
            call,
        }
    }

    /// Since when nothing runs; nothing while a call does, or a task that is kept.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        state.is_free().then_some(state.idle_since)
    }

    /// Notes something of our own that uses the connection, until this is dropped.
    pub(crate) fn begin_internal_use(self: &Arc<Self>) -> InternalUse {
        self.state().n_internal_uses += 1;
        InternalUse(self.clone())
    }

    /// Since when nobody has used the connection; `None` while somebody does.
    pub(crate) fn unused_since(&self) -> Option<Instant> {
        let state = self.state();
        state.is_unused().then_some(state.idle_since)
    }

    /// Does this unless the connection is in use. No call begins meanwhile: one that comes later finds what was done.
    pub(crate) fn if_unused<T>(&self, act: impl FnOnce() -> Option<T>) -> Option<T> {
        let state = self.state();
        if state.is_unused() { act() } else { None }
    }

    /// What the connection can be used for by the next call of this client.
    pub(crate) fn reuse(&self, client: Option<&ClientKey>) -> Reuse {
        let state = self.state();
        if !state.is_free() {
            Reuse::InUse
        } else if state.abandoned.iter().all(|other| is_same(Some(other), client)) {
            Reuse::Idle
        } else {
            Reuse::Abandoned
        }
    }

    /// Notes a task that a caller may come back for: until this is dropped, something counts as running.
    pub(crate) fn hold_for_task(self: &Arc<Self>) -> TaskHold {
        self.state().n_task_holds += 1;
        TaskHold(self.clone())
    }

    /// The call that a message of the server is for; `tag` is that of the request that it came with.
    pub(crate) fn attribute(&self, tag: Option<u64>) -> Result<ActiveCall, Unattributed> {
        let state = self.state();
        let calls = &state.calls;
        if tag.is_some() {
            let call = calls.iter().find(|call| Some(call.tag) == tag);
            return call.cloned().ok_or(Unattributed::NoCall);
        }
        let last = calls.last().ok_or(Unattributed::NoCall)?;
        let client = last.client();
        let mut others = calls.iter().rev().skip(1).map(ActiveCall::client);
        let alone = others.all(|other| is_same(other.as_ref(), client.as_ref()))
            && state
                .abandoned
                .iter()
                .all(|other| is_same(Some(other), client.as_ref()));
        if alone {
            Ok(last.clone())
        } else {
            Err(Unattributed::SeveralClients)
        }
    }

    /// Hands a log message that came with no answer to the client that it is for, if that client wants it. It may be
    /// about a call that has ended, so it goes nowhere where the connection has served another principal.
    pub(crate) fn deliver_log(&self, message: &RawJson) {
        if let ServedPrincipals::Several = self.state().served {
            return tracing::debug!("a log message of a server may be about another principal's call");
        }
        match self.attribute(None) {
            Ok(call) => call.log(message),
            Err(reason) => tracing::debug!(?reason, "a log message of a server is nobody's"),
        }
    }

    /// Waits until a call has ended.
    pub(crate) async fn call_ended(&self, tag: u64) {
        loop {
            let mut ended = pin!(self.ended.notified());
            ended.as_mut().enable();
            if !self.state().calls.iter().any(|call| call.tag == tag) {
                return;
            }
            ended.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock()
    }
}

impl SlotState {
    fn is_free(&self) -> bool {
        self.calls.is_empty() && self.n_task_holds == 0
    }

    fn is_unused(&self) -> bool {
        self.is_free() && self.n_internal_uses == 0
    }

    fn record_principal(&mut self, caller: &Arc<Caller>) {
        match &self.served {
            ServedPrincipals::One(one)
                if one.principal != caller.principal || one.tenant != caller.tenant =>
            {
                self.served = ServedPrincipals::Several;
            }
            ServedPrincipals::None => self.served = ServedPrincipals::One(Arc::clone(caller)),
            ServedPrincipals::One(_) | ServedPrincipals::Several => {}
        }
    }

    fn abandon(&mut self, call: &ActiveCall) {
        // Of a call that has no client to ask, nothing is asked.
        let Some(client) = call.client() else { return };
        if self.abandoned.len() < 2 && !self.abandoned.contains(&client) {
            self.abandoned.push(client);
        }
    }
}

/// Whether two calls are surely of one client.
fn is_same(one: Option<&ClientKey>, other: Option<&ClientKey>) -> bool {
    matches!(one, Some(ClientKey::Session(_))) && one == other
}

impl CallSlot {
    /// Notes that the server works on something of this call from now on.
    pub(crate) fn begin_work(&self) -> PendingWork<'_> {
        PendingWork(Some(self))
    }
}

impl PendingWork<'_> {
    /// It is over: the server asks nothing more for it.
    pub(crate) fn finish(&mut self) {
        self.0 = None;
    }
}

impl Drop for PendingWork<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.slots.state().abandon(&slot.call);
        }
    }
}

impl ActiveCall {
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

impl Drop for CallSlot {
    fn drop(&mut self) {
        let mut state = self.slots.state();
        state.calls.retain(|call| call.tag != self.call.tag);
        if state.calls.is_empty() {
            state.idle_since = Instant::now();
        }
        let is_free = state.is_free();
        drop(state);
        self.slots.ended.notify_waiters();
        if is_free {
            self.slots.notify_free();
        }
    }
}

impl Drop for TaskHold {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.n_task_holds -= 1;
        if state.n_task_holds == 0 {
            state.idle_since = Instant::now();
        }
        let is_free = state.is_free();
        drop(state);
        if is_free {
            self.0.notify_free();
        }
    }
}

impl Drop for InternalUse {
    fn drop(&mut self) {
        self.0.state().n_internal_uses -= 1;
    }
}
