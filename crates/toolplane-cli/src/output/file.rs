//! Files that are written as a whole.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
};

use crate::error::CliError;

/// Writes a file by replacing it as a whole, and makes its directory.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn replace(path: &Path, content: &str) -> Result<(), CliError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", process::id()));
    let temporary = PathBuf::from(temporary);
    let directory = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = directory
        .and_then(|()| fs::write(&temporary, content))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // Nothing more can be done about a file that cannot be removed either.
        let _ = fs::remove_file(&temporary);
        CliError::failed(format!("`{}` cannot be written", path.display())).with_source(&error)
    })
}
