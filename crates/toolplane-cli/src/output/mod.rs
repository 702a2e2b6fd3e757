//! Output: the console, and how values are written to it.

mod console;
pub(crate) mod csv;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod yaml;

pub(crate) use self::console::Console;
