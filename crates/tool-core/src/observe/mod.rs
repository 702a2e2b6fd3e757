//! Events, alerts, health and trace contexts.

mod alert;
mod event;
mod health;
mod trace;

pub use self::{
    alert::{Alert, AlertKind, AlertPhase, AlertSubject},
    event::{BreakerChange, BreakerState, Event, Observe, Observers, Scope},
    health::{CheckReport, Health, HealthReport, HealthStatus},
    trace::TraceContext,
};
