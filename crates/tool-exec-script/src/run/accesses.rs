use std::sync::Arc;

use parking_lot::Mutex;
use tool_core::{
    AccessDecision, AccessVerdict, AccessedResource, AccessingCall, AlertSubject, CallContext, Clock, Event,
    Observers, Secrets,
};
use tool_sandbox::SandboxEvent;

/// Reports the accesses of one process to the observers of the call that it runs for.
///
/// An interpreter that waits for a call reports to the observers of all calls, without a call, until one takes it.
pub(crate) struct AccessReporter {
    subject: AlertSubject,
    secrets: Arc<dyn Secrets>,
    receiver: Mutex<Receiver>,
}

struct Receiver {
    observers: Observers,
    clock: Arc<dyn Clock>,
    call: Option<AccessingCall>,
}

impl AccessReporter {
    /// Creates the reporter of a process that runs for a call.
    pub(crate) fn for_call(cx: &CallContext, secrets: &Arc<dyn Secrets>) -> Arc<Self> {
        Self::new(cx, secrets, Receiver::of_call(cx))
    }

    /// Creates the reporter of an interpreter that waits for another call of the same tool.
    pub(crate) fn for_later_call(cx: &CallContext, secrets: &Arc<dyn Secrets>) -> Arc<Self> {
        let receiver = Receiver {
            observers: cx.observers.clone().without_call_observer(),
            clock: cx.clock.clone(),
            call: None,
        };
        Self::new(cx, secrets, receiver)
    }

    fn new(cx: &CallContext, secrets: &Arc<dyn Secrets>, receiver: Receiver) -> Arc<Self> {
        Arc::new(Self {
            subject: AlertSubject::Tool(cx.tool().name().clone()),
            secrets: secrets.clone(),
            receiver: Mutex::new(receiver),
        })
    }

    /// Reports to the observers of this call from now on.
    pub(crate) fn set_call(&self, cx: &CallContext) {
        *self.receiver.lock() = Receiver::of_call(cx);
    }

    /// Returns the observer for the sandbox.
    pub(crate) fn observer(self: &Arc<Self>) -> Arc<dyn Fn(SandboxEvent) + Send + Sync> {
        let reporter = self.clone();
        Arc::new(move |event| reporter.report(&event))
    }

    fn report(&self, event: &SandboxEvent) {
        // Code may ask for a host that contains one of its secrets.
        let host = self.secrets.hide_in_text(event.host());
        let resource = AccessedResource::host(host, event.port());
        let verdict = match event.denial() {
            Some(reason) => AccessVerdict::Denied(reason.to_owned()),
            None => AccessVerdict::Allowed,
        };
        let (observers, access) = {
            let receiver = self.receiver.lock();
            let at = receiver.clock.now();
            let access = AccessDecision::new(self.subject.clone(), resource, verdict, at);
            (
                receiver.observers.clone(),
                access.with_call(receiver.call.clone()),
            )
        };
        observers.emit(&Event::access_decided(&access));
    }
}

impl Receiver {
    fn of_call(cx: &CallContext) -> Self {
        Self {
            observers: cx.observers.clone(),
            clock: cx.clock.clone(),
            call: Some(AccessingCall::new(cx)),
        }
    }
}
