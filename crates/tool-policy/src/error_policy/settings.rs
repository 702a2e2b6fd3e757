use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, ErrorKind, Overrides, Setting, SettingLevel};
use tool_settings::{Entries, Field, Section, SectionContext, SectionKeys, suggest};

use crate::ErrorPolicyLayer;

/// Consequences of each kind of error for callers and operators: the table of [`ErrorKind`], with the operator's
/// overrides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorPolicySettings([Option<ErrorRule>; ErrorKind::ALL.len()]);

/// The operator's rule for one kind of error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ErrorRule {
    /// Message for a model, instead of the error's own.
    pub message: Option<Arc<str>>,
    /// Advice for a model, instead of the default advice.
    pub advice: Option<Arc<str>>,
    /// `true` if operators are alerted.
    pub alert: Option<bool>,
}

impl ErrorRule {
    /// Sets the message for a model.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<Arc<str>>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Sets the advice for a model.
    #[must_use]
    pub fn with_advice(mut self, advice: impl Into<Arc<str>>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Sets if operators are alerted.
    #[must_use]
    pub fn with_alert(mut self, alert: bool) -> Self {
        self.alert = Some(alert);
        self
    }
}

impl ErrorPolicySettings {
    /// Returns the policy with this rule for this kind.
    #[must_use]
    pub fn with(mut self, kind: ErrorKind, rule: ErrorRule) -> Self {
        self.0[kind as usize] = Some(rule);
        self
    }

    /// Returns the policy, completed by the rules of `other` for kinds without a rule.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut others = other.0.into_iter();
        Self(self.0.map(|rule| rule.or(others.next().flatten())))
    }

    /// Returns the operator's rule for this kind, if there is one.
    #[must_use]
    pub fn rule(&self, kind: ErrorKind) -> Option<&ErrorRule> {
        self.0[kind as usize].as_ref()
    }

    /// Returns `true` if operators are alerted of errors of this kind.
    #[must_use]
    pub fn alerts(&self, kind: ErrorKind) -> bool {
        self.rule(kind)
            .and_then(|rule| rule.alert)
            .unwrap_or(kind.alerts())
    }
}

impl Setting for ErrorPolicySettings {
    fn merged(&self, wider: Option<&Self>, _: SettingLevel) -> Self {
        self.clone().or(wider.cloned().unwrap_or_default())
    }

    fn settled(&self, _: &Descriptor) -> Option<Self> {
        None
    }
}

impl ErrorPolicyLayer {
    /// The section `errors` of the policy.
    #[must_use]
    pub fn section() -> Section {
        Section::new().for_policy(SectionKeys::new(read))
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct PolicyKeys {
    /// Messages and alerts by kind of error: `upstream_error: {advice: ask for help}`.
    errors: Field<Entries<ErrorBody>>,
}

/// Messages and alerts for errors of one kind.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Error")]
struct ErrorBody {
    /// Message for the model, instead of the error's own message. Logs keep the error's own message.
    message: Field<String>,
    /// Advice for the model: what to do after the error.
    advice: Field<String>,
    /// `true` if operators are alerted, at most once in 5 minutes for each tool.
    alert: Field<bool>,
}

/// Adds the rules of a file.
fn read(cx: SectionContext<'_>, keys: PolicyKeys, overrides: &mut Overrides) {
    let Some(entries) = keys.errors.get() else {
        return;
    };
    let mut policy = overrides
        .get::<ErrorPolicySettings>()
        .cloned()
        .unwrap_or_default();
    for (name, field) in entries {
        let Some((at, body)) = field.located() else {
            continue;
        };
        let Some(kind) = ErrorKind::named(&name) else {
            let kinds: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
            let hint = match suggest::nearest(&name, &kinds) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", kinds.join(", ")),
            };
            cx.key_error(
                at,
                format!("`{}` is no kind of error", suggest::shown(&name)),
                hint,
            );
            continue;
        };
        let rule = ErrorRule {
            message: body.message.get().map(Into::into),
            advice: body.advice.get().map(Into::into),
            alert: body.alert.get(),
        };
        policy = policy.with(kind, rule);
    }
    overrides.set(policy);
}
