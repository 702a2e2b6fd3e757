//! Settings that can be given by default, for a server and for a tool: the nearest counts, as a whole.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{
    ApprovalRule, ArgumentHandling, BreakerScope, BreakerSettings, Overrides, RedactionMode, RetrySettings,
    format_duration,
};

use crate::{
    cache::{self, CacheBody},
    field::Field,
    node::NodeId,
    partial::{self, PartialField},
    place::Cx,
    units::{Percent, Period},
};

/// When failed calls are tried again: only where the failure may pass, where the tool cannot have run or is declared
/// `idempotent` or `read_only`, and as far as the call's time and the upstream's share of retries go.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Retry")]
pub(crate) struct RetryBody {
    /// How many attempts a call has in all; 3 if it is not given. With 1 there is no retry.
    max_attempts: Field<u32>,
    /// The longest pause before the second attempt, which doubles with every further one; 200ms if it is not given.
    /// Pauses have a random length up to that.
    initial_delay: Field<Period>,
    /// What no pause is longer than, unless the upstream asks for more; 20s if it is not given.
    max_delay: Field<Period>,
}

/// When a tool is held back after failures: its calls then fail at once, until one that is let through succeeds.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Breaker")]
pub(crate) struct BreakerBody {
    /// Whether there is none after all.
    disabled: Field<bool>,
    /// What it holds back: `tool`, the tool alone, if it is not given; `upstream`, with it all tools of its server or HTTP
    /// host when that itself fails. A connection that cannot be made always counts for the server or host.
    per: Field<BreakerScopeWord>,
    /// How many failures in a row open it; 5 if it is not given.
    max_failures: Field<u32>,
    /// The share of failed calls that opens it; 50% if it is not given.
    failure_share: Field<Percent>,
    /// How many calls there must be for the share to count; 10 if it is not given.
    min_calls: Field<u32>,
    /// How far back calls count; 30s if it is not given.
    window: Field<Period>,
    /// How long it stays open at first, and up to a fifth longer; 1s if it is not given. It doubles with every failure
    /// of the call that is let through.
    pause: Field<Period>,
    /// What the pause does not grow beyond; 60s if it is not given.
    max_pause: Field<Period>,
}

/// What a breaker holds back.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "BreakerScope")]
pub(crate) enum BreakerScopeWord {
    /// The tool alone.
    Tool,
    /// All tools of the server or host.
    Upstream,
}

/// What is done with arguments that are not quite what a tool's schema asks for: `strict` refuses them; `coerce` converts
/// them where nothing is lost, such as `"5"` to 5; `sanitize` does so, drops unknown members, cuts texts and moves numbers
/// to their bounds. `coerce` and `sanitize` fill in the defaults of the schema, unless `fill_defaults` says otherwise. The caller is
/// told of every change.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ArgumentHandling")]
pub(crate) enum ArgumentsWord {
    Strict,
    Coerce,
    Sanitize,
}

/// What is hidden in what a tool gives back: `secrets`, the values of your own `${…}` secrets wherever they come back;
/// `credentials`, those and whatever has the form of a well-known kind of key or token; `off`, nothing in results.
/// Errors never hold your secrets.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Redaction")]
pub(crate) enum RedactionWord {
    Off,
    Secrets,
    Credentials,
}

/// The keys of these settings, as they stand among others.
#[derive(Debug, Default)]
pub(crate) struct OverrideFields {
    pub(crate) call_timeout: Field<Period>,
    pub(crate) retry: Field<RetryBody>,
    pub(crate) breaker: Field<BreakerBody>,
    pub(crate) cache: Field<CacheBody>,
    pub(crate) arguments: Field<ArgumentsWord>,
    pub(crate) fill_defaults: Field<bool>,
    pub(crate) redaction: Field<RedactionWord>,
    pub(crate) redact: Field<Vec<Field<String>>>,
    pub(crate) approval: Field<ApprovalWord>,
    pub(crate) partial: PartialField,
}

/// Whether somebody must approve each call.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ApprovalRule")]
pub(crate) enum ApprovalWord {
    /// Somebody must approve each call.
    Required,
    /// Nobody need approve, unless the policy's `approval` says so.
    Never,
}

