//! Events, alerts, health and trace contexts.

mod access;
mod alert;
mod authoring;
mod breaker;
mod event;
mod event_constructors;
mod health;
mod latency_histogram;
mod observer;
mod trace;

pub use self::{
    access::{AccessDecision, AccessVerdict, AccessedResource, AccessingCall},
    alert::{Alert, AlertKind, AlertPhase, AlertSubject},
    authoring::{AuthoringAction, AuthoringChange},
    breaker::{BreakerChange, BreakerState, Scope},
    event::Event,
    health::{CheckReport, Health, HealthReport, HealthStatus},
    latency_histogram::LatencyHistogram,
    observer::{Observe, ObserveFn, Observers, observe_fn},
    trace::TraceContext,
};
