//! What an approval is bound to, made from a call.

use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use serde_json::json;
use tool_core::{
    ApprovalCall, CallContext, DataClassification, ErrorKind, Metadata, PiiHandling, Tool, ToolError, Trust,
};

/// How many bytes of arguments may be kept for somebody to look at.
const MAX_ARGUMENTS: usize = 64 * 1024;

/// Why a call is not approved: an error for the caller, and one of few words for traces.
#[derive(Debug)]
pub(crate) struct Unapproved {
    pub(crate) error: ToolError,
    pub(crate) reason: &'static str,
}

impl Unapproved {
    pub(crate) fn denied(reason: &'static str, message: impl Into<String>) -> Self {
        let error = ToolError::new(ErrorKind::Denied, message);
        Self { error, reason }
    }
}

/// The call as it is to be approved.
pub(crate) fn of(
    cx: &CallContext,
    reason: String,
    policy_digest: [u8; 32],
    by_another: bool,
    lifetime: Duration,
) -> Result<ApprovalCall, Unapproved> {
    let arguments = cx.arguments.raw();
    if arguments.len() > MAX_ARGUMENTS {
        let message = format!(
            "the call needs approval, and its arguments have more than the {MAX_ARGUMENTS} bytes that somebody can look at"
        );
        return Err(Unapproved::denied("large_arguments", message));
    }
    let tool = cx.tool();
    let asked_at = cx.clock.wall();
    Ok(ApprovalCall {
        tool: cx.target.name().into(),
        version: tool.descriptor().version.clone(),
        arguments: arguments.clone(),
        principal: cx.origin.caller.principal.clone(),
        tenant: cx.origin.caller.tenant.clone(),
        risks: risks(tool),
        reason,
        by_another,
        asked_at,
        expires_at: asked_at + lifetime,
        tool_digest: tool_digest(tool),
        arguments_digest: *cx.arguments.digest(),
        policy_digest,
    })
}

/// What is no longer as it was approved, if anything: an error for whoever comes with the approval.
pub(crate) fn check(approved: &ApprovalCall, now: &ApprovalCall, handle: &str) -> Result<(), Unapproved> {
    let denied = |reason, what: &str| {
        Err(Unapproved::denied(
            reason,
            format!("the approval `{handle}` {what}"),
        ))
    };
    // Of somebody else's approval, nothing is told.
    if approved.principal != now.principal || approved.tenant != now.tenant {
        return Err(unknown(handle));
    }
    if approved.tool != now.tool {
        return denied("other_tool", "is for another tool");
    }
    if approved.arguments_digest != now.arguments_digest {
        return denied("other_arguments", "is for other arguments");
    }
    if approved.tool_digest != now.tool_digest {
        let message = format!("the approval `{handle}` is for the tool as it was before it changed");
        return Err(Unapproved {
            error: ToolError::new(ErrorKind::ToolChanged, message),
            reason: "tool_changed",
        });
    }
    if approved.policy_digest != now.policy_digest || approved.by_another != now.by_another {
        return denied("policy_changed", "is from before the policy changed");
    }
    Ok(())
}

pub(crate) fn unknown(handle: &str) -> Unapproved {
    let message = format!(
        "there is no approval `{handle}` for this call: it has expired, was used, or was never asked for; call without it to ask for another"
    );
    Unapproved::denied("unknown", message)
}

/// What identifies a tool as somebody knows it who approves a call: its definition, and what runs it and where. A secret
/// is not part of it, only the reference to one.
fn tool_digest(tool: &Arc<Tool>) -> [u8; 32] {
    let descriptor = tool.descriptor();
    let identity = json!([
        tool.digest(),
        descriptor.version,
        descriptor.executor.kind,
        descriptor.executor.config,
        tool.provenance().place,
        descriptor.origin.trust == Trust::Operator,
    ]);
    raw_json::digest(&RawJson::from(identity))
}

/// What the operator says of the tool. What a server says of its own tools is nothing to go by.
fn risks(tool: &Tool) -> Vec<String> {
    let descriptor = tool.descriptor();
    if descriptor.origin.trust != Trust::Operator {
        let kind = &descriptor.executor.kind;
        return vec![format!(
            "a tool of a server (`{kind}`): what it does is known from that server alone"
        )];
    }
    let Metadata {
        read_only,
        idempotent,
        cost_per_call,
        data_classification,
        pii_handling,
        required_permissions,
        ..
    } = &descriptor.metadata;
    let mut risks = Vec::new();
    risks.push(match (read_only, idempotent) {
        (Some(true), _) => "declared to change nothing".to_owned(),
        (_, Some(true)) => "may change something; twice is the same as once".to_owned(),
        _ => "may change something".to_owned(),
    });
    risks.extend(cost_per_call.map(|cost| format!("costs {cost} US dollars")));
    risks.extend(data_classification.map(|class| {
        let class = match class {
            DataClassification::Public => "public",
            DataClassification::Internal => "internal",
            DataClassification::Sensitive => "sensitive",
        };
        format!("its data are {class}")
    }));
    risks.extend(
        pii_handling
            .filter(|handling| *handling == PiiHandling::None)
            .map(|_| "personal data pass as they are".to_owned()),
    );
    if !required_permissions.is_empty() {
        risks.push(format!("requires {}", required_permissions.join(", ")));
    }
    risks
}
