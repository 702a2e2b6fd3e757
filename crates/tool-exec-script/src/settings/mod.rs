//! Settings of tools with code.

mod body;
mod problems;

pub(crate) use self::{
    body::{BashBody, Body, Files, PythonBody, ScriptOutput, ScriptStream},
    problems::{Problems, read, schema},
};
