use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_settings::{Entries, Field, Period, SectionEntries};

use crate::{
    ApprovalSpec, CallLimitsSpec, PolicySpec, ToolChoiceSpec, WebhookSpec,
    config::{
        health::{self, WebhookBody},
        principals::PrincipalBody,
    },
    document::{
        lists::patterns,
        place::{Cx, Place},
    },
    servers::list_limits::{DefinitionsWord, PinWord},
    tools::metadata::texts,
};

/// Rules about who may call what.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Policy")]
pub(crate) struct PolicyBody {
    /// Tools that nobody may call, by the names that agents see or that servers have them under; `*` stands for any characters.
    pub(crate) blocklist: Field<Vec<Field<String>>>,
    /// The only tools that may be called, by the names that agents see; `*` stands for any characters.
    pub(crate) allowlist: Field<Vec<Field<String>>>,
    /// Permissions of each principal: `local: [network.external]`.
    pub(crate) permissions: Field<Entries<Vec<Field<String>>>>,
    /// Permissions of each role: `reader: [files.read]`. Principals and tokens have roles by their names.
    pub(crate) roles: Field<Entries<Vec<Field<String>>>>,
    /// Tenant, roles and permissions of each principal: `ada: {roles: [reader]}`. Tokens authenticate principals; see
    /// `gateway.auth`.
    pub(crate) principals: Field<Entries<PrincipalBody>>,
    /// Permissions that tools require in addition to their own, by the names that agents see; `*` stands for any
    /// characters: `files__delete_*: [files.write]`. A caller that lacks one of them neither sees nor calls the tool.
    pub(crate) required_permissions: Field<Entries<Vec<Field<String>>>>,
    /// Rules about approvals, in addition to the `approval` of tools and servers.
    pub(crate) approval: Field<ApprovalBody>,
    /// Rule about tool calls of a model: it may, must or must not call tools; it may by default.
    pub(crate) tool_choice: Field<ToolChoiceSpec>,
    /// Limits of turns and conversations, which callers name in `_meta` by `dev.toolplane/turn` and
    /// `dev.toolplane/conversation`.
    pub(crate) limits: Field<CallLimitsBody>,
    #[serde(rename = "$policy")]
    pub(crate) sections: SectionEntries,
    #[serde(rename = "$policy-late")]
    pub(crate) late_sections: SectionEntries,
    /// Handling of suspicious definitions of servers; `pass` by default. A server can override it.
    pub(crate) definitions: Field<DefinitionsWord>,
    /// Pins of the definitions of servers; `first_use` by default. A server can override it.
    pub(crate) pin: Field<PinWord>,
}

/// Limits of turns and conversations; no limit by default.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "CallLimits")]
pub(crate) struct CallLimitsBody {
    /// Calls in one turn, which is one answer of a model. Calls that name no turn are in none.
    calls_per_turn: Field<u32>,
    /// Calls in one conversation. Those that name none are of their session's, or else of their principal's.
    calls_per_conversation: Field<u32>,
    /// Calls of the same tool with the same arguments in one conversation.
    identical_calls: Field<u32>,
    /// Costs of the calls of one turn by the tools' `cost_per_call`, in US dollars.
    cost_per_turn: Field<f64>,
    /// Costs of the calls of one conversation by the tools' `cost_per_call`, in US dollars.
    cost_per_conversation: Field<f64>,
}

/// Rules about approvals.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Approval")]
pub(crate) struct ApprovalBody {
    /// Tools that nobody calls without approval, by the names that agents see; `*` stands for any characters. The
    /// settings of a tool or server do not change it.
    required: Field<Vec<Field<String>>>,
    /// Requires that somebody other than the caller decides: then the client of the call is not asked.
    separate_approver: Field<bool>,
    /// Time for which an approval can be given and used; 10m by default.
    expires_after: Field<Period>,
    /// Webhook that receives every approval that is asked for or decided.
    callback: Field<WebhookBody>,
}

