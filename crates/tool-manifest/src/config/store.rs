use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::Template;
use tool_settings::{Field, NodeId, Period};

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
    /// A directory of files that hold the tools, aliases and servers, fit for version control; a relative path begins in the
    /// directory of this file. Everything else, such as tokens and approvals, is kept in the database that `sqlite` or `postgres`
    /// names beside it; by default in `.toolplane/state.db` in the directory.
    files: Field<String>,
    /// `false` uses no store.
    enabled: Field<bool>,
    /// Figures of calls for each day, tool and principal, which `toolplane usage` shows.
    usage: Field<UsageBody>,
}

/// Figures of calls for each day, tool and principal, which `toolplane usage` shows.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Usage")]
pub(crate) struct UsageBody {
    /// `false` records nothing, and `true` also where no database is named. By default they are recorded if the configuration names
    /// a database or a directory of files.
    enabled: Field<bool>,
    /// Time for which figures are kept, in whole days; 90d by default.
    retention: Field<Period>,
}

/// Settings of the figures of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageSpec {
    /// `true` if figures are recorded; if absent, they are where the configuration names a store.
    pub enabled: Option<bool>,
    /// Number of days for which figures are kept: 90.
    pub retention_days: u32,
}

impl Default for UsageSpec {
    fn default() -> Self {
        Self {
            enabled: None,
            retention_days: 90,
        }
    }
}

impl UsageSpec {
    /// Returns `true` if figures are recorded with this store.
    #[must_use]
    pub fn is_recorded(&self, store: &StoreSpec) -> bool {
        match store {
            StoreSpec::Off => false,
            StoreSpec::UserData => self.enabled == Some(true),
            _ => self.enabled != Some(false),
        }
    }
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
    /// Files for tools, aliases and servers, and a database for everything else.
    Files {
        /// The directory of the files.
        directory: PathBuf,
        /// The database: [`StoreSpec::Sqlite`] or [`StoreSpec::Postgres`].
        state: Box<Self>,
    },
    /// No store.
    Off,
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Reads the settings of the figures of calls.
fn usage(cx: Cx<'_>, body: UsageBody) -> UsageSpec {
    let mut usage = UsageSpec {
        enabled: body.enabled.get(),
        ..UsageSpec::default()
    };
    if let Some((at, Period(period))) = body.retention.located() {
        let n_days = period.as_secs() / DAY.as_secs();
        if n_days == 0 || !(period - DAY * u32::try_from(n_days).unwrap_or(u32::MAX)).is_zero() {
            let hint = "write a number of days, such as `30d`";
            cx.error(at, "figures are kept for whole days, at least one", hint);
        }
        usage.retention_days = u32::try_from(n_days).unwrap_or(u32::MAX).max(1);
    }
    usage
}

/// Reads the store, and the settings of the figures that it keeps.
pub(crate) fn store(cx: Cx<'_>, mut body: StoreBody) -> (StoreSpec, UsageSpec) {
    let figures = std::mem::take(&mut body.usage).located();
    if let (Some((at, _)), Some(false)) = (&figures, body.enabled.as_ref()) {
        let message = "a store that is not enabled keeps no figures of calls";
        cx.key_error(*at, message, "remove `usage`, or `enabled: false`");
    }
    let usage = figures.map(|(_, body)| usage(cx, body)).unwrap_or_default();
    (place(cx, body), usage)
}

/// Reads where the store is.
fn place(cx: Cx<'_>, body: StoreBody) -> StoreSpec {
    let is_off = body.enabled.get() == Some(false);
    let (files, sqlite, postgres) = (
        body.files.located(),
        body.sqlite.located(),
        body.postgres.located(),
    );
    let places = [&files, &sqlite, &postgres].map(|place| place.as_ref().map(|(at, _)| *at));
    if let Some(at) = places.into_iter().flatten().next()
        && is_off
    {
        cx.key_error(
            at,
            "a store that is not enabled has no place",
            "remove it, or `enabled: false`",
        );
        return StoreSpec::Off;
    }
    let database = database(cx, sqlite, postgres);
    let Some((at, path)) = files else {
        return match database {
            None if is_off => StoreSpec::Off,
            database => database.unwrap_or_default(),
        };
    };
    if path.is_empty() {
        cx.error(
            at,
            "the path of the directory is empty",
            "write the path of a directory",
        );
        return StoreSpec::default();
    }
    let directory = cx.document.source.directory.join(path);
    let state = database.unwrap_or_else(|| StoreSpec::Sqlite(directory.join(".toolplane/state.db")));
    StoreSpec::Files {
        directory,
        state: Box::new(state),
    }
}

/// Reads the database of a store; `None` if the store names none.
fn database(
    cx: Cx<'_>,
    sqlite: Option<(NodeId, String)>,
    postgres: Option<(NodeId, String)>,
) -> Option<StoreSpec> {
    match (sqlite, postgres) {
        (Some((second, _)), Some(_)) => {
            cx.key_error(
                second,
                "a store is `sqlite` or `postgres`, not both",
                "remove one of them",
            );
            Some(StoreSpec::default())
        }
        (Some((at, path)), None) if path.is_empty() => {
            cx.error(
                at,
                "the path of the database is empty",
                "write the path of a file",
            );
            Some(StoreSpec::default())
        }
        (Some((_, path)), None) => Some(StoreSpec::Sqlite(cx.document.source.directory.join(path))),
        (None, Some((at, url))) => postgres_url(cx, at, &url).map(StoreSpec::Postgres),
        (None, None) => None,
    }
}

fn postgres_url(cx: Cx<'_>, at: NodeId, url: &str) -> Option<Template> {
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
