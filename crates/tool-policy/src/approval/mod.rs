//! Approval: holds a call until a person allows it.

mod desk;
mod layer;
mod memory_approvals;
mod sealed_call;
mod settings;
mod text;

pub use self::{
    desk::{ApprovalDesk, ApprovalVerdict, DecideError},
    layer::{Approval, ApprovalLayer},
    memory_approvals::MemoryApprovals,
    settings::ApprovalRule,
    text::{approval_json, harmless_text, readable_json},
};
