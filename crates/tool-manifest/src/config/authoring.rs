use schemars::JsonSchema;
use serde::Deserialize;
use tool_settings::{ByteSize, Field, NetworkHosts, at_least_one, suggest};

use crate::document::{lists::items, place::Cx};

/// Settings of tools that agents make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthoringSpec {
    /// `true` if agents may make tools.
    pub enabled: bool,
    /// `true` if clients are also offered `execute`, one meta-tool for everything.
    pub execute: bool,
    /// Hosts that tools of agents may reach.
    pub hosts: NetworkHosts,
    /// Kinds of executors that tools of agents may have. `None` allows all of [`AuthoringSpec::KINDS`].
    pub kinds: Option<Vec<String>>,
    /// Limits of each agent.
    pub quotas: AuthoringQuotas,
}

/// Limits of what one agent makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthoringQuotas {
    /// Number of drafts: 20.
    pub drafts: u32,
    /// Number of published versions, the yanked ones included: 200.
    pub versions: u32,
    /// Size of all versions and drafts, in bytes: 8 MiB.
    pub bytes: usize,
    /// Number of test runs per hour: 120.
    pub tests_per_hour: u32,
}

impl Default for AuthoringQuotas {
    fn default() -> Self {
        Self {
            drafts: 20,
            versions: 200,
            bytes: 8 << 20,
            tests_per_hour: 120,
        }
    }
}

impl AuthoringSpec {
    /// Kinds of executors of the tools that agents can make.
    pub const KINDS: &'static [&'static str] = &["bash", "docker", "http", "mcp", "python", "workflow"];
    /// Permission to create, test and delete drafts.
    pub const CREATE: &'static str = "tools.create";
    /// Permission to publish drafts without an approval.
    pub const PUBLISH: &'static str = "tools.publish";
    /// Meta-tools by which agents make tools.
    pub const META_TOOLS: &'static [&'static str] = &[
        "tool_create",
        "tool_delete",
        "tool_publish",
        "tool_rollback",
        "tool_test",
        "tool_update",
    ];
    /// Kind of the executor of these meta-tools.
    pub const KIND: &'static str = "authoring";
    /// Meta-tool for everything.
    pub const EXECUTE: &'static str = "execute";

    /// Returns `true` if tools of agents may have an executor of this kind.
    #[must_use]
    pub fn allows_kind(&self, kind: &str) -> bool {
        match &self.kinds {
            Some(kinds) => kinds.iter().any(|known| known == kind),
            None => Self::KINDS.contains(&kind),
        }
    }

    /// Returns the kinds that tools of agents may have.
    #[must_use]
    pub fn allowed_kinds(&self) -> Vec<&str> {
        match &self.kinds {
            Some(kinds) => kinds.iter().map(String::as_str).collect(),
            None => Self::KINDS.to_vec(),
        }
    }
}

/// Tools that agents make: the meta-tools `tool_create`, `tool_update`, `tool_test`, `tool_publish`, `tool_rollback` and
/// `tool_delete`, for principals with the permission `tools.create`. Needs a store.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Authoring")]
pub(crate) struct AuthoringBody {
    /// Lets agents make tools; off by default.
    enabled: Field<bool>,
    /// Offers `execute` as well, one meta-tool that searches, makes and calls tools: `item_type`, `action`, `item_id` and
    /// `parameters`. Off by default.
    execute: Field<bool>,
    /// Hosts that tools of agents may reach, such as `api.example.com` and `*.example.com`; none by default. An address of a
    /// private network or of this machine may be reached only if it is written here.
    hosts: Field<NetworkHosts>,
    /// Kinds of the tools that agents may make: `bash`, `docker`, `http`, `mcp`, `python` and `workflow`; all by default.
    kinds: Field<Vec<Field<String>>>,
    /// Limits of each principal.
    quotas: Field<QuotasBody>,
}

/// Limits of what one principal makes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "AuthoringQuotas")]
struct QuotasBody {
    /// Number of drafts; 20 by default.
    drafts: Field<u32>,
    /// Number of published versions, the yanked ones included; 200 by default.
    versions: Field<u32>,
    /// Size of all its versions and drafts; 8 MiB by default.
    bytes: Field<ByteSize>,
    /// Number of test runs per hour; 120 by default.
    tests_per_hour: Field<u32>,
}

pub(crate) fn authoring(cx: Cx<'_>, body: AuthoringBody) -> AuthoringSpec {
    let mut quotas = AuthoringQuotas::default();
    if let Some(written) = body.quotas.get() {
        let hint = "to forbid it, remove the permission `tools.create`";
        at_least_one(cx.words(), written.drafts, &mut quotas.drafts, hint);
        at_least_one(cx.words(), written.versions, &mut quotas.versions, hint);
        at_least_one(
            cx.words(),
            written.tests_per_hour,
            &mut quotas.tests_per_hour,
            hint,
        );
        if let Some(ByteSize(bytes)) = written.bytes.get() {
            quotas.bytes = bytes;
        }
    }
    let is_given = body.kinds.given().is_some();
    let kinds: Vec<_> = items(body.kinds).filter_map(Field::located).collect();
    for (at, kind) in &kinds {
        if !AuthoringSpec::KINDS.contains(&kind.as_str()) {
            let message = format!("agents cannot make tools of kind `{}`", suggest::shown(kind));
            cx.error(*at, message, suggest::value(kind, AuthoringSpec::KINDS));
        }
    }
    AuthoringSpec {
        enabled: body.enabled.get().unwrap_or_default(),
        execute: body.execute.get().unwrap_or_default(),
        hosts: body.hosts.get().unwrap_or_default(),
        kinds: is_given.then(|| kinds.into_iter().map(|(_, kind)| kind).collect()),
        quotas,
    }
}
