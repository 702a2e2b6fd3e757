//! Output: the console, how values are written to it, and files.

pub(crate) mod confirm;
mod console;
pub(crate) mod csv;
pub(crate) mod diff;
pub(crate) mod file;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod yaml;

pub(crate) use self::console::Console;
