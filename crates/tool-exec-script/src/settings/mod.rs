//! Settings of tools with code.

mod body;
mod problems;

pub(crate) use self::{
    body::{BashBody, Body, Files, Network, PythonBody, SandboxChoice},
    problems::{Problems, read, schema},
};
