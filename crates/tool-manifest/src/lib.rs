//! Manifests and configuration files: every accepted spelling, read into descriptors with errors that show the line.
//!
//! [`load`] reads files, directories and texts into one [`Configuration`] and collects all problems of a run, each
//! with file, line, column and field, the line itself and what to try. [`ProcessSecrets`] gives the `${…}`
//! references in it their values.

mod chaos;
mod configuration;
mod deferred;
mod diagnostic;
mod document;
mod draft;
mod environment;
mod file;
mod health;
mod json;
mod kiwi;
mod listen;
mod listing;
mod load;
mod manifest;
mod metadata;
mod node;
mod okso;
mod origins;
mod overrides;
mod place;
mod promptkit;
mod references;
mod render;
mod report;
mod scalar;
mod schema;
mod schema_field;
mod search;
mod secrets;
mod sections;
mod server;
mod server_health;
mod source;
mod spellings;
mod suggest;
mod tool;
mod transport;
mod unknown_keys;
mod yaml;

pub use self::{
    chaos::{ChaosFault, ChaosRuleSpec, ChaosSpec, chaos_schema, load_chaos, read_chaos},
    configuration::{
        ApprovalSpec, CallLimitsSpec, Configuration, Defaults, GatewaySpec, PolicySpec, ToolChoiceSpec,
    },
    diagnostic::{Diagnostic, Diagnostics, Location, Related, Severity, Snippet},
    health::{AlertsSpec, HealthSpec, WebhookSpec},
    listing::ListLimitsSpec,
    load::{ConfigPart, LoadOptions, Loaded, load},
    schema::config_schema,
    search::find_configuration,
    secrets::ProcessSecrets,
    server::{EraSpec, HttpTransportSpec, IsolationSpec, ServerSpec, ServerTransport, StartMode},
    server_health::{ServerHealthSpec, ServerHealthTool},
    source::Syntax,
};
