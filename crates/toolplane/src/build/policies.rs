//! Conversion of a configuration's policy into the settings of layers.

use std::sync::Arc;

use tool_core::{Caller, Pattern};
use tool_manifest::{ApprovalSpec, CallLimitsSpec, Configuration, PolicySpec, ToolChoiceSpec};
use tool_policy::{ApprovalRules, ErrorPolicySettings, MicroDollars, QuotaLimits, Rules, ToolChoice};

use crate::plane::DefaultCallers;

/// Returns the rules of admission and quotas.
pub(crate) fn rules(configuration: &Configuration) -> Rules {
    let spec = &configuration.policy;
    let mut rules = Rules::default();
    rules.tool_choice = match spec.tool_choice {
        ToolChoiceSpec::Auto => ToolChoice::Auto,
        ToolChoiceSpec::Required => ToolChoice::Required,
        ToolChoiceSpec::None => ToolChoice::None,
    };
    rules.blocklist.clone_from(&spec.blocklist);
    rules.allowlist.clone_from(&spec.allowlist);
    rules.required_permissions = spec
        .required_permissions
        .iter()
        .map(|(pattern, permissions)| (Pattern::new(pattern.as_str()), permissions.clone()))
        .collect();
    rules.limits = limits(&spec.limits);
    rules.approval = approval(&spec.approval);
    rules
}

fn limits(spec: &CallLimitsSpec) -> QuotaLimits {
    let mut limits = QuotaLimits::default();
    limits.calls_per_turn = spec.calls_per_turn;
    limits.calls_per_conversation = spec.calls_per_conversation;
    limits.identical_calls = spec.identical_calls;
    limits.cost_per_turn = spec.cost_per_turn.map(MicroDollars::from_dollars);
    limits.cost_per_conversation = spec.cost_per_conversation.map(MicroDollars::from_dollars);
    limits
}

fn approval(spec: &ApprovalSpec) -> ApprovalRules {
    let usual = ApprovalRules::default();
    let expires_after = spec.expires_after.unwrap_or(usual.expires_after);
    usual
        .with_required(spec.required.clone())
        .with_separate_approver(spec.separate_approver)
        .with_expires_after(expires_after)
}

/// Returns the default callers of surfaces without authentication.
pub(crate) fn callers(configuration: &Configuration) -> DefaultCallers {
    let policy = &configuration.policy;
    DefaultCallers {
        local: Arc::new(caller(policy, Caller::local())),
        anonymous: Arc::new(caller(policy, Caller::anonymous())),
    }
}

/// Adds the permissions of the policy to a caller.
fn caller(policy: &PolicySpec, mut caller: Caller) -> Caller {
    let granted = policy.permissions.get(&*caller.principal).into_iter().flatten();
    caller.permissions = granted.map(|permission| permission.as_str().into()).collect();
    caller
}

/// The operator's rules on errors.
pub(crate) fn errors(configuration: &Configuration) -> ErrorPolicySettings {
    let errors = configuration.policy.settings.get::<ErrorPolicySettings>();
    errors.cloned().unwrap_or_default()
}
