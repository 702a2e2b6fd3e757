use std::{borrow::Cow, fmt, net::SocketAddr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error};

use crate::field::Text;

/// A time with its unit, such as `500ms`, `30s`, `1m`, `2h` or `1d`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Period(pub(crate) Duration);

/// A number of bytes: `1048576`, `512KiB`, `16MiB`, `1GiB`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes(pub(crate) usize);

/// A share in percent: `99.5%` or `99.5`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Percent(pub(crate) f64);

/// An address to listen on: `127.0.0.1:7080`, `[::1]:7080`, `localhost:7080`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listen(pub(crate) SocketAddr);

impl Period {
    /// The time that a text says.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        period(text).map(Self)
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

fn listen(text: &str) -> Option<SocketAddr> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => Cow::from(format!("127.0.0.1:{port}")),
        None => Cow::from(text),
    };
    numeric.parse().ok()
}

/// Reads a text by a parser; the failure's second line is the hint.
fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl Fn(&str) -> Option<T>,
    what: impl fmt::Display,
    example: &str,
) -> Result<T, D::Error> {
    let Text(text) = Text::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| {
        let shown = crate::suggest::shown(&text);
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

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, bytes, "number of bytes", "`1048576` or `16MiB`").map(Self)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, percent, "share of 0 to 100 percent", "`99.5%`").map(Self)
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let example = "`127.0.0.1:7080` or `[::1]:7080`";
        parsed(deserializer, listen, "address with a port", example).map(Self)
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
    Bytes: {"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+ *(B|[KMG]iB|[kKMG]B)?$"};
    Percent: {"type": ["number", "string"], "minimum": 0, "maximum": 100};
    Listen: {"type": "string"};
}
