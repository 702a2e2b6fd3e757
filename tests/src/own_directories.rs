//! The directories in which the program keeps what is not in a configuration.

use std::{path::Path, process::Command};

/// Lets a `toolplane` process keep its store, its lists and its sockets below `folder`: never where the user's are, which
/// another process may have written.
pub fn own_directories(command: &mut Command, folder: &Path) {
    command.env_remove("XDG_RUNTIME_DIR");
    for (variable, name) in [
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_STATE_HOME", "state"),
    ] {
        command.env(variable, folder.join(name));
    }
}
