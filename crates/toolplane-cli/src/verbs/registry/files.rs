//! Files of a version.

use std::{collections::BTreeMap, fs, io, path::Path};

use bytes::Bytes;

use crate::error::CliError;

/// Reads all regular files of a directory and its directories, by their relative paths. Links are not followed, and are
/// an error: what they lead to is not part of the version.
pub(super) fn read(directory: &Path) -> Result<BTreeMap<String, Bytes>, CliError> {
    let mut files = BTreeMap::new();
    let failed = |error: io::Error| {
        let message = format!("the files of `{}` cannot be read", directory.display());
        CliError::failed(message).with_source(&error)
    };
    let mut directories = vec![(directory.to_owned(), String::new())];
    while let Some((current, prefix)) = directories.pop() {
        for entry in fs::read_dir(&current).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let message = format!("`{}` is no name in UTF-8", entry.path().display());
                return Err(CliError::usage(message));
            };
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                directories.push((entry.path(), format!("{path}/")));
            } else if kind.is_file() {
                files.insert(path, fs::read(entry.path()).map_err(failed)?.into());
            } else {
                let message = format!("`{}` is neither a file nor a directory", entry.path().display());
                return Err(CliError::usage(message).with_hint("copy what a link leads to"));
            }
        }
    }
    Ok(files)
}
