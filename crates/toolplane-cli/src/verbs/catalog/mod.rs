//! `toolplane catalog`: tools and servers that others share.

mod added;
mod fetch;
mod find;
mod install;
mod needs;
mod settings;
mod show;
mod source;

use toolplane::catalog::{CatalogError, CatalogErrorKind};

pub(super) use self::needs::needs_of_tool;
use crate::{
    command::{Catalog, Options},
    error::CliError,
    exit::Exit,
    output::Console,
    process::runtime::block_on,
};

pub(crate) fn run(options: &Options, verb: &Catalog, console: Console) -> Result<Exit, CliError> {
    block_on(async {
        match verb {
            Catalog::Add(add) => added::add(add, console).await,
            Catalog::Ls => added::list(console),
            Catalog::Remove { name } => added::remove(name, console),
            Catalog::Search { query, catalog } => find::search(query, catalog.as_deref(), console).await,
            Catalog::Show { entry } => show::run(entry, console).await,
            Catalog::Install(install) => install::run(options, install, console).await,
        }
    })
}

impl From<CatalogError> for CliError {
    fn from(error: CatalogError) -> Self {
        let (exit, kind) = match error.kind() {
            CatalogErrorKind::NotFound => (Exit::NotFound, "not_found"),
            CatalogErrorKind::Mismatch => (Exit::ToolChanged, "tool_changed"),
            CatalogErrorKind::Signature => (Exit::Denied, "signature"),
            CatalogErrorKind::Unavailable => (Exit::Unavailable, "unavailable"),
            _ => (Exit::Usage, "invalid"),
        };
        let failure = Self::new(exit, kind, error.to_string());
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}
