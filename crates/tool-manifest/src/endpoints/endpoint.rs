use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{DefinitionPolicy, Overrides, PinMode};
use tool_settings::{Entries, Field, NodeId, Period, SectionEntries, SectionLevel, Text};

use crate::{
    EndpointSpec, ServerTransport,
    config::call_timeout,
    document::{lists::patterns, place::Cx},
    servers::{
        list_limits::{self, DefinitionsWord, ListLimitsBody, PinWord},
        server::{check_name, milliseconds, prefix, refresh_interval},
        transport::{self, Written},
    },
};

/// A command endpoint: a program that reads one JSON request from standard input and writes one JSON value to standard output,
/// as the okso runtime calls it. It is started for each request, without a shell.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Endpoint", extend("required" = ["command"]))]
pub(crate) struct EndpointBody {
    /// The program to start. `${…}` references are resolved when it is started.
    command: Field<String>,
    /// Its arguments.
    args: Field<Vec<Field<Text>>>,
    /// Variables for its environment, such as `TOKEN: ${env:TOKEN}`. Other variables are not handed down, except for those that
    /// a process needs to start and those of `inherit_env`.
    env: Field<Entries<Text>>,
    /// Names of environment variables that are handed down to it where they are set, instead of those that `defaults` names;
    /// none with `[]`.
    inherit_env: Field<Vec<Field<String>>>,
    /// The directory to start it in, relative to this file.
    cwd: Field<String>,
    /// Time limit of one attempt, in milliseconds.
    timeout_ms: Field<u64>,
    /// Time limit of a whole call of its tools, queueing and retries included, instead of the one in `defaults`.
    call_timeout: Field<Period>,
    /// Time limit of a list of its tools, in milliseconds, instead of `start_timeout` in `defaults`.
    list_timeout_ms: Field<u64>,
    #[serde(rename = "$server")]
    sections: SectionEntries,
    /// The only tools to offer, by the endpoint's own names; `*` stands for any characters.
    include: Field<Vec<Field<String>>>,
    /// Tools not to offer, by the endpoint's own names; `*` stands for any characters.
    exclude: Field<Vec<Field<String>>>,
    /// Prefix of the names of tools; the endpoint's name and `__` by default. An empty text means no prefix.
    prefix: Field<String>,
    /// Takes the endpoint out of use.
    disabled: Field<bool>,
    /// Interval at which its list is read again, instead of the one in `defaults`.
    refresh_interval: Field<Period>,
    #[serde(rename = "$server-late")]
    late_sections: SectionEntries,
    /// Handling of its suspicious definitions, instead of `policy.definitions`.
    definitions: Field<DefinitionsWord>,
    /// Pins of its definitions, instead of `policy.pin`.
    pin: Field<PinWord>,
    /// Limits of its list, instead of those in `defaults`.
    list_limits: Field<ListLimitsBody>,
}

/// Reads an endpoint. Returns `None` if it is not usable, which is then reported.
pub(crate) fn endpoint(cx: Cx<'_>, name: &str, at: NodeId, body: EndpointBody) -> Option<EndpointSpec> {
    check_name(cx, name, at, "endpoint");
    let include = body.include.given().is_some().then(|| patterns(body.include));
    let timeout_at = body.timeout_ms.given();
    let timeout = milliseconds(cx, body.timeout_ms);
    let mut overrides = Overrides::default();
    overrides.call_timeout = call_timeout::call_timeout(cx, body.call_timeout);
    let entries = [&body.sections, &body.late_sections];
    cx.sections
        .read(SectionLevel::Server, &cx, &entries, &mut overrides);
    call_timeout::outlasted(cx, timeout_at, timeout, overrides.call_timeout);
    let list_timeout = milliseconds(cx, body.list_timeout_ms);
    let prefix = prefix(cx, body.prefix);
    let refresh_interval = refresh_interval(cx, body.refresh_interval);
    let list_limits = list_limits::list_limits(cx, body.list_limits);
    if body.command.is_absent() {
        cx.key_error(at, "the endpoint has no `command` to start", "add `command: ..`");
        return None;
    }
    let written = Written {
        command: body.command,
        args: body.args,
        env: body.env,
        inherit_env: body.inherit_env,
        cwd: body.cwd,
        ..Written::default()
    };
    let ServerTransport::Stdio {
        command,
        args,
        env,
        inherit_env,
        cwd,
        env_file: _,
    } = transport::process(cx, written)?
    else {
        return None;
    };
    Some(EndpointSpec {
        origin: cx.place(at).origin(),
        args,
        env,
        inherit_env,
        cwd,
        timeout,
        list_timeout,
        overrides,
        include,
        exclude: patterns(body.exclude),
        prefix,
        disabled: body.disabled.get().unwrap_or_default(),
        refresh_interval,
        definitions: body.definitions.get().map(DefinitionPolicy::from),
        pin: body.pin.get().map(PinMode::from),
        list_limits,
        ..EndpointSpec::new(name, command)
    })
}