/// Adds the limits of turns and conversations of a file. Where several files give one, the strictest counts.
pub(crate) fn choice_and_limits(
    cx: Cx<'_>,
    choice: Field<ToolChoiceSpec>,
    limits: Field<CallLimitsBody>,
    policy: &mut PolicySpec,
) {
    let body = limits.get().unwrap_or_default();
    let calls = |field: Field<u32>| {
        let (at, calls) = field.located()?;
        if calls == 0 {
            cx.error(
                at,
                "no call could ever be made",
                "write `tool_choice: none` for that",
            );
        }
        Some(calls)
    };
    let cost = |field: Field<f64>| {
        let (at, cost) = field.located()?;
        if !cost.is_finite() || cost < 0.0 {
            let hint = "write it in US dollars, such as `0.50`";
            cx.error(at, "this is no amount of money", hint);
        }
        Some(cost)
    };
    let limits = CallLimitsSpec {
        calls_per_turn: calls(body.calls_per_turn),
        calls_per_conversation: calls(body.calls_per_conversation),
        identical_calls: calls(body.identical_calls),
        cost_per_turn: cost(body.cost_per_turn),
        cost_per_conversation: cost(body.cost_per_conversation),
    };
    merge_choice_and_limits(policy, choice.get().unwrap_or_default(), limits);
}

/// Merges both: the strictest counts.
pub(crate) fn merge_choice_and_limits(
    policy: &mut PolicySpec,
    choice: ToolChoiceSpec,
    limits: CallLimitsSpec,
) {
    policy.tool_choice = match (policy.tool_choice, choice) {
        (ToolChoiceSpec::None, _) | (_, ToolChoiceSpec::None) => ToolChoiceSpec::None,
        (ToolChoiceSpec::Required, _) | (_, ToolChoiceSpec::Required) => ToolChoiceSpec::Required,
        _ => ToolChoiceSpec::Auto,
    };
    let fewest = |one: Option<u32>, other: Option<u32>| one.into_iter().chain(other).min();
    let least = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::min);
    let known = policy.limits;
    policy.limits = CallLimitsSpec {
        calls_per_turn: fewest(known.calls_per_turn, limits.calls_per_turn),
        calls_per_conversation: fewest(known.calls_per_conversation, limits.calls_per_conversation),
        identical_calls: fewest(known.identical_calls, limits.identical_calls),
        cost_per_turn: least(known.cost_per_turn, limits.cost_per_turn),
        cost_per_conversation: least(known.cost_per_conversation, limits.cost_per_conversation),
    };
}

/// Adds the rules about approvals of a file. Where several files give one, the strictest counts.
///
/// Returns the place of its callback, if there is one.
pub(crate) fn approval(cx: Cx<'_>, field: Field<ApprovalBody>, spec: &mut ApprovalSpec) -> Option<Place> {
    let body = field.get().unwrap_or_default();
    let expires_after = body.expires_after.located().map(|(at, Period(period))| {
        if period.is_zero() {
            let hint = "leave it out for the usual 10m";
            cx.error(at, "nobody could decide in no time", hint);
        }
        period
    });
    let at = body.callback.given();
    let place = at.map(|at| cx.place(at));
    let callback = place.zip(health::webhook(cx, body.callback));
    if let (Some(at), Some((_, WebhookSpec { secret: None, .. }))) = (at, &callback) {
        cx.warning(
            at,
            "the callback is not signed: its receiver cannot verify the sender",
            "add `secret: ${env:NAME}`, by which it is signed",
        );
    }
    merge_approval(
        spec,
        ApprovalSpec {
            required: patterns(body.required),
            separate_approver: body.separate_approver.get().unwrap_or_default(),
            expires_after,
            callbacks: callback.iter().map(|(_, callback)| callback.clone()).collect(),
        },
    );
    callback.map(|(place, _)| place)
}

/// Returns the patterns of an approval section; none if there is none.
pub(crate) fn approval_required(field: &Field<ApprovalBody>) -> &Field<Vec<Field<String>>> {
    const ABSENT: &Field<Vec<Field<String>>> = &Field::ABSENT;
    field.as_ref().map_or(ABSENT, |body| &body.required)
}

/// Merges both: the strictest counts.
pub(crate) fn merge_approval(spec: &mut ApprovalSpec, other: ApprovalSpec) {
    spec.required.extend(other.required);
    spec.callbacks.extend(other.callbacks);
    spec.separate_approver |= other.separate_approver;
    let shortest = [spec.expires_after, other.expires_after];
    spec.expires_after = shortest.into_iter().flatten().min();
}

/// Returns the permissions of each principal, or those that each pattern of tools requires.
pub(crate) fn permissions(field: Field<Entries<Vec<Field<String>>>>) -> BTreeMap<String, Vec<String>> {
    let entries = field.get().unwrap_or_default().into_iter();
    entries
        .map(|(principal, list)| (principal, texts(list)))
        .collect()
}
