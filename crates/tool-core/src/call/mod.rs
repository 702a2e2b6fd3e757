//! A call on its way down the layers: what it carries, how it goes on, how it ends.

mod arguments;
mod ask;
mod backend;
mod caller;
mod client;
mod context;
mod future;
mod invoke;
mod outcome;
mod preview;
mod progress;
mod reentry;
mod task;

pub use self::{
    arguments::Arguments,
    ask::{Ask, AskError, Asker, ClientKey, Question},
    backend::{Backend, DynBackend, InProcess, Refresh},
    caller::Caller,
    client::{ClientCapabilities, ClientGroup, ClientIdentity},
    context::{CallContext, CallOrigin, CorrelationId, LayerDecision, Mode, RequestExtras, Target},
    future::BoxFuture,
    invoke::{DynInvoke, Invoke, Layer, Layers, NamedLayer, Nested},
    outcome::{Body, InputRequest, Outcome, PendingCall, Reply, Resume},
    preview::Preview,
    progress::Progress,
    reentry::Reentry,
    task::{Task, TaskHandle, TaskMode, TaskRequest},
};
