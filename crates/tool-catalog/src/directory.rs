use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use crate::{
    Bundle, CatalogEntry, CatalogError, CatalogErrorKind, CatalogIndex, MAX_BUNDLE_BYTES, MAX_INDEX_BYTES,
    is_catalog_path,
};

/// Name of the index in a catalog.
const INDEX: &str = "index.json";
/// Maximum number of files of a directory that are looked at for documents of the MCP registry.
const MAX_FILES: usize = 10_000;

/// Catalog in a directory. Nothing outside of the directory is read, also not through a link.
#[derive(Debug, Clone)]
pub struct CatalogDirectory {
    /// Without links.
    root: PathBuf,
}

impl CatalogDirectory {
    /// Opens a directory.
    ///
    /// # Errors
    /// If it is not there, or no directory.
    pub fn open(path: &Path) -> Result<Self, CatalogError> {
        let shown = path.display().to_string();
        let root = fs::canonicalize(path).map_err(|error| unreadable(&shown, &error))?;
        match root.is_dir() {
            true => Ok(Self { root }),
            false => Err(CatalogError::invalid(shown, "it is no directory")
                .with_hint("a catalog is the directory of an `index.json`")),
        }
    }

    /// Returns the path of the directory, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Reads the index, and documents `server.json` and `*.server.json` beside it that the index does not list. Returns also the
    /// problems of such documents, which are left out.
    ///
    /// # Errors
    /// If there is neither an index nor such a document, or the index cannot be used.
    pub fn index(&self) -> Result<(CatalogIndex, Vec<CatalogError>), CatalogError> {
        let listed = self.read(INDEX, MAX_INDEX_BYTES)?;
        let mut index = match &listed {
            Some(bytes) => CatalogIndex::parse(INDEX, bytes)?,
            None => CatalogIndex::default(),
        };
        let mut problems = Vec::new();
        for name in self.server_documents()? {
            if index.entries().iter().any(|entry| entry.place == name) {
                continue;
            }
            match self.server_entry(&name).and_then(|entry| index.add(entry)) {
                Ok(_) => {}
                Err(problem) => problems.push(problem),
            }
        }
        if listed.is_none() && index.entries().is_empty() && problems.is_empty() {
            let problem = "it is no catalog: it has neither `index.json` nor a `server.json`";
            let place = self.root.display().to_string();
            return Err(CatalogError::new(CatalogErrorKind::NotFound, place, problem)
                .with_hint("`toolplane export NAME@VERSION --to DIR` makes one"));
        }
        Ok((index, problems))
    }

    /// Returns the names of the documents of the MCP registry, in their order.
    fn server_documents(&self) -> Result<Vec<String>, CatalogError> {
        let shown = self.root.display().to_string();
        let mut names = Vec::new();
        let entries = fs::read_dir(&self.root).map_err(|error| unreadable(&shown, &error))?;
        for entry in entries.take(MAX_FILES) {
            let entry = entry.map_err(|error| unreadable(&shown, &error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if (name == "server.json" || name.ends_with(".server.json")) && is_catalog_path(&name) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn server_entry(&self, name: &str) -> Result<CatalogEntry, CatalogError> {
        let bytes = self.required(name, MAX_BUNDLE_BYTES)?;
        let mut entry = Bundle::parse(name, &bytes)?.entry();
        name.clone_into(&mut entry.place);
        Ok(entry)
    }

    /// Reads a file of the catalog that must be there.
    ///
    /// # Errors
    /// If it is not there, outside of the directory, too large, or cannot be read.
    pub fn required(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>, CatalogError> {
        self.read(path, max_bytes)?.ok_or_else(|| {
            CatalogError::new(CatalogErrorKind::NotFound, path, "the catalog has no such file")
                .with_hint("the catalog is incomplete: ask whoever publishes it")
        })
    }

    /// Reads a file of the catalog. Returns `None` if it is not there.
    ///
    /// # Errors
    /// If it is outside of the directory, too large, no regular file, or cannot be read.
    pub fn read(&self, path: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, CatalogError> {
        if !is_catalog_path(path) {
            return Err(CatalogError::invalid(path, "it is no path inside the catalog"));
        }
        let file = match fs::canonicalize(self.root.join(path)) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| unreadable(path, &error))?,
        };
        if !file.starts_with(&self.root) {
            return Err(CatalogError::invalid(
                path,
                "it is a link that leads out of the catalog",
            ));
        }
        // A pipe or device would block.
        if !file.is_file() {
            return Err(CatalogError::invalid(path, "it is no file"));
        }
        let mut content = Vec::new();
        File::open(&file)
            .and_then(|file| file.take(max_bytes + 1).read_to_end(&mut content))
            .map_err(|error| unreadable(path, &error))?;
        if content.len() as u64 > max_bytes {
            let problem = format!("it has more than {max_bytes} bytes");
            return Err(CatalogError::invalid(path, problem));
        }
        Ok(Some(content))
    }
}

fn unreadable(place: &str, error: &io::Error) -> CatalogError {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => CatalogErrorKind::NotFound,
        _ => CatalogErrorKind::Unavailable,
    };
    CatalogError::new(kind, place, format!("it cannot be read: {error}"))
}
