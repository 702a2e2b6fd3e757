//! Approval: holds a call until a person allows it.

mod authorize;
mod bound_call;
mod client_question;
mod desk;
mod layer;
mod memory_approvals;
mod resume_token;
mod settings;
mod stage;
mod text;

pub use self::{
    desk::{ApprovalDesk, ApprovalVerdict, DecideError},
    layer::{Approval, ApprovalLayer},
    memory_approvals::MemoryApprovals,
    settings::ApprovalRule,
    text::{approval_json, harmless_text, readable_json},
};
