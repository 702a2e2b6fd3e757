//! The words and contracts of toolplane: what a tool, a call, a reply and an error are, how a call goes through
//! layers, and the ports through which layers reach what they do not own. This crate knows no runtime, no HTTP and
//! no JSON-RPC; whoever writes an executor, a layer or a source needs nothing else.
//!
//! ```
//! use tool_core::{CallContext, Invoke, Outcome, Reply, ToolError};
//! use raw_json::RawJson;
//!
//! /// A tool that says back what it was told.
//! struct Echo;
//!
//! impl Invoke for Echo {
//!     async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
//!         Ok(Reply::value(cx.arguments.raw().clone()).into())
//!     }
//! }
//! # let _ = Echo;
//! ```

mod adapt;
mod alert;
mod approval;
mod arguments;
mod ask;
mod backend;
mod cache;
mod caller;
mod clock;
mod context;
mod credentials;
mod descriptor;
mod dispatch;
mod duration;
mod error;
mod error_policy;
mod event;
mod executor;
mod future;
mod gate;
mod health;
mod hedge;
mod hidden_fields;
mod identity;
mod invoke;
mod jitter;
mod ladder;
mod ledger;
mod lifecycle;
mod limits;
mod listing;
mod metadata;
mod name;
mod outcome;
mod overrides;
mod partial;
mod pattern;
mod preview;
mod progress;
mod retry_after;
mod sanitise;
mod schema;
mod secret;
mod secret_forms;
mod secret_search;
mod sign;
mod source;
mod state;
mod task;
mod template;
mod timestamp;
mod tool;
mod trace;
mod uri;

pub use self::{
    adapt::{Adapted, ArgumentHandling, Change, ChangeKind},
    alert::{Alert, AlertKind, AlertPhase, AlertSubject},
    approval::{
        Approval, ApprovalCall, ApprovalNews, ApprovalRule, ApprovalState, Approvals, ApprovalsError,
    },
    arguments::Arguments,
    ask::{Ask, AskError, Asker, ClientKey, Question},
    backend::{Backend, DynBackend, InProcess, Refresh},
    cache::{CacheOutcome, CacheScope, CacheSettings},
    caller::Caller,
    clock::{Clock, Instant},
    context::{CallContext, CorrelationId, Mode, Note, Target},
    credentials::hide_credentials,
    descriptor::{Descriptor, ExecutorSpec, Feature, Origin, Trust},
    dispatch::{Dispatch, DispatchHistory, DispatchState, SideEffect, is_status_not_taken},
    duration::{FormattedDuration, format_duration},
    error::{Category, ErrorKind, ToolError},
    error_policy::{ErrorPolicy, ErrorRule},
    event::{BreakerChange, BreakerState, Event, Observe, Observers, Scope},
    executor::{Executor, PrepareError, Provenance},
    future::BoxFuture,
    gate::Gate,
    health::{CheckReport, Health, HealthReport, HealthStatus},
    hedge::{HedgeAfter, HedgePercent, HedgeSettings},
    hidden_fields::{
        hide_fields, hide_fields_in_text, hide_fields_of_question, hide_fields_of_questions,
        hide_fields_of_report, hide_fields_of_result,
    },
    identity::{ClientCapabilities, ClientGroup, ClientIdentity},
    invoke::{DynInvoke, Invoke, Layer, Layers, Nested},
    jitter::Jitter,
    ladder::{Degraded, DegradedStep, FailedStep, FailureStep, InsteadOf},
    ledger::{Claim, Claimed, Ledger, LedgerEntry, LedgerState, Settled},
    lifecycle::{Lifecycle, SourceChange, SourceState},
    limits::{ConcurrencyLimit, Limits, Scopes},
    listing::{DefinitionPolicy, ListLimits, ListWarning},
    metadata::{DataClassification, LatencyClass, Metadata, PiiHandling, RateLimit},
    name::{InvalidName, MAX_NAME, check_name, outward_name},
    outcome::{Body, InputRequest, Outcome, PendingCall, Reply, Resume},
    overrides::{BreakerScope, BreakerSettings, IdempotencySettings, Overrides, Redaction, RetrySettings},
    partial::{PartialRule, PartialSettings},
    pattern::Pattern,
    preview::Preview,
    progress::Progress,
    retry_after::{RetryAfter, retry_after},
    sanitise::sanitised,
    schema::{CheckError, CheckJson, Mismatch, Problem},
    secret::{Secret, SecretError, Secrets},
    secret_forms::{HIDDEN, names_secret},
    secret_search::SecretSearch,
    sign::{Sign, Signs},
    source::{Catalogue, OnUpdate, Rejected, Source, SourceStatus, Update},
    state::{Disabled, ToolState, Upstream},
    task::{Task, TaskHandle, TaskRequest, TaskWish},
    template::{Fallback, Provider, Reference, Template, TemplateError},
    timestamp::rfc3339,
    tool::{Settings, Tool, ToolParts},
    trace::TraceContext,
    uri::{ResourceUri, UriCompletion, UriTemplate},
};