/// Makes settings from what a file says.
pub(crate) fn overrides(cx: Cx<'_>, fields: OverrideFields) -> Overrides {
    let mut call_timeout = Duration::ZERO;
    period(cx, fields.call_timeout, &mut call_timeout);
    Overrides {
        call_timeout: Some(call_timeout).filter(|timeout| !timeout.is_zero()),
        retry: fields.retry.get().map(|body| retry(cx, body)),
        breaker: fields.breaker.get().map(|body| breaker(cx, body)),
        cache: fields.cache.get().map(|body| cache::cache(cx, body)),
        arguments: fields.arguments.get().map(|word| match word {
            ArgumentsWord::Strict => ArgumentHandling::Strict,
            ArgumentsWord::Coerce => ArgumentHandling::Coerce,
            ArgumentsWord::Sanitize => ArgumentHandling::Sanitize,
        }),
        fill_defaults: fields.fill_defaults.get(),
        redaction: fields.redaction.get().map(|word| match word {
            RedactionWord::Off => RedactionMode::Off,
            RedactionWord::Secrets => RedactionMode::Secrets,
            RedactionWord::Credentials => RedactionMode::Credentials,
        }),
        redact: fields
            .redact
            .get()
            .map(|names| names.into_iter().filter_map(Field::get).collect()),
        approval: fields.approval.get().map(|word| match word {
            ApprovalWord::Required => ApprovalRule::Required,
            ApprovalWord::Never => ApprovalRule::Never,
        }),
        partial: partial::partial(cx, fields.partial),
        ..Overrides::default()
    }
}

fn retry(cx: Cx<'_>, body: RetryBody) -> RetrySettings {
    let mut settings = RetrySettings::default();
    let hint = "write `max_attempts: 1` for calls without retries";
    count(cx, body.max_attempts, &mut settings.max_attempts, hint);
    period(cx, body.initial_delay, &mut settings.initial_delay);
    period(cx, body.max_delay, &mut settings.max_delay);
    settings
}

fn breaker(cx: Cx<'_>, body: BreakerBody) -> BreakerSettings {
    let mut settings = BreakerSettings {
        disabled: body.disabled.get().unwrap_or_default(),
        per: match body.per.get() {
            Some(BreakerScopeWord::Upstream) => BreakerScope::Upstream,
            _ => BreakerScope::Tool,
        },
        ..BreakerSettings::default()
    };
    let hint = "write `disabled: true` for tools without a breaker";
    count(cx, body.max_failures, &mut settings.max_failures, hint);
    count(cx, body.min_calls, &mut settings.min_calls, hint);
    if let Some((at, Percent(share))) = body.failure_share.located() {
        if share < 1.0 {
            cx.error(at, "a share of less than 1% would open it for nothing", hint);
        }
        // Whole percents: the number is between 0 and 100.
        settings.failure_percent = share.round() as u8;
    }
    period(cx, body.window, &mut settings.window);
    period(cx, body.pause, &mut settings.pause);
    period(cx, body.max_pause, &mut settings.max_pause);
    settings
}

/// A number that cannot be zero.
pub(crate) fn count(cx: Cx<'_>, field: Field<u32>, slot: &mut u32, hint: &str) {
    if let Some((at, number)) = field.located() {
        if number == 0 {
            cx.error(at, "this must be at least 1", hint);
        }
        *slot = number;
    }
}

/// A time that cannot be zero.
pub(crate) fn period(cx: Cx<'_>, field: Field<Period>, slot: &mut Duration) {
    if let Some((at, Period(period))) = field.located() {
        if period.is_zero() {
            cx.error(at, "this must be longer than 0", "leave it out for the usual one");
        }
        *slot = period;
    }
}

/// Warns of a limit of attempts that the call never lives to see.
pub(crate) fn outlasted(cx: Cx<'_>, at: Option<NodeId>, attempt: Option<Duration>, call: Option<Duration>) {
    if let (Some(at), Some(attempt), Some(call)) = (at, attempt, call)
        && attempt > call
    {
        let message = format!(
            "an attempt may take {} ms, but a call is over after {}: this never has an effect",
            attempt.as_millis(),
            format_duration(call)
        );
        cx.warning(at, message, "raise `call_timeout` beside it, or shorten this");
    }
}
