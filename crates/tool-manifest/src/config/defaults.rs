use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_settings::{ByteSize, Field, Period, SectionEntries, SectionLevel};

use crate::{
    Defaults, StartMode,
    document::place::Cx,
    servers::{
        environment,
        list_limits::{self, ListLimitsBody},
        server::refresh_interval,
    },
};

/// Limits for whatever sets none of its own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Defaults")]
pub(crate) struct DefaultsBody {
    /// How long a call may take in all, queueing and retries included; 60s if it is not given. That of a server or
    /// tool is in its place.
    call_timeout: Field<Period>,
    /// How long one attempt may take; 30s if it is not given. A tool's `timeout_ms` wins.
    attempt_timeout: Field<Period>,
    /// How long a connection may take; 5s if it is not given.
    connect_timeout: Field<Period>,
    /// How long a server may take to start; 20s if it is not given.
    start_timeout: Field<Period>,
    /// Names of environment variables that are handed down to servers with a `command` where they are set: those of
    /// certificate authorities and proxies if it is not given, none with `[]`. That of a server is in its place.
    inherit_env: Field<Vec<Field<String>>>,
    /// How often lists of servers are read again that tell of no changes; 5m if it is not given. That of a server is in its
    /// place.
    refresh_interval: Field<Period>,
    /// When servers are started; `lazy` if it is not given. That of a server is in its place.
    start: Field<StartMode>,
    /// How long nobody may have used a program that is started lazily before it is stopped, such as `15m`; it is started again
    /// when it is needed. It is not stopped if it is not given, since servers may hold what was done before. That of a server is
    /// in its place.
    idle_timeout: Field<Period>,
    /// How many servers are started at the same time; 8 if it is not given. Those that a call waits for go first, and of two
    /// and more one start is kept for them.
    max_concurrent_starts: Field<u32>,
    /// Whether the lists of servers are kept on disk, without known secrets, and offered before the servers run; they are if it
    /// is not given. That of a server is in its place.
    keep_lists: Field<bool>,
    /// How large a result may be; 16MiB if it is not given.
    max_result_bytes: Field<ByteSize>,
    #[serde(rename = "$defaults")]
    sections: SectionEntries,
    #[serde(rename = "$defaults-late")]
    late_sections: SectionEntries,
    /// Limits of the lists of servers. Those of a server are in their place, one by one.
    list_limits: Field<ListLimitsBody>,
}

pub(crate) fn defaults(cx: Cx<'_>, body: DefaultsBody) -> Defaults {
    let mut defaults = Defaults::default();
    for (field, limit) in [
        (body.call_timeout, &mut defaults.call_timeout),
        (body.attempt_timeout, &mut defaults.attempt_timeout),
        (body.connect_timeout, &mut defaults.connect_timeout),
        (body.start_timeout, &mut defaults.start_timeout),
    ] {
        let Some((at, Period(period))) = field.located() else {
            continue;
        };
        if period.is_zero() {
            cx.error(
                at,
                "a time limit must be longer than 0",
                "leave it out for the default",
            );
        }
        *limit = period;
    }
    if let Some(interval) = refresh_interval(cx, body.refresh_interval) {
        defaults.refresh_interval = interval;
    }
    defaults.start = body.start.get().unwrap_or(defaults.start);
    defaults.idle_timeout = body.idle_timeout.get().map(|Period(period)| period);
    if let Some((at, most)) = body.max_concurrent_starts.located() {
        match usize::try_from(most).ok().and_then(NonZeroUsize::new) {
            Some(most) => defaults.max_concurrent_starts = most,
            None => cx.error(
                at,
                "no server could ever be started",
                "leave it out for the usual 8",
            ),
        }
    }
    defaults.keep_lists = body.keep_lists.get().unwrap_or(defaults.keep_lists);
    defaults.inherit_env = environment::inherited(cx, body.inherit_env);
    if let Some((at, ByteSize(bytes))) = body.max_result_bytes.located() {
        if bytes == 0 {
            cx.error(at, "no result fits into 0 bytes", "leave it out for the default");
        }
        defaults.max_result_bytes = bytes;
    }
    let entries = [&body.sections, &body.late_sections];
    cx.sections
        .read(SectionLevel::Defaults, &cx, &entries, &mut defaults.overrides);
    defaults.list_limits = list_limits::list_limits(cx, body.list_limits).or(defaults.list_limits);
    defaults
}
