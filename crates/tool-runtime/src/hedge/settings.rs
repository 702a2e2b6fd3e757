use std::{borrow::Cow, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error};
use tool_core::{Setting, format_duration};
use tool_settings::{
    Field, Period, Section, SectionContext, SectionKeys, Text, ToolSettings, at_least_one, longer_than_zero,
    suggest,
};

use crate::HedgeLayer;

/// Settings of hedges: extra attempts at a call whose first attempt is slow. The first result counts.
///
/// Only tools that may run twice for one call, according to their operator, are hedged: see
/// [`CallContext::may_run_twice`](tool_core::CallContext::may_run_twice).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HedgeSettings {
    /// Delay before each further attempt.
    pub after: HedgeAfter,
    /// Maximum number of attempts in addition to the first.
    pub max: u32,
}

/// Delay before a hedge is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HedgeAfter {
    /// A fixed time.
    Time(Duration),
    /// A percentile of the durations of the tool's recent attempts, plus a tenth of it.
    Percentile {
        /// The percentile.
        percent: HedgePercent,
        /// Delay while too few attempts are known.
        at_first: Duration,
    },
}

/// Percentiles that [`HealthReport`](tool_core::HealthReport) has and that cause few attempts to be hedged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HedgePercent {
    /// One attempt in twenty takes longer.
    P95,
    /// One attempt in a hundred takes longer.
    P99,
}

impl HedgeSettings {
    /// Default delay while no durations of the tool are known.
    pub const AT_FIRST: Duration = Duration::from_secs(1);
    /// Largest possible [`HedgeSettings::max`]: more hedges add load without a benefit.
    pub const MOST: u32 = 3;

    /// Creates the settings of one hedge, after this delay.
    #[must_use]
    pub const fn new(after: HedgeAfter) -> Self {
        Self { after, max: 1 }
    }

    /// Sets the maximum number of attempts in addition to the first.
    #[must_use]
    pub fn with_max(mut self, max: u32) -> Self {
        self.max = max;
        self
    }
}

impl Setting for HedgeSettings {
    fn forks_calls(&self) -> bool {
        true
    }
}

impl HedgeLayer {
    /// The section `hedge` of a tool. Only a tool has it: a server or the defaults cannot declare that a tool may run
    /// twice.
    #[must_use]
    pub fn section() -> Section {
        Section::new().for_tools(SectionKeys::new(read))
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Keys {
    /// Hedging of the tool's slow attempts. For a tool that may run twice for one call.
    hedge: Field<HedgeBody>,
}

/// Hedging: if an attempt is slow, another attempt at the same call is sent. The first result counts, and the other
/// attempt is cancelled. Only for a tool that is declared `idempotent` or `read_only`. Hedges and retries share the
/// retry budget of an upstream.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Hedge")]
struct HedgeBody {
    /// Delay before a hedge is sent: a time, or `p95` or `p99`, that percentile of the tool's recent attempts plus a
    /// tenth. Default: `p95`.
    after: Field<After>,
    /// Delay while too few attempts are known for `p95` or `p99`. Default: 1s.
    at_first: Field<Period>,
    /// Maximum number of attempts in addition to the first, at most 3. Default: 1.
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

/// Reads the settings. Reports hedges of a tool that may not run twice, and a delay that exceeds the attempt's
/// timeout.
fn read(cx: SectionContext<'_>, keys: Keys, tool: &mut ToolSettings) {
    let Some((at, body)) = keys.hedge.located() else {
        return;
    };
    if tool.metadata.idempotent != Some(true) && tool.metadata.read_only != Some(true) {
        cx.error(
            at,
            "only a tool that may run twice for one call can have a `hedge`",
            "declare it `idempotent: true` or `read_only: true` if it is so, or remove this",
        );
    }
    let settings = settings(cx, body);
    if let (HedgeAfter::Time(after), Some(timeout)) = (settings.after, tool.timeout)
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
    tool.overrides.set(settings);
}

fn settings(cx: SectionContext<'_>, body: HedgeBody) -> HedgeSettings {
    let mut at_first = HedgeSettings::AT_FIRST;
    let at_first_place = body.at_first.given();
    longer_than_zero(cx, body.at_first, &mut at_first);
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
    at_least_one(cx, body.max, &mut max, hint);
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
