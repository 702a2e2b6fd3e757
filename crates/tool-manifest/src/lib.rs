//! Manifests and configuration files: every accepted spelling, read into descriptors with errors that show the line.
//!
//! [`load`] reads files, directories and texts into one [`Configuration`] and collects all problems of a run, each
//! with file, line, column and field, the line itself and what to try. [`ProcessSecrets`] gives the `${…}`
//! references in it their values.

mod chaos;
mod clients;
mod config;
mod diagnostics;
mod dialects;
mod document;
mod endpoints;
mod loading;
mod schema;
mod secrets;
mod servers;
mod tools;

pub use self::{
    chaos::{ChaosFault, ChaosRuleSpec, ChaosSpec, chaos_schema, load_chaos, read_chaos},
    config::{
        authoring::{AuthoringQuotas, AuthoringSpec},
        configuration::{
            ApprovalSpec, AuthenticationSpec, CallLimitsSpec, Configuration, ContainerSpec, Defaults,
            GatewayMode, GatewaySpec, PolicySpec, PrincipalSpec, ToolChoiceSpec,
        },
        health::{AlertsSpec, HealthSpec, WebhookSpec},
        search::{EmbeddingsSpec, SearchSpec},
        store::{StoreSpec, UsageSpec},
    },
    diagnostics::diagnostic::{Diagnostic, Diagnostics, Location, Related, Severity, Snippet},
    document::source::Syntax,
    endpoints::spec::EndpointSpec,
    loading::{
        client_files::is_client_file,
        load::{ConfigPart, LoadOptions, Loaded, load},
        plain::read_plain,
        search::{cache_directory, find_configuration},
    },
    schema::config_schema,
    secrets::process_secrets::{ProcessSecrets, process_variables},
    servers::{
        list_limits::ListLimitsSpec,
        sandbox::SandboxSpec,
        server_health::{ServerHealthSpec, ServerHealthTool},
        spec::{EraSpec, HttpTransportSpec, IsolationSpec, ServerSpec, ServerTransport, StartMode},
    },
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
