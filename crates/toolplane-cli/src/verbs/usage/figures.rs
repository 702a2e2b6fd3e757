//! Lines of usage, as tables, JSON and comma-separated values.

use std::time::Duration;

use serde_json::{Map, Value};
use toolplane::{
    agent::AgentLimits,
    core::{UsageFigures, format_duration},
};

use crate::{
    command::UsageBy,
    output::{csv::csv, table::Table},
};

/// Figures of one line.
pub(super) struct Line {
    /// Values of its dimensions, in the order of [`Columns::by`].
    pub(super) names: Vec<String>,
    pub(super) figures: UsageFigures,
}

/// Columns of the lines.
pub(super) struct Columns<'a> {
    pub(super) by: &'a [UsageBy],
}

impl Columns<'_> {
    /// Returns all columns of a line with their names, for programs.
    pub(super) fn record(&self, line: &Line) -> Map<String, Value> {
        let names = self.by.iter().zip(&line.names);
        let names = names.map(|(by, name)| (name_of(*by).to_owned(), Value::from(name.as_str())));
        let figures = figures(&line.figures).into_iter();
        names
            .chain(figures.map(|(name, value)| (name.to_owned(), value)))
            .collect()
    }

    /// Returns the lines as comma-separated values (RFC 4180), with a header.
    pub(super) fn csv(&self, lines: &[Line]) -> String {
        let header = self.by.iter().map(|by| name_of(*by));
        let header = header.chain(figures(&UsageFigures::default()).map(|(name, _)| name));
        let rows = lines.iter().map(|line| {
            let figures = figures(&line.figures).map(|(_, value)| cell(&value));
            line.names.iter().cloned().chain(figures).collect()
        });
        csv(&header.collect::<Vec<_>>(), rows)
    }

    /// Adds the lines to a table for people, without the columns that are seldom read.
    pub(super) fn table(&self, table: Table, lines: &[Line]) -> Table {
        let header = self.by.iter().map(|by| name_of(*by).to_uppercase());
        let figures = [
            "CALLS", "ERRORS", "CACHED", "P50", "P95", "P99", "COST", "SAVED", "TOKENS",
        ];
        let header: Vec<String> = header.chain(figures.map(str::to_owned)).collect();
        table.header(header).rows(lines.iter().map(|line| {
            let figures = &line.figures;
            let cells = [
                figures.n_calls.to_string(),
                figures.n_errors.to_string(),
                figures.n_cached.to_string(),
                latency(figures, 50),
                latency(figures, 95),
                latency(figures, 99),
                dollars(figures.cost),
                saved(figures),
                tokens(figures.argument_bytes.saturating_add(figures.result_bytes)).to_string(),
            ];
            line.names.iter().cloned().chain(cells).collect::<Vec<_>>()
        }))
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

fn name_of(by: UsageBy) -> &'static str {
    match by {
        UsageBy::Day => "day",
        UsageBy::Tool => "tool",
        UsageBy::Version => "version",
        UsageBy::Server => "server",
        UsageBy::Principal => "principal",
        UsageBy::Tenant => "tenant",
    }
}

/// Returns the figures with their names, in the order of their columns. A duration that is not known is null.
fn figures(figures: &UsageFigures) -> [(&'static str, Value); 16] {
    let is_measured = figures.latencies.count() > 0;
    let measured = |time: Duration| {
        is_measured
            .then(|| milliseconds(time))
            .map_or(Value::Null, Value::from)
    };
    let percentile = |percent| measured(figures.latencies.percentile(percent));
    [
        ("calls", figures.n_calls.into()),
        ("errors", figures.n_errors.into()),
        ("cached", figures.n_cached.into()),
        ("attempts", figures.n_attempts.into()),
        ("mean_ms", measured(figures.mean_time())),
        ("p50_ms", percentile(50)),
        ("p95_ms", percentile(95)),
        ("p99_ms", percentile(99)),
        ("cost_usd", in_dollars(figures.cost).into()),
        ("saved_cost_usd", in_dollars(figures.saved_cost).into()),
        ("saved_ms", measured(figures.saved_time())),
        ("argument_bytes", figures.argument_bytes.into()),
        ("result_bytes", figures.result_bytes.into()),
        ("estimated_argument_tokens", tokens(figures.argument_bytes).into()),
        ("estimated_result_tokens", tokens(figures.result_bytes).into()),
        ("bytes_per_token", AgentLimits::BYTES_PER_TOKEN.into()),
    ]
}

fn latency(figures: &UsageFigures, percent: u64) -> String {
    match figures.latencies.count() {
        0 => String::new(),
        _ => format_duration(rounded(figures.latencies.percentile(percent))).to_string(),
    }
}

/// Rounds a duration to what its histogram can tell: about two digits.
fn rounded(time: Duration) -> Duration {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let unit = 10_u64.pow(micros.checked_ilog10().unwrap_or_default().saturating_sub(1));
    Duration::from_micros(micros.saturating_add(unit / 2) / unit * unit)
}

/// Returns the savings by a cache: money, or else time.
fn saved(figures: &UsageFigures) -> String {
    match figures.saved_cost {
        0 if figures.n_cached == 0 || figures.latencies.count() == 0 => String::new(),
        0 => format_duration(rounded(figures.saved_time())).to_string(),
        cost => dollars(cost),
    }
}

/// Formats a cost for people: nothing if there is none, else with at least two significant digits.
fn dollars(cost: u64) -> String {
    let amount = in_dollars(cost);
    match cost {
        0 => String::new(),
        10_000_000.. => format!("${amount:.2}"),
        _ => format!("${amount}"),
    }
}

fn in_dollars(cost: u64) -> f64 {
    cost as f64 / UsageFigures::COST_UNITS
}

fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(AgentLimits::BYTES_PER_TOKEN as u64)
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
