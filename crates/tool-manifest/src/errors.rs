//! What models and operators are told of errors.

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{ErrorKind, ErrorPolicySettings, ErrorRule};

use crate::{
    field::{Entries, Field},
    place::Cx,
    suggest,
};

/// What is told of errors of one kind.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Error")]
pub(crate) struct ErrorBody {
    /// What a model is told in the place of what went wrong; logs have that.
    message: Field<String>,
    /// What a model is told to do.
    advice: Field<String>,
    /// Whether operators are told, at most once in 5 minutes for each tool.
    alert: Field<bool>,
}

/// The policy with what a file says.
pub(crate) fn policy(
    cx: Cx<'_>,
    field: Field<Entries<ErrorBody>>,
    mut policy: ErrorPolicySettings,
) -> ErrorPolicySettings {
    for (name, field) in field.get().unwrap_or_default() {
        let Some((at, body)) = field.located() else {
            continue;
        };
        let Some(kind) = ErrorKind::named(&name) else {
            let kinds = ErrorKind::ALL.map(ErrorKind::as_str);
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
    policy
}
