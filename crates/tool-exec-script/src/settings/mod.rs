//! Settings of tools with code.

mod body;
mod problems;

pub(crate) use self::{
    body::{BashBody, Body, Files, Limits, Network, PythonBody, SandboxChoice, ScriptOutput},
    problems::{Problems, read, schema},
};
