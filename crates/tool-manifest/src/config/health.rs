//! Health of tools and servers, and alerts about it.

use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::Template;
use tool_settings::{Entries, Field, Percent, Period, Text, at_least_one, longer_than_zero};

use crate::{
    document::place::Cx,
    servers::{server_health, transport},
};

/// Settings of the health of tools and servers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HealthSpec {
    /// Time for which attempts count: 5 minutes.
    pub window: Duration,
    /// Interval of a tool's health check: every minute.
    pub interval: Duration,
    /// Time limit of a check: 5 s.
    pub timeout: Duration,
    /// Interval of the check of servers that set none of their own: never if absent.
    pub server_interval: Option<Duration>,
}

impl Default for HealthSpec {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(300),
            interval: Duration::from_secs(60),
            timeout: Duration::from_secs(5),
            server_interval: None,
        }
    }
}

/// Settings of alerts to operators.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AlertsSpec {
    /// Share of successful attempts below which an alert fires, from 0 to 1: 0.90.
    pub success_rate: f64,
    /// Mean duration of attempts above which an alert fires: 5 s.
    pub mean_latency: Duration,
    /// Minimum number of attempts for either: 10.
    pub min_calls: u32,
    /// Time after its end for which the same alert does not fire again: 5 minutes.
    pub cooldown: Duration,
    /// Webhook that receives alerts, in addition to the log.
    pub webhook: Option<WebhookSpec>,
}

impl Default for AlertsSpec {
    fn default() -> Self {
        Self {
            success_rate: 0.90,
            mean_latency: Duration::from_secs(5),
            min_calls: 10,
            cooldown: Duration::from_secs(300),
            webhook: None,
        }
    }
}

/// Receiver of alerts or approvals.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WebhookSpec {
    /// The URL.
    pub url: Template,
    /// Secret that messages are signed with; they are not signed if absent.
    pub secret: Option<Template>,
    /// More headers of every message.
    pub headers: BTreeMap<String, Template>,
}

/// Health of tools and servers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Health")]
pub(crate) struct HealthBody {
    /// Time for which attempts count; 5m by default.
    window: Field<Period>,
    /// Interval at which the `health_check_endpoint` of a tool is requested while the gateway runs; 1m by default.
    interval: Field<Period>,
    /// Time limit of a check of a tool or server; 5s by default.
    timeout: Field<Period>,
    /// Interval of the health check of each server while the gateway runs; never by default. A server's own
    /// `health_check_interval` overrides it.
    server_interval: Field<Period>,
}

/// Alerts to operators about tools and servers that are not healthy. Alerts always go to the log as well.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Alerts")]
pub(crate) struct AlertsBody {
    /// Share of successful attempts to call a tool or server below which an alert fires; 90% by default.
    success_rate: Field<Percent>,
    /// Mean duration of attempts above which an alert fires; 5s by default.
    mean_latency: Field<Period>,
    /// Minimum number of attempts in the window for either; 10 by default.
    min_calls: Field<u32>,
    /// Time after its end for which the same alert does not fire again; 5m by default.
    cooldown: Field<Period>,
    /// Webhook that receives alerts, in addition to the log.
    pub(crate) webhook: Field<WebhookBody>,
}

/// Receiver of messages: a POST request with a JSON body, according to Standard Webhooks.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Webhook", extend("required" = ["url"]))]
pub(crate) struct WebhookBody {
    /// The URL. Redirects are not followed.
    pub(crate) url: Field<String>,
    /// Secret that messages are signed with (HMAC-SHA256), such as `${secret:ALERTS}`; they are not signed by
    /// default.
    secret: Field<String>,
    /// More headers of every message, such as `Authorization: Bearer ${env:TOKEN}`.
    headers: Field<Entries<Text>>,
}

pub(crate) fn health(cx: Cx<'_>, body: HealthBody) -> HealthSpec {
    let mut health = HealthSpec::default();
    longer_than_zero(cx.words(), body.window, &mut health.window);
    longer_than_zero(cx.words(), body.interval, &mut health.interval);
    longer_than_zero(cx.words(), body.timeout, &mut health.timeout);
    health.server_interval =
        server_health::interval(cx, body.server_interval).filter(|period| !period.is_zero());
    health
}

pub(crate) fn alerts(cx: Cx<'_>, body: AlertsBody) -> AlertsSpec {
    let mut alerts = AlertsSpec::default();
    if let Some((at, Percent(share))) = body.success_rate.located() {
        if share >= 100.0 {
            let hint = "take less: an alert is over when half as many fail as may";
            cx.error(
                at,
                "with 100% every failure would raise an alert without an end",
                hint,
            );
        }
        alerts.success_rate = share / 100.0;
    }
    longer_than_zero(cx.words(), body.mean_latency, &mut alerts.mean_latency);
    at_least_one(
        cx.words(),
        body.min_calls,
        &mut alerts.min_calls,
        "write `1` for every call",
    );
    // Without one, an alert may come again at once.
    if let Some(Period(cooldown)) = body.cooldown.get() {
        alerts.cooldown = cooldown;
    }
    alerts.webhook = webhook(cx, body.webhook);
    alerts
}

/// Reads a webhook. `None` if it is not usable, which is then reported.
pub(crate) fn webhook(cx: Cx<'_>, field: Field<WebhookBody>) -> Option<WebhookSpec> {
    let (at, body) = field.located()?;
    if body.url.is_absent() {
        cx.key_error(at, "`url` is missing", "write `{url: https://..}`");
    }
    let (url_at, url) = body.url.located()?;
    if !["https://", "http://", "${"]
        .iter()
        .any(|start| url.starts_with(start))
    {
        cx.error(url_at, "a webhook is a URL with `https://` or `http://`", "");
        return None;
    }
    let secret = match body.secret.located() {
        Some((at, secret)) => {
            let secret = transport::parse(cx, at, &secret)?;
            if secret.references().next().is_none() {
                cx.warning(
                    at,
                    "the secret stands in the file for everyone to read",
                    "use `${env:NAME}`, `${file:PATH}` or `${secret:NAME}`",
                );
            }
            Some(secret)
        }
        None => None,
    };
    Some(WebhookSpec {
        url: transport::parse(cx, url_at, &url)?,
        secret,
        headers: transport::templates(cx, body.headers)?,
    })
}
