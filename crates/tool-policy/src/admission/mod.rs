//! Admission: decides whether a caller may call a tool, by the operator's rules.

mod denial;
mod layer;
mod rules;
mod shared_rules;

pub use self::{
    denial::Denial,
    layer::{Admission, AdmissionLayer},
    rules::{ApprovalRules, DisabledByOperator, Rules, ToolChoice},
    shared_rules::SharedRules,
};
