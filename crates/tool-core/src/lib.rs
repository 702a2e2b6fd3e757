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

mod call;
mod failure;
mod observe;
mod ports;
mod secrets;
mod settings;
mod sources;
mod text;
mod tools;
mod uri;

pub use self::{
    call::{
        Arguments, Ask, AskError, Asker, Backend, Body, BoxFuture, CallContext, CallOrigin, Caller,
        ClientCapabilities, ClientGroup, ClientIdentity, ClientKey, CorrelationId, DynBackend, DynInvoke,
        InProcess, InputRequest, Invoke, Layer, LayerDecision, Layers, Mode, Nested, Outcome, PendingCall,
        Preview, Progress, Question, Reentry, Refresh, Reply, RequestExtras, Resume, Target, Task,
        TaskHandle, TaskMode, TaskRequest,
    },
    failure::{
        Category, Dispatch, DispatchHistory, DispatchState, ErrorKind, HealthSignal, HealthSignals,
        RetryAfter, SideEffect, ToolError, is_status_not_taken, retry_after,
    },
    observe::{
        Alert, AlertKind, AlertPhase, AlertSubject, BreakerChange, BreakerState, CheckReport, Event, Health,
        HealthReport, HealthStatus, Observe, Observers, Scope, TraceContext,
    },
    ports::{
        ApprovalCall, ApprovalNews, ApprovalRecord, ApprovalState, Approvals, ApprovalsError, Claim, Claimed,
        Clock, Instant, Ledger, LedgerEntry, LedgerState, Settled,
    },
    secrets::{
        HIDDEN, IfUnset, Provider, Reference, Secret, SecretError, SecretSearch, Secrets, Template,
        TemplateError, hide_credentials, hide_fields, hide_fields_in_text, hide_fields_of_question,
        hide_fields_of_questions, hide_fields_of_report, hide_fields_of_result, names_secret, sanitised,
    },
    settings::{
        Adapted, ArgumentHandling, CacheOutcome, Change, ChangeKind, ConcurrencySettings, Degraded,
        DegradedStep, FailedStep, FallbackOf, Overrides, RedactedFields, Scopes, Setting, SettingLevel,
        Settings,
    },
    sources::{
        Catalogue, DefinitionPolicy, Lifecycle, ListLimits, ListWarning, OnUpdate, Rejected, Source,
        SourceChange, SourceState, SourceStatus, Update,
    },
    text::{FormattedDuration, Jitter, format_duration, rfc3339},
    tools::{
        CheckError, CheckJson, DataClassification, Descriptor, Disabled, Executor, ExecutorSpec, Feature,
        InvalidName, LatencyClass, MAX_NAME, Metadata, Mismatch, Origin, Pattern, PiiHandling, PrepareError,
        Problem, Provenance, RateLimitSettings, Tool, ToolParts, ToolState, Trust, UpstreamState, check_name,
        outward_name,
    },
    uri::{ResourceUri, UriCompletion, UriTemplate},
};
