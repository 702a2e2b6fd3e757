//! Settings of tools with code.

mod body;
mod problems;

pub(crate) use self::{
    body::{BashBody, Body, Files, PythonBody, ScriptOutput},
    problems::{Problems, read, schema},
};
