//! Reading of added catalogs, wherever they are.

use std::path::Path;

use toolplane::catalog::{
    Bundle, CatalogDirectory, CatalogEntry, CatalogError, CatalogErrorKind, CatalogIndex, CatalogKey,
    MAX_BUNDLE_BYTES, MAX_INDEX_BYTES, MAX_SIGNATURE_BYTES, SignatureCheck,
};

use super::{
    fetch::{HttpCatalog, base_url},
    settings::{AddedCatalog, AddedCatalogs},
};
use crate::{
    error::CliError,
    output::{Console, text},
};

/// Name of the index in a catalog.
const INDEX: &str = "index.json";

/// Catalog whose index was read.
pub(super) struct OpenCatalog {
    pub(super) name: String,
    pub(super) index: CatalogIndex,
    pub(super) key: Option<CatalogKey>,
    files: CatalogFiles,
}

enum CatalogFiles {
    Directory(CatalogDirectory),
    Http(HttpCatalog),
}

/// Bundle of an entry, with the result of its checks.
pub(super) struct CheckedBundle {
    pub(super) bundle: Bundle,
    pub(super) signature: SignatureCheck,
}

impl OpenCatalog {
    /// Opens a catalog and reads its index.
    pub(super) async fn open(name: &str, added: &AddedCatalog, console: Console) -> Result<Self, CliError> {
        let key = match &added.key {
            Some(key) => Some(key.parse::<CatalogKey>()?),
            None => None,
        };
        let opened = async {
            let Some(base) = base_url(&added.place)? else {
                let directory = CatalogDirectory::open(Path::new(&added.place))?;
                let (index, problems) = directory.index()?;
                for problem in problems {
                    console.warn(&format!(
                        "left out of the catalog `{name}`: {}",
                        text::line(&problem.to_string())
                    ));
                }
                return Ok((CatalogFiles::Directory(directory), index));
            };
            let http = HttpCatalog::open(base).await?;
            let content = http.read(INDEX, MAX_INDEX_BYTES).await?;
            let content = content.ok_or_else(|| {
                CatalogError::new(CatalogErrorKind::NotFound, &added.place, "it has no `index.json`")
                    .with_hint("`toolplane export` writes one")
            })?;
            Ok::<_, CliError>((CatalogFiles::Http(http), CatalogIndex::parse(INDEX, &content)?))
        };
        let (files, index) = opened.await.map_err(|error| of_catalog(name, error))?;
        Ok(Self {
            name: name.to_owned(),
            index,
            key,
            files,
        })
    }

    async fn read(&self, path: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, CatalogError> {
        match &self.files {
            CatalogFiles::Directory(directory) => directory.read(path, max_bytes),
            CatalogFiles::Http(http) => http.read(path, max_bytes).await,
        }
    }

    /// Reads the bundle of an entry, and checks its signature, its name, its version and its digest.
    pub(super) async fn bundle(&self, entry: &CatalogEntry) -> Result<CheckedBundle, CliError> {
        let checked = async {
            let content = self.read(&entry.place, MAX_BUNDLE_BYTES).await?;
            let content = content.ok_or_else(|| {
                CatalogError::new(
                    CatalogErrorKind::NotFound,
                    &entry.place,
                    "the catalog has no such file",
                )
                .with_hint("the catalog is incomplete: ask whoever publishes it")
            })?;
            let mut beside = Vec::new();
            if let Some(key) = &self.key {
                let files = entry.signature_files().into_iter();
                for (kind, path) in files.filter(|(kind, _)| *kind == key.signature_file()) {
                    if let Some(signature) = self.read(&path, MAX_SIGNATURE_BYTES).await? {
                        beside.push((kind, signature));
                    }
                }
            }
            // Before anything of the content is looked at.
            let signature = entry.check_signature(&content, &beside, self.key.as_ref())?;
            let bundle = Bundle::parse(&entry.place, &content)?;
            bundle.check(entry)?;
            Ok(CheckedBundle { bundle, signature })
        };
        let checked: Result<CheckedBundle, CatalogError> = checked.await;
        checked.map_err(|error| of_catalog(&self.name, error.into()))
    }
}

/// Opens one catalog, or all. Those that cannot be read are left out with a warning, unless it is the only one.
pub(super) async fn open_all(
    added: &AddedCatalogs,
    only: Option<&str>,
    console: Console,
) -> Result<Vec<OpenCatalog>, CliError> {
    if let Some(name) = only {
        return Ok(vec![OpenCatalog::open(name, added.get(name)?, console).await?]);
    }
    if added.catalogs.is_empty() {
        return Err(
            CliError::new(crate::Exit::NotFound, "not_found", "no catalog was added")
                .with_hint("`toolplane catalog add NAME DIR_OR_URL` adds one"),
        );
    }
    let mut open = Vec::new();
    let mut failed = None;
    for (name, catalog) in &added.catalogs {
        match OpenCatalog::open(name, catalog, console).await {
            Ok(catalog) => open.push(catalog),
            Err(error) if added.catalogs.len() == 1 => return Err(error),
            Err(error) => {
                console.warn(&text::line(&format!("left out: {}", error.message)));
                failed = Some(error);
            }
        }
    }
    match (open.is_empty(), failed) {
        (true, Some(error)) => Err(error),
        _ => Ok(open),
    }
}

/// Names the catalog in an error.
fn of_catalog(name: &str, mut error: CliError) -> CliError {
    error.message = format!("the catalog `{name}`: {}", error.message);
    error
}
