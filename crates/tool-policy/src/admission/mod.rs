//! Admission: decides whether a caller may call a tool, by the operator's rules.

mod layer;
mod rules;
mod shared_rules;

pub use self::{
    layer::{Admission, AdmissionLayer},
    rules::{ApprovalRules, Denial, DisabledByOperator, Rules, ToolChoice},
    shared_rules::SharedRules,
};
