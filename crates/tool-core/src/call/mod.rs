//! A call on its way down the layers: what it carries, how it goes on, how it ends.

mod arguments;
mod ask;
mod call_chain;
mod caller;
mod client;
mod context;
mod invoke;
mod outcome;
mod progress;
mod reentry;

pub use self::{
    arguments::Arguments,
    ask::{Ask, AskError, Asker, ClientKey, Question},
    call_chain::CallChain,
    caller::Caller,
    client::{ClientCapabilities, ClientGroup, ClientIdentity},
    context::{CallContext, CallOrigin, CorrelationId, LayerDecision, Mode, RequestExtras, Target},
    invoke::{
        ApprovalSubject, Backend, BoxFuture, DynBackend, DynInvoke, InProcess, Invoke, InvokeFn, Layer,
        Layers, NamedLayer, Nested, Preview, Refresh, TargetBackend, invoke_fn,
    },
    outcome::{
        Body, InputRequest, Outcome, PendingCall, Reply, Resume, Task, TaskForm, TaskHandle, TaskMode,
        TaskRequest,
    },
    progress::Progress,
    reentry::Reentry,
};
