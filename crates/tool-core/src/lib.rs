//! Types and contracts of toolplane: tools, calls, replies, errors, the layers that a call passes, and the ports through
//! which layers reach the outside world. This crate knows no runtime, no HTTP and no JSON-RPC; authors of executors,
//! layers and sources need no other crate.
//!
//! # Examples
//! ```
//! use tool_core::{CallContext, Invoke, Outcome, Reply, ToolError};
//!
//! /// Tool that returns its arguments.
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

pub use bytes;
pub use raw_json::{self, RawJson};
pub use serde_json;
pub use tool_check::{
    AdaptedArguments, AnyJson, ArgumentHandling, Change, ChangeKind, CheckError, CheckJson, Mismatch, Problem,
};

pub use self::{
    call::{
        ApprovalSubject, Arguments, Ask, AskError, Asker, Backend, Body, BoxFuture, CallChain, CallContext,
        CallOrigin, Caller, ClientCapabilities, ClientGroup, ClientIdentity, ClientKey, CorrelationId,
        DynBackend, DynInvoke, InProcess, InputRequest, Invoke, InvokeFn, Layer, LayerDecision, Layers, Mode,
        NamedLayer, Nested, Outcome, PendingCall, Preview, Progress, Question, Reentry, Refresh, Reply,
        RequestExtras, Resume, Target, TargetBackend, Task, TaskForm, TaskHandle, TaskMode, TaskRequest,
        invoke_fn,
    },
    failure::{
        Category, Dispatch, DispatchHistory, DispatchState, ErrorKind, HealthSignal, HealthSignals,
        RetryAfter, SideEffect, ToolError, is_status_not_taken, retry_after,
    },
    observe::{
        AccessDecision, AccessVerdict, AccessedResource, AccessingCall, Alert, AlertKind, AlertPhase,
        AlertSubject, AuthoringAction, AuthoringChange, BreakerChange, BreakerState, CheckReport, Event,
        Health, HealthReport, HealthStatus, LatencyHistogram, Observe, ObserveFn, Observers, Scope,
        TraceContext, observe_fn,
    },
    ports::{
        ApprovalCall, ApprovalListener, ApprovalRecord, ApprovalState, Approvals, ApprovalsError,
        Authenticate, AuthenticationError, CallEnd, Claim, ClaimResult, Clock, DailyUsage, DailyUsageError,
        EmbedError, Embedder, FlowChoice, FlowClaim, FlowPhase, FlowRun, Flows, FlowsError, Instant,
        KeptTexts, KeptTextsError, Ledger, LedgerEntry, LedgerState, SystemClock, TokenRecord, TokenState,
        Tokens, TokensError, UsageFigures, UsageKey,
    },
    secrets::{
        HIDDEN, IfUnset, NoSecrets, Provider, Reference, Secret, SecretError, SecretSearch, Secrets,
        Template, TemplateError, hide_credentials, hide_fields, hide_fields_in_text, hide_fields_of_question,
        hide_fields_of_questions, hide_fields_of_report, hide_fields_of_result, hide_secrets, names_secret,
        sanitize_arguments, written_credentials,
    },
    settings::{
        CacheOutcome, ConcurrencySettings, Degraded, DegradedStep, FailedStep, FallbackOf, Overrides,
        RedactedFields, Scopes, Setting, SettingLevel, Settings, TaskSupport,
    },
    sources::{
        Catalogue, DefinitionChange, DefinitionPolicy, DefinitionState, FieldChange, Lifecycle, ListLimits,
        ListWarning, OnUpdate, PinMode, RejectedEntry, Source, SourceChange, SourceState, SourceStatus,
        Update,
    },
    text::{FormattedDuration, Jitter, UtcDay, format_duration, rfc3339},
    tools::{
        DataClassification, Descriptor, DisabledTool, ExampleCall, Executor, ExecutorSpec, ExpectedResult,
        Feature, InvalidName, LatencyClass, MAX_NAME, Metadata, OrDefault, Origin, Pattern, PiiHandling,
        PrepareError, Provenance, RateLimitSettings, Reach, SecretUse, StaticDefault, Tool, ToolBuilder,
        ToolParts, ToolState, Trust, UpstreamState, check_name, is_relative_path, outward_name,
    },
    uri::{ResourceUri, UriCompletion, UriTemplate},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
