//! Conversion of a configuration's policy into the settings of layers.

use std::sync::Arc;

use tool_core::{Caller, Pattern};
use tool_manifest::{ApprovalSpec, CallLimitsSpec, Configuration, ToolChoiceSpec};
use tool_observe::UsageSettings;
use tool_policy::{
    ApprovalRules, ErrorPolicySettings, MicroDollars, Principals, QuotaLimits, Rules, ToolChoice,
};

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

/// Returns the settings of the recorder of usage.
pub(crate) fn usage(configuration: &Configuration) -> UsageSettings {
    let spec = &configuration.usage;
    let mut usage = UsageSettings::default();
    usage.is_enabled = spec.enabled != Some(false);
    usage.retention_days = spec.retention_days;
    usage
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

/// Returns the principals and roles of the policy. `permissions` is a shorter spelling of those of principals.
pub(crate) fn principals(configuration: &Configuration) -> Principals {
    let policy = &configuration.policy;
    let mut principals = Principals::default();
    principals.roles.clone_from(&policy.roles);
    for (name, spec) in &policy.principals {
        let settings = principals.by_name.entry(name.clone()).or_default();
        settings.tenant.clone_from(&spec.tenant);
        settings.roles.clone_from(&spec.roles);
        settings.permissions.clone_from(&spec.permissions);
    }
    for (name, permissions) in &policy.permissions {
        let settings = principals.by_name.entry(name.clone()).or_default();
        settings.permissions.extend_from_slice(permissions);
    }
    principals
}

/// Returns the default callers of surfaces without authentication.
pub(crate) fn callers(configuration: &Configuration, principals: &Principals) -> DefaultCallers {
    let policy = &configuration.policy;
    let named = policy.permissions.keys().map(|name| ("permissions", name));
    let named = named.chain(policy.principals.keys().map(|name| ("principals", name)));
    DefaultCallers {
        named: named.map(|(setting, name)| (setting, name.clone())).collect(),
        local: Arc::new(caller(principals, "local")),
        anonymous: Arc::new(caller(principals, "anonymous")),
    }
}

/// Returns the caller of a principal without credentials.
pub(crate) fn caller(principals: &Principals, name: &str) -> Caller {
    let caller = principals.caller(name, None, &[]);
    caller.expect("without credentials, no other tenant is named")
}

/// The operator's rules on errors.
pub(crate) fn errors(configuration: &Configuration) -> ErrorPolicySettings {
    let errors = configuration.policy.settings.get::<ErrorPolicySettings>();
    errors.cloned().unwrap_or_default()
}
