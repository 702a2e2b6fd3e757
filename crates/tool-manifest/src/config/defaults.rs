use std::{num::NonZeroUsize, path::Path};

use schemars::JsonSchema;
use serde::Deserialize;
use tool_settings::{ByteSize, Entries, Field, Period, SectionEntries, SectionLevel};

use crate::{
    ContainerSpec, Defaults, StartMode,
    document::place::Cx,
    servers::{
        environment,
        list_limits::{self, ListLimitsBody},
        server::refresh_interval,
    },
};

/// Settings of tools and servers that set none of their own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Defaults")]
pub(crate) struct DefaultsBody {
    /// Time limit of a whole call, queueing and retries included; 60s by default. A server or tool can override it.
    call_timeout: Field<Period>,
    /// Time limit of one attempt; 30s by default. A tool's `timeout_ms` wins.
    attempt_timeout: Field<Period>,
    /// Time limit of connecting; 5s by default.
    connect_timeout: Field<Period>,
    /// Time limit of a server's start; 20s by default.
    start_timeout: Field<Period>,
    /// Names of environment variables that are handed down to servers with a `command` where they are set: those of
    /// certificate authorities and proxies by default, none with `[]`. A server can override it.
    inherit_env: Field<Vec<Field<String>>>,
    /// Interval at which lists of servers are read again that announce no changes; 5m by default. A server can
    /// override it.
    refresh_interval: Field<Period>,
    /// Time at which servers are started; `lazy` by default. A server can override it.
    start: Field<StartMode>,
    /// Time for which a lazily started program may be unused before it is stopped, such as `15m`; it is started again
    /// when it is needed. By default it is not stopped, since servers may keep state. A server can override it.
    idle_timeout: Field<Period>,
    /// Maximum number of servers that start at the same time; 8 by default. Starts that a call waits for go first,
    /// and one of two and more is reserved for them.
    max_concurrent_starts: Field<u32>,
    /// Keeps the lists of servers on disk, without known secrets, and offers them before the servers run; on by
    /// default. A server can override it.
    keep_lists: Field<bool>,
    /// Interpreters that tools with code may name: absolute paths, by name. `bash`, `sh` and `python` are known without
    /// this; an entry for one of them replaces it.
    interpreters: Field<Entries<String>>,
    /// The engine that runs the tools of kind `docker`.
    container: Field<ContainerBody>,
    /// Maximum size of a result; 16MiB by default.
    max_result_bytes: Field<ByteSize>,
    #[serde(rename = "$defaults")]
    sections: SectionEntries,
    #[serde(rename = "$defaults-late")]
    late_sections: SectionEntries,
    /// Limits of the lists of servers. A server can override each of them.
    list_limits: Field<ListLimitsBody>,
}

/// The engine that runs the tools of kind `docker`: Docker, or podman by its API service.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Container")]
struct ContainerBody {
    /// Absolute path of its socket. Without it, `DOCKER_HOST` or `CONTAINER_HOST` name the socket, else the first of these that
    /// answers is used: `/var/run/docker.sock`, `/run/podman/podman.sock`, and those of the user's own Docker and podman.
    socket: Field<String>,
    /// Treatment of images that the engine does not have: with `never`, the default, the call fails; with `missing` they are
    /// pulled, without credentials and only for tools in files.
    pull: Field<PullWord>,
}

/// Treatment of images that the engine does not have.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ContainerPull")]
enum PullWord {
    /// The call fails, and says how to get the image.
    Never,
    /// They are pulled for tools in files.
    Missing,
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
    for (name, field) in body.interpreters.get().unwrap_or_default() {
        let Some((at, path)) = field.located() else {
            continue;
        };
        if !Path::new(&path).is_absolute() {
            cx.error(
                at,
                "the path of an interpreter is absolute",
                "write it from `/`, such as `/usr/bin/python3`",
            );
        }
        defaults.interpreters.insert(name, path.into());
    }
    if let Some(body) = body.container.get() {
        defaults.container = container(cx, body);
    }
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

fn container(cx: Cx<'_>, body: ContainerBody) -> ContainerSpec {
    let mut container = ContainerSpec::default();
    if let Some((at, path)) = body.socket.located() {
        let plain = path.strip_prefix("unix://").unwrap_or(&path);
        if !Path::new(plain).is_absolute() {
            cx.error(
                at,
                "the socket of an engine is an absolute path",
                "write it like `/var/run/docker.sock`; only an engine on this machine is used",
            );
        }
        container.socket = Some(plain.into());
    }
    container.pulls = matches!(body.pull.get(), Some(PullWord::Missing));
    container
}
