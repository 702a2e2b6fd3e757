use std::{borrow::Cow, fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error};

use crate::{
    SectionContext,
    field::{Field, Text},
    suggest,
};

/// A duration with its unit, such as `500ms`, `30s`, `1m`, `2h` or `1d`.
#[derive(Debug, Clone, Copy)]
pub struct Period(pub Duration);

/// A number of bytes: `1048576`, `512KiB`, `16MiB`, `1GiB`.
#[derive(Debug, Clone, Copy)]
pub struct ByteSize(pub usize);

/// A share in percent: `99.5%` or `99.5`.
#[derive(Debug, Clone, Copy)]
pub struct Percent(pub f64);

impl Period {
    /// Parses a duration.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        period(text).map(Self)
    }
}

impl ByteSize {
    /// Parses a number of bytes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        bytes(text).map(Self)
    }
}

fn period(text: &str) -> Option<Duration> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let amount: u64 = text[..at].parse().ok()?;
    let unit = match text[at..].trim_start() {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    amount.checked_mul(unit).map(Duration::from_millis)
}

fn bytes(text: &str) -> Option<usize> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let amount: usize = text[..at].parse().ok()?;
    let unit = match text[at..].trim_start() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    amount.checked_mul(unit)
}

fn percent(text: &str) -> Option<f64> {
    let number: f64 = text.strip_suffix('%').unwrap_or(text).trim().parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(number)
}

/// Reads a string with a parser. The second line of its error message is the hint.
///
/// # Errors
/// If there is no string, or the parser returns `None`.
pub fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl Fn(&str) -> Option<T>,
    what: impl fmt::Display,
    example: &str,
) -> Result<T, D::Error> {
    let Text(text) = Text::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| {
        let shown = suggest::shown(&text);
        D::Error::custom(format!("`{shown}` is no {what}\nwrite it like {example}"))
    })
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(
            deserializer,
            period,
            "time with its unit",
            "`500ms`, `30s` or `1m`",
        )
        .map(Self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, bytes, "number of bytes", "`1048576` or `16MiB`").map(Self)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, percent, "share of 0 to 100 percent", "`99.5%`").map(Self)
    }
}

macro_rules! schemas {
    ($($type:ident: $schema:tt;)*) => {$(
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

schemas! {
    Period: {"type": "string", "pattern": "^[0-9]+ *(ms|s|m|min|h|d)$"};
    ByteSize: {"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+ *(B|[KMG]iB|[kKMG]B)?$"};
    Percent: {"type": ["number", "string"], "minimum": 0, "maximum": 100};
}

/// Writes a number into a slot, if it is given. Reports 0 as an error.
pub fn at_least_one(cx: SectionContext<'_>, field: Field<u32>, slot: &mut u32, hint: &str) {
    if let Some((at, number)) = field.located() {
        if number == 0 {
            cx.error(at, "this must be at least 1", hint);
        }
        *slot = number;
    }
}

/// Writes a duration into a slot, if it is given. Reports 0 as an error.
pub fn longer_than_zero(cx: SectionContext<'_>, field: Field<Period>, slot: &mut Duration) {
    *slot = positive(cx, field).unwrap_or(*slot);
}

/// Returns a duration, if it is given. Reports 0 as an error.
#[must_use]
pub fn positive(cx: SectionContext<'_>, field: Field<Period>) -> Option<Duration> {
    let (at, Period(period)) = field.located()?;
    if period.is_zero() {
        cx.error(at, "this must be longer than 0", "leave it out for the usual one");
    }
    Some(period)
}
