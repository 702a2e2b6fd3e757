//! Output: the console, how values are written to it, and files.

mod console;
pub(crate) mod csv;
pub(crate) mod file;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod yaml;

pub(crate) use self::console::Console;
