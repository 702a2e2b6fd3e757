//! The standard stack around scripted executors, and the facade around configurations.

#[cfg(all(feature = "agent", feature = "outbound"))]
mod agents;
#[cfg(feature = "exec-mcp")]
mod aliases;
mod approval;
mod argument_size;
mod authentication;
mod authoring;
#[cfg(all(feature = "exec-http", feature = "exec-mcp", feature = "exec-mock"))]
mod breakers;
mod build_errors;
mod cache;
mod chaos;
#[cfg(feature = "exec-mock")]
mod configured;
#[cfg(feature = "exec-http")]
mod credentials;
#[cfg(feature = "exec-mock")]
mod defaults;
#[cfg(feature = "exec-mcp")]
mod definitions_corpus;
mod error_chains;
mod events;
#[cfg(feature = "exec-mcp")]
mod fallback_lookup;
mod health;
mod health_signals;
mod hedge;
mod host_layers;
mod hung;
mod idempotency;
#[cfg(all(feature = "exec-mcp", feature = "exec-mock"))]
mod idle_rules;
#[cfg(feature = "exec-mcp")]
mod kept_lists;
#[cfg(feature = "exec-http")]
mod kill;
mod ladder;
mod left_out;
mod limits;
#[cfg(all(feature = "exec-http", feature = "exec-mcp", feature = "exec-mock"))]
mod may_have_run;
mod metrics;
#[cfg(all(feature = "exec-mock", feature = "otel"))]
mod otel;
#[cfg(feature = "outbound")]
mod outbound;
mod overload;
mod partial;
#[cfg(feature = "exec-mcp")]
mod pins;
mod ports;
mod publish;
#[cfg(feature = "exec-mcp")]
mod refusals;
#[cfg(all(feature = "exec-mock", feature = "exec-mcp"))]
mod reload;
#[cfg(all(feature = "exec-http", feature = "exec-mock", feature = "exec-mcp"))]
mod reload_cache;
mod resilience;
#[cfg(feature = "exec-mock")]
mod result_size;
#[cfg(feature = "routes")]
mod routes;
mod scenarios;
#[cfg(feature = "exec-mock")]
mod search;
#[cfg(feature = "exec-mock")]
mod search_callers;
#[cfg(feature = "exec-mcp")]
mod sources;
mod spans;
#[cfg(feature = "exec-mock")]
mod spans_refused;
mod stack;
#[cfg(feature = "exec-mock")]
mod switches;
mod turns;
mod typed_calls;
mod unknown_credentials;
#[cfg(feature = "workflows")]
mod workflows;
#[cfg(any(feature = "agent", feature = "routes", feature = "workflows"))]
mod world;
