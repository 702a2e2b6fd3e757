//! Binding of an approval to one call, and the errors of calls without a valid approval.

use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tool_core::{
    ApprovalCall, ApprovalRecord, ApprovalState, ApprovalSubject, ApprovalsError, CallContext, ErrorKind,
    Metadata, PiiHandling, Tool, ToolError, Trust,
};

/// Maximum size of the arguments of a call that needs approval, in bytes.
const MAX_ARGUMENTS: usize = 64 * 1024;

/// Refusal of a call without a valid approval: an error for the caller, and a fixed word for traces and metrics.
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

    /// Refuses a call whose handle names no valid approval.
    pub(crate) fn unknown(handle: &str) -> Self {
        let message = format!(
            "there is no approval `{handle}` for this call: it has expired, was used, or was never requested; call without it to request another"
        );
        Self::denied("unknown", message)
    }

    /// Refuses a call because of the state of its approval: denied, or used already.
    pub(crate) fn by_state(approval: &ApprovalRecord) -> Self {
        let ApprovalState::Denied { by, reason } = &approval.state else {
            return Self::used(approval);
        };
        let reason = reason
            .as_ref()
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        Self::denied("denied", format!("`{by}` denied the call{reason}"))
    }

    /// Refuses a call whose approval was used by another one.
    pub(crate) fn used(approval: &ApprovalRecord) -> Self {
        let message = format!(
            "the approval `{}` was used already; it is valid for one call",
            approval.handle
        );
        Self::denied("used", message)
    }

    /// Refuses a call whose approval cannot be stored.
    pub(crate) fn not_stored(error: &ApprovalsError) -> Self {
        let kind = match error {
            ApprovalsError::Full { .. } => ErrorKind::Overloaded,
            _ => ErrorKind::Unavailable,
        };
        let message = format!("the call needs approval, but {error}");
        Self {
            error: ToolError::new(kind, message),
            reason: "not_kept",
        }
    }
}

/// Binds an approval to a call.
///
/// # Errors
/// If the arguments are too large to be shown to a person.
pub(crate) fn bind(
    cx: &CallContext,
    reason: String,
    policy_digest: [u8; 32],
    by_another: bool,
    (subject, lifetime): (Option<ApprovalSubject>, Duration),
) -> Result<ApprovalCall, Unapproved> {
    let arguments = cx.arguments.raw();
    if arguments.len() > MAX_ARGUMENTS {
        let message = format!(
            "the call needs approval, and its arguments have more than the {MAX_ARGUMENTS} bytes that a person can review"
        );
        return Err(Unapproved::denied("large_arguments", message));
    }
    let tool = cx.tool();
    let asked_at = cx.clock.wall();
    let mut call = ApprovalCall::new(
        cx.target.name().into(),
        arguments.clone(),
        &cx.origin.caller,
        asked_at,
        asked_at + lifetime,
    );
    call.version.clone_from(&tool.descriptor().version);
    call.risks = risks(tool);
    call.reason = reason;
    call.by_another = by_another;
    call.tool_digest = tool_digest(tool);
    if let Some(subject) = subject {
        call.tool_digest = Sha256::new_with_prefix(call.tool_digest)
            .chain_update(subject.digest)
            .finalize()
            .into();
        call.details = subject.text;
    }
    call.arguments_digest = *cx.arguments.digest();
    call.policy_digest = policy_digest;
    Ok(call)
}

/// Checks that an approval is for this very call.
///
/// # Errors
/// Names the first difference.
pub(crate) fn check_binding(
    approved: &ApprovalCall,
    now: &ApprovalCall,
    handle: &str,
) -> Result<(), Unapproved> {
    let denied = |reason, what: &str| {
        Err(Unapproved::denied(
            reason,
            format!("the approval `{handle}` {what}"),
        ))
    };
    // Nothing is revealed about the approval of another caller.
    if approved.principal != now.principal || approved.tenant != now.tenant {
        return Err(Unapproved::unknown(handle));
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

/// Returns the digest of everything that an approver knows of a tool: its definition, its executor and its place. It covers
/// references to secrets, but no secret.
fn tool_digest(tool: &Arc<Tool>) -> [u8; 32] {
    let descriptor = tool.descriptor();
    let identity = json!([
        tool.digest(),
        descriptor.version,
        descriptor.executor.kind,
        descriptor.executor.config,
        tool.provenance().place,
        match descriptor.origin.trust {
            Trust::Operator => json!(true),
            Trust::Agent => json!(["agent", descriptor.origin.is_accepted]),
            _ => json!(false),
        },
    ]);
    raw_json::digest(&RawJson::from(identity))
}

/// Returns the risks that the operator declares for the tool, or has accepted. A server's statements about its own tools are
/// not trusted.
fn risks(tool: &Tool) -> Vec<String> {
    let descriptor = tool.descriptor();
    let kind = &descriptor.executor.kind;
    match descriptor.origin.trust {
        Trust::Upstream => {
            return vec![format!(
                "a tool of a server (`{kind}`): what it does is known from that server alone"
            )];
        }
        Trust::Agent if !descriptor.origin.is_accepted => {
            return vec![format!(
                "a tool that an agent made (`{kind}`): no operator accepted what it declares"
            )];
        }
        _ => {}
    }
    let Metadata {
        read_only,
        idempotent,
        cost_per_call,
        data_classification,
        pii_handling,
        required_permissions,
        ..
    } = &*descriptor.metadata;
    let mut risks = Vec::new();
    risks.push(match (read_only, idempotent) {
        (Some(true), _) => "declared to change nothing".to_owned(),
        (_, Some(true)) => "may change something; twice is the same as once".to_owned(),
        _ => "may change something".to_owned(),
    });
    risks.extend(cost_per_call.map(|cost| format!("costs {cost} US dollars")));
    risks.extend(data_classification.map(|class| format!("its data are {}", class.as_str())));
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
