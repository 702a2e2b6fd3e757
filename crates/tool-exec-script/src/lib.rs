//! Executors of kinds `bash` and `python`: code as tools, in a sandbox.
//!
//! The code of a tool is data: a text in its settings, or files that belong to its descriptor. Exactly these bytes run, in a
//! [sandbox](tool_sandbox) with an empty working directory, without network and without the gateway's environment.
//!
//! - `bash`: a script gets its arguments as environment variables and as JSON on standard input, and writes its result to
//!   standard output.
//! - `python`: a function `run` gets its arguments by their names and returns its result. Packages are locked with their hashes
//!   and installed from the lock alone.
//!
//! # Variables of arguments
//! The variable of a parameter has its name, in which each character other than ASCII letters, digits and `_` is replaced by
//! `_`, after a `_` if it begins with a digit. A string is given as it is, another value as JSON, and null not at all. Names that
//! shells, loaders and runtimes interpret, such as `PATH`, `LD_PRELOAD`, `BASH_ENV`, `IFS` and `PYTHONPATH`, are refused, and so
//! are two parameters with one variable.

mod authority;
mod backend;
mod executor;
mod interpreter;
mod options;
mod plan;
mod requirements;
mod run;
mod settings;

pub use self::{
    executor::{ScriptExecutor, ScriptLanguage, ScriptRuntime},
    options::ScriptOptions,
    requirements::{InstallerVariables, RequirementsError},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
