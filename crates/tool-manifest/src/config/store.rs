use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::Template;
use tool_settings::{Field, NodeId};

use crate::{document::place::Cx, servers::transport};

/// Store of tools with versions, tokens and approvals.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Store")]
pub(crate) struct StoreBody {
    /// The file of an SQLite database, created by the first change; a relative path begins in the directory of this file.
    /// By default `toolplane/toolplane.db` in `$XDG_DATA_HOME`, or in `~/.local/share`.
    sqlite: Field<String>,
    /// The URL of a PostgreSQL database, which several gateways can share, such as
    /// `postgres://toolplane@db.example.com/toolplane`. May refer to secrets by `${…}`.
    postgres: Field<String>,
    /// `false` uses no store.
    enabled: Field<bool>,
}

/// Store of tools with versions, tokens and approvals.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum StoreSpec {
    /// The SQLite database in the user's data directory.
    #[default]
    UserData,
    /// An SQLite database in this file.
    Sqlite(PathBuf),
    /// A PostgreSQL database at this URL.
    Postgres(Template),
    /// No store.
    Off,
}

pub(crate) fn store(cx: Cx<'_>, body: StoreBody) -> StoreSpec {
    let is_off = body.enabled.get() == Some(false);
    match (body.sqlite.located(), body.postgres.located()) {
        (Some((second, _)), Some(_)) => {
            cx.key_error(
                second,
                "a store is `sqlite` or `postgres`, not both",
                "remove one of them",
            );
            StoreSpec::default()
        }
        (Some((second, _)), None) | (None, Some((second, _))) if is_off => {
            cx.key_error(
                second,
                "a store that is not enabled has no place",
                "remove it, or `enabled: false`",
            );
            StoreSpec::Off
        }
        (Some((at, path)), None) if path.is_empty() => {
            cx.error(
                at,
                "the path of the database is empty",
                "write the path of a file",
            );
            StoreSpec::default()
        }
        (Some((_, path)), None) => StoreSpec::Sqlite(cx.document.source.directory.join(path)),
        (None, Some((at, url))) => postgres(cx, at, &url)
            .map(StoreSpec::Postgres)
            .unwrap_or_default(),
        (None, None) if is_off => StoreSpec::Off,
        (None, None) => StoreSpec::default(),
    }
}

fn postgres(cx: Cx<'_>, at: NodeId, url: &str) -> Option<Template> {
    let template = transport::parse(cx, at, url)?;
    let is_url = ["postgres://", "postgresql://", "${"]
        .iter()
        .any(|start| url.starts_with(start));
    if !is_url {
        cx.error(
            at,
            "this is no URL of a PostgreSQL database",
            "write `postgres://user@host/database`",
        );
        return None;
    }
    Some(template)
}
