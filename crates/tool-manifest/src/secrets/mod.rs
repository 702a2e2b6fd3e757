//! Values of references: the environment, files and configured secrets.

pub(crate) mod process_secrets;
pub(crate) mod references;
