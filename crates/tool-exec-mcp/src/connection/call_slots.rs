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

/// Calls in progress on one connection. Attributes the server's questions and log messages to them.
///
/// # Attribution
/// Over HTTP, a message that comes with the answer to a request belongs to that request. Any other message may be about
/// any call in progress. It is delivered only if all of them belong to one client: then it goes to that client, with
/// the call that began last.
///
/// A call that was dropped before it was answered may still be in progress at the server. It counts as such until the
/// connection is closed, since a cancellation notification does not say when the server complies.
pub(crate) struct CallSlots {
    state: Mutex<SlotState>,
    /// Notifies when a call has ended.
    ended: Notify,
    /// Callback for when no call is in progress any more.
    on_free: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Routes notifications about things that outlive a call.
    pub(crate) router: NotificationRouter,
}

struct SlotState {
    n_begun: u64,
    /// Calls in progress, in the order in which they began.
    calls: Vec<ActiveCall>,
    /// Clients whose abandoned calls the server may still work on. Two entries suffice: more would decide nothing else.
    abandoned: Vec<ClientKey>,
    served: ServedPrincipals,
    /// Number of tasks that callers may come back for.
    n_task_holds: usize,
    /// Number of internal uses of the connection.
    n_internal_uses: usize,
    /// Instant since which no call is in progress. Meaningless while one is.
    idle_since: Instant,
}

/// Principals whose calls the connection has ever served.
enum ServedPrincipals {
    None,
    /// One principal, in one tenant.
    One(Arc<Caller>),
    Several,
}

/// Call in progress.
#[derive(Clone)]
pub(crate) struct ActiveCall {
    /// Tag of the call's requests.
    pub(crate) tag: u64,
    /// Sends questions to the call's client.
    pub(crate) asker: Option<Asker>,
    /// Lowest level of log messages that the client wants.
    pub(crate) level: Option<LogLevel>,
}

/// Slot of a call in progress. Dropping it ends the call.
pub(crate) struct CallSlot {
    slots: Arc<CallSlots>,
    pub(crate) call: ActiveCall,
}

/// Work of the server for a call. The call counts as abandoned if this is dropped before [`finish`](Self::finish).
pub(crate) struct PendingWork<'a>(Option<&'a CallSlot>);

/// Keeps the connection open for a task that a caller may come back for.
pub(crate) struct TaskHold(Arc<CallSlots>);

/// Internal use of the connection, such as reading lists. It does not count as use of the server.
pub(crate) struct InternalUse(Arc<CallSlots>);

/// State of a connection for a client that cannot be told from others of its principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reuse {
    Idle,
    InUse,
    /// No call is in progress, but the server may still work on abandoned calls of others.
    Abandoned,
}

/// The reason for which a message of the server belongs to no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unattributed {
    /// No call is in progress, or not the one that the message belongs to.
    NoCall,
    /// Calls of several clients are in progress.
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

    /// Sets the callback for when no call is in progress any more. It runs outside of any lock.
    pub(crate) fn on_free(&self, tell: impl Fn() + Send + Sync + 'static) {
        // Set once per connection.
        let _ = self.on_free.set(Box::new(tell));
    }

    /// Runs the callback of [`on_free`](Self::on_free): a waiting call may get this connection.
    pub(crate) fn notify_free(&self) {
        if let Some(tell) = self.on_free.get() {
            tell();
        }
    }

    /// Begins a call, which ends when the slot is dropped.
    pub(crate) fn begin(self: &Arc<Self>, cx: &CallContext) -> CallSlot {
        self.begin_for(cx.origin.ask.clone(), &cx.origin.caller)
    }

    /// Begins a call of this client and caller.
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

    /// Returns the instant since which the connection is idle, or `None` while a call is in progress or a task is held.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        state.is_free().then_some(state.idle_since)
    }

    /// Begins an internal use, which ends when the guard is dropped.
    pub(crate) fn begin_internal_use(self: &Arc<Self>) -> InternalUse {
        self.state().n_internal_uses += 1;
        InternalUse(self.clone())
    }

    /// Returns the instant since which nobody has used the connection, or `None` while somebody does.
    pub(crate) fn unused_since(&self) -> Option<Instant> {
        let state = self.state();
        state.is_unused().then_some(state.idle_since)
    }

    /// Runs `act` unless the connection is in use. No call begins meanwhile: a later one finds what was done.
    pub(crate) fn if_unused<T>(&self, act: impl FnOnce() -> Option<T>) -> Option<T> {
        let state = self.state();
        if state.is_unused() { act() } else { None }
    }

    /// Returns the state of the connection for the next call of this client.
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

    /// Keeps the connection open for a task until the guard is dropped.
    pub(crate) fn hold_for_task(self: &Arc<Self>) -> TaskHold {
        self.state().n_task_holds += 1;
        TaskHold(self.clone())
    }

    /// Returns the call that a message of the server belongs to. `tag` is the tag of the request that the message came
    /// with.
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

    /// Delivers a log message that came with no answer, if the client that it belongs to wants it. It may be about a
    /// call that has ended, so it is dropped if the connection has served several principals.
    pub(crate) fn deliver_log(&self, message: &RawJson) {
        if let ServedPrincipals::Several = self.state().served {
            return tracing::debug!("a log message of a server may be about another principal's call");
        }
        match self.attribute(None) {
            Ok(call) => call.log(message),
            Err(reason) => tracing::debug!(?reason, "a log message of a server belongs to no call"),
        }
    }

    /// Waits until the call with this tag has ended.
    pub(crate) async fn wait_until_ended(&self, tag: u64) {
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
        // Nothing is asked for a call without a client to ask.
        let Some(client) = call.client() else { return };
        if self.abandoned.len() < 2 && !self.abandoned.contains(&client) {
            self.abandoned.push(client);
        }
    }
}

/// Returns `true` if two calls certainly belong to one client.
fn is_same(one: Option<&ClientKey>, other: Option<&ClientKey>) -> bool {
    matches!(one, Some(ClientKey::Session(_))) && one == other
}

impl CallSlot {
    /// Records that the server works on something for this call.
    pub(crate) fn begin_work(&self) -> PendingWork<'_> {
        PendingWork(Some(self))
    }
}

impl PendingWork<'_> {
    /// Records that the work is over: the server asks nothing more for it.
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
    /// Returns the call's client, or `None` if it cannot be asked anything.
    pub(crate) fn client(&self) -> Option<ClientKey> {
        self.asker.as_ref().map(|asker| asker.client().client())
    }

    /// Sends a log message to the client if it wants messages of this level.
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
