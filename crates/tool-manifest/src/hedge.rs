use std::{borrow::Cow, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error};
use tool_core::{HedgeAfter, HedgePercent, HedgeSettings, Metadata, format_duration};

use crate::{
    field::{Field, Text},
    overrides::{count, period},
    place::Cx,
    suggest,
    units::Period,
};

/// When a slow attempt gets company: a second attempt at the same call. The first answer counts, and the other attempt is
/// cancelled. Only for a tool that is declared `idempotent` or `read_only`; hedges and retries share what an upstream can bear.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Hedge")]
pub(crate) struct HedgeBody {
    /// How long the first attempt is alone: a time, or `p95` or `p99`, as long as that share of the tool's attempts took
    /// lately and a tenth more; `p95` if it is not given.
    after: Field<After>,
    /// How long it is alone while too few attempts are known for `p95` or `p99`; 1s if it is not given.
    at_first: Field<Period>,
    /// How many attempts may be made beside the first, of 3 at most; 1 if it is not given.
    max: Field<u32>,
}

/// A time with its unit, or a percentile.
#[derive(Debug, Clone, Copy)]
enum After {
    Time(Duration),
    Percentile(HedgePercent),
}

impl<'de> Deserialize<'de> for After {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        match &*text {
            "p95" => Ok(Self::Percentile(HedgePercent::P95)),
            "p99" => Ok(Self::Percentile(HedgePercent::P99)),
            text => match Period::parse(text) {
                Some(Period(time)) => Ok(Self::Time(time)),
                None => {
                    let shown = suggest::shown(text);
                    Err(D::Error::custom(format!(
                        "`{shown}` is neither a time with its unit nor a percentile\nwrite it like `200ms` or `p95`"
                    )))
                }
            },
        }
    }
}

impl JsonSchema for After {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "After".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^(p95|p99|[0-9]+ *(ms|s|m|min|h|d))$"})
    }
}

/// Makes settings from what a file says of a tool, and reports those of a tool that may not run twice, and a hedge that no
/// attempt lives to see.
pub(crate) fn hedge(
    cx: Cx<'_>,
    field: Field<HedgeBody>,
    metadata: &Metadata,
    timeout: Option<Duration>,
) -> Option<HedgeSettings> {
    let (at, body) = field.located()?;
    if metadata.idempotent != Some(true) && metadata.read_only != Some(true) {
        cx.error(
            at,
            "only a tool that may run twice for one call can have a `hedge`",
            "declare it `idempotent: true` or `read_only: true` if it is so, or remove this",
        );
    }
    let settings = settings(cx, body);
    if let (HedgeAfter::Time(after), Some(timeout)) = (settings.after, timeout)
        && after >= timeout
    {
        cx.error(
            at,
            format!(
                "an attempt is over after {}: it never gets company",
                format_duration(timeout)
            ),
            "let `after` be shorter than `timeout_ms`",
        );
    }
    Some(settings)
}

fn settings(cx: Cx<'_>, body: HedgeBody) -> HedgeSettings {
    let mut at_first = HedgeSettings::AT_FIRST;
    let at_first_place = body.at_first.given();
    period(cx, body.at_first, &mut at_first);
    let after = match body.after.located() {
        Some((at, After::Time(after))) => {
            if after.is_zero() {
                cx.error(
                    at,
                    "this must be longer than 0",
                    "leave it out for that of most attempts",
                );
            }
            if let Some(place) = at_first_place {
                let hint = "remove it: `after` holds from the beginning";
                cx.error(place, "`at_first` belongs to `p95` and `p99`", hint);
            }
            HedgeAfter::Time(after)
        }
        Some((_, After::Percentile(percent))) => HedgeAfter::Percentile { percent, at_first },
        None => HedgeAfter::Percentile {
            percent: HedgePercent::P95,
            at_first,
        },
    };
    let mut max = 1;
    let max_place = body.max.given();
    let hint = "remove the whole of `hedge` for calls without hedges";
    count(cx, body.max, &mut max, hint);
    if let Some(at) = max_place.filter(|_| max > HedgeSettings::MOST) {
        let most = HedgeSettings::MOST;
        cx.error(
            at,
            format!("this must be at most {most}"),
            "1 is nearly as good as more",
        );
    }
    HedgeSettings { after, max }
}
