//! Settings of a tool: a closed set.

use std::{borrow::Cow, collections::BTreeMap};

use raw_json::RawJson;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;
use tool_core::PrepareError;
use tool_settings::{
    keep_readable, pointer,
    program::{LimitSettings, OutputFormat},
    suggest,
};

/// Settings of a `docker` tool: a command in a container, with Docker or podman.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DockerTool")]
pub(crate) struct DockerBody {
    /// The image, by the digest of its manifest such as `alpine@sha256:…`, or by its id `sha256:…` if it was made on this
    /// machine. It is pulled only if `container` in `defaults` says so.
    pub(crate) image: Option<String>,
    /// The program and its arguments, instead of those of the image: a list, which no shell reads. Arguments of the call are in
    /// its environment and, as a JSON object, on its standard input; they are never part of it.
    pub(crate) command: Option<Argv>,
    /// Arguments for the program of the image, or further ones for `command`.
    pub(crate) args: Option<Argv>,
    /// Working directory, an absolute path in the image; that of the image by default.
    pub(crate) workdir: Option<String>,
    /// User and group as numbers, such as `1000` or `1000:1000`; `65534:65534` by default. It is never 0.
    pub(crate) user: Option<String>,
    /// Runs the program below a small first process, which ends orphans; on by default. The engine needs `tini` or `catatonit`
    /// for it.
    pub(crate) init: Option<bool>,
    /// Form of the result on standard output: `text` by default, without line breaks at its end, or `json`.
    pub(crate) output: OutputFormat,
    /// Error kinds by exit code, such as `{3: not_found}`. Without an entry, 64 and 65 are `invalid_arguments`, 69 and 75
    /// `unavailable`, and other codes than 0 `upstream_error`.
    pub(crate) exit_codes: BTreeMap<String, String>,
    /// Limits of each run.
    pub(crate) limits: LimitSettings,
    /// Number of processors that all processes together may use, such as `0.5`; 1 by default.
    pub(crate) cpus: Option<f64>,
    /// Network access: `off`, since a container has none.
    pub(crate) network: NoNetwork,
    /// Environment variables of the program. Values may refer to secrets by `${…}`.
    pub(crate) env: BTreeMap<String, String>,
}

/// List of a program's arguments.
#[derive(Debug, Clone, Default, JsonSchema)]
#[schemars(transparent, inline)]
pub(crate) struct Argv(pub(crate) Vec<String>);

/// The only network access of a container.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoNetwork;

impl<'de> Deserialize<'de> for Argv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const WRONG: &str = "expected a list of texts, since no shell splits a command\n\
                             write it like `[sort, --reverse]`, or `[sh, -c, ..]` if the image has a shell";
        let Value::Array(items) = Value::deserialize(deserializer)? else {
            return Err(D::Error::custom(WRONG));
        };
        let texts = items.into_iter().map(|item| match item {
            Value::String(text) if text.contains('\0') => {
                Err(D::Error::custom("an argument has no NUL character"))
            }
            Value::String(text) => Ok(text),
            Value::Number(number) => Ok(number.to_string()),
            _ => Err(D::Error::custom(WRONG)),
        });
        texts.collect::<Result<_, _>>().map(Self)
    }
}

impl<'de> Deserialize<'de> for NoNetwork {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(word) if word == "off" => Ok(Self),
            Value::Array(hosts) if hosts.is_empty() => Ok(Self),
            _ => Err(D::Error::custom(
                "a container has no network, since an engine cannot limit it to hosts\n\
                 leave it out; a tool of kind `bash` or `python` can reach the hosts that it names",
            )),
        }
    }
}

impl JsonSchema for NoNetwork {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NoNetwork".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"const": "off"})
    }
}

/// Options of engines that would give a container something of the host, each with its reason.
const REFUSED: [(&[&str], &str); 9] = [
    (
        &[
            "privileged",
            "cap_add",
            "capabilities",
            "security_opt",
            "sysctls",
            "userns",
            "userns_mode",
            "group_add",
        ],
        "a container has no privileges: all capabilities are dropped, and none can be gained",
    ),
    (
        &[
            "volumes",
            "volume",
            "mounts",
            "mount",
            "binds",
            "bind",
            "volumes_from",
            "tmpfs",
        ],
        "a container sees no path of the host: it has `/tmp` of limited size, and data comes by arguments",
    ),
    (
        &[
            "devices",
            "device",
            "gpus",
            "device_requests",
            "device_cgroup_rules",
            "runtime",
        ],
        "a container has no devices of the host",
    ),
    (
        &[
            "pid",
            "pid_mode",
            "ipc",
            "ipc_mode",
            "uts",
            "uts_mode",
            "cgroupns",
            "cgroup_parent",
        ],
        "a container shares no namespace with the host or with another container",
    ),
    (
        &[
            "network_mode",
            "net",
            "networks",
            "ports",
            "publish",
            "expose",
            "extra_hosts",
            "dns",
            "links",
        ],
        "a container has no network",
    ),
    (
        &["read_only", "readonly", "readonly_rootfs"],
        "the root file system is always read-only",
    ),
    (
        &[
            "restart",
            "detach",
            "name",
            "auto_remove",
            "rm",
            "healthcheck",
            "logging",
            "log_driver",
        ],
        "each call has a container of its own, which is removed at its end",
    ),
    (
        &["pull", "platform", "build", "dockerfile"],
        "the operator decides which images are there",
    ),
    (
        &["socket", "host", "docker_host"],
        "the engine is that of the operator, who names its socket under `container` in `defaults`",
    ),
];

/// Returns the JSON Schema of the settings.
pub(crate) fn schema() -> RawJson {
    RawJson::from(schema_for!(DockerBody).to_value())
}

/// Reads the settings. Keys that cannot be read are reported and keep their defaults.
pub(crate) fn read(config: &Value, problems: &mut Vec<PrepareError>) -> DockerBody {
    let Value::Object(members) = config else {
        problems.push(PrepareError::at(
            "",
            "the settings of a container must be an object",
        ));
        return DockerBody::default();
    };
    let mut members = members.clone();
    members.retain(|key, _| {
        let normal = suggest::normal(key);
        let is_meant = |known: &&str| suggest::normal(known) == normal;
        let refused = REFUSED.iter().find(|(keys, _)| keys.iter().any(is_meant));
        if let Some((_, reason)) = refused {
            let message = format!("`{}` is not possible here: {reason}", key.escape_debug());
            let problem = PrepareError::at(pointer("", key), message);
            problems.push(problem.with_hint("remove it"));
        }
        refused.is_none()
    });
    if let Some(Value::Object(limits)) = members.get_mut("limits") {
        keep_readable::<LimitSettings>(limits, "/limits", nearest, problems);
    }
    keep_readable::<DockerBody>(&mut members, "", nearest, problems);
    serde_json::from_value(Value::Object(members)).unwrap_or_else(|error| {
        problems.push(PrepareError::at("", error.to_string()));
        DockerBody::default()
    })
}

/// Returns the known name that was probably meant.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let meant = match suggest::normal(name).as_str() {
        "entrypoint" | "cmd" | "script" | "run" => "command",
        "argv" | "arguments" => "args",
        "environment" | "variables" => "env",
        "cwd" | "workingdir" | "workingdirectory" | "directory" => "workdir",
        "cpu" | "nanocpus" => "cpus",
        "memory" | "pidslimit" | "timeout" => "limits",
        _ => name,
    };
    suggest::nearest(meant, known)
}
