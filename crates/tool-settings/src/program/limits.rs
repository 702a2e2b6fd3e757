use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;
use tool_core::{Descriptor, PrepareError};

use crate::{ByteSize, Period};

/// Limits of each run.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "CodeLimits")]
#[non_exhaustive]
pub struct LimitSettings {
    /// Time; that of an attempt by default.
    #[serde(deserialize_with = "period")]
    pub wall_time: Option<Period>,
    /// Processor time of each process; `30s` by default.
    #[serde(deserialize_with = "period")]
    pub cpu_time: Option<Period>,
    /// Memory; `512MiB` by default.
    #[serde(deserialize_with = "size")]
    pub memory: Option<ByteSize>,
    /// Number of processes and threads; 64 by default.
    pub processes: Option<u32>,
    /// Number of open files of each process; 256 by default.
    pub open_files: Option<u32>,
    /// Size of each writable file system, such as the working directory and `/tmp`; `64MiB` by default.
    #[serde(deserialize_with = "size")]
    pub disk: Option<ByteSize>,
    /// Size of what is written to standard output, and to standard error; `1MiB` by default.
    #[serde(deserialize_with = "size")]
    pub output: Option<ByteSize>,
}

/// Limits of one run of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramLimits {
    /// Time after which the run is stopped.
    pub wall_time: Duration,
    /// Processor time of each process.
    pub cpu_time: Duration,
    /// Memory, in bytes.
    pub memory: u64,
    /// Number of processes and threads.
    pub processes: u32,
    /// Number of open files of each process.
    pub open_files: u32,
    /// Size of each writable file system, in bytes.
    pub disk: u64,
    /// Size of the standard output and of the standard error, in bytes each.
    pub output: u64,
}

impl Default for ProgramLimits {
    fn default() -> Self {
        Self {
            wall_time: Duration::from_secs(30),
            cpu_time: Duration::from_secs(30),
            memory: 512 << 20,
            processes: 64,
            open_files: 256,
            disk: 64 << 20,
            output: 1 << 20,
        }
    }
}

/// Number of processes that no tool of a store may exceed.
pub const MAX_STORED_PROCESSES: u32 = 256;
/// Limits that no tool of a store may exceed.
const MAX_STORED: [(&str, u64, &str); 5] = [
    ("memory", 2 << 30, "2GiB"),
    ("processes", MAX_STORED_PROCESSES as u64, "256"),
    ("open_files", 4_096, "4096"),
    ("disk", 1 << 30, "1GiB"),
    ("output", 16 << 20, "16MiB"),
];

impl ProgramLimits {
    /// Compiles the limits of a tool. `timeout` is that of an attempt of a tool that sets none, and `max_result_bytes` the
    /// maximum size of a result: neither can be exceeded.
    pub fn compile(
        written: &LimitSettings,
        descriptor: &Descriptor,
        timeout: Duration,
        max_result_bytes: usize,
        problems: &mut Vec<PrepareError>,
    ) -> Self {
        let attempt = descriptor.timeout.unwrap_or(timeout);
        let wall_time = written.wall_time.map(|period| period.0);
        let usual = Self::default();
        let limits = Self {
            // A longer time never has an effect: the attempt ends before.
            wall_time: wall_time.map_or(attempt, |own| own.min(attempt)),
            cpu_time: written.cpu_time.map_or(usual.cpu_time, |period| period.0),
            memory: written.memory.map_or(usual.memory, |size| size.0 as u64),
            processes: written.processes.unwrap_or(usual.processes),
            open_files: written.open_files.unwrap_or(usual.open_files),
            disk: written.disk.map_or(usual.disk, |size| size.0 as u64),
            output: written.output.map_or(usual.output, |size| size.0 as u64),
        };
        let limits = Self {
            output: limits.output.min(max_result_bytes as u64),
            ..limits
        };
        limits.check(descriptor.origin.is_stored, problems);
        limits
    }

    fn check(&self, is_stored: bool, problems: &mut Vec<PrepareError>) {
        for (key, limit) in [("wall_time", self.wall_time), ("cpu_time", self.cpu_time)] {
            if limit < Duration::from_millis(1) {
                let place = format!("/limits/{key}");
                problems.push(PrepareError::at(place, "a time limit must be longer than 0"));
            }
        }
        let sizes = [
            self.memory,
            self.processes.into(),
            self.open_files.into(),
            self.disk,
            self.output,
        ];
        for ((key, most, shown), value) in MAX_STORED.into_iter().zip(sizes) {
            let place = format!("/limits/{key}");
            if value == 0 {
                let problem = PrepareError::at(place, "nothing can run within a limit of 0");
                problems.push(problem.with_hint("leave it out for the default"));
            } else if value > most && is_stored {
                let problem = PrepareError::at(place, format!("a tool of a store gets at most {shown}"));
                problems.push(problem.with_hint("ask for less"));
            }
        }
    }
}

/// Reads a duration. The second line of its error message is the hint.
fn period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Period>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let period = Period::parse(&text);
    let wrong = || {
        D::Error::custom(format!(
            "`{text}` is no time with its unit\nwrite it like `500ms`, `30s` or `1m`"
        ))
    };
    period.map(Some).ok_or_else(wrong)
}

/// Reads a number of bytes, as [`period`] does.
fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteSize>, D::Error> {
    let text = match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let size = ByteSize::parse(&text);
    let wrong = || {
        D::Error::custom(format!(
            "`{text}` is no number of bytes\nwrite it like `1048576` or `16MiB`"
        ))
    };
    size.map(Some).ok_or_else(wrong)
}
