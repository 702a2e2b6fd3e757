//! Settings of tools with code.

mod body;
mod problems;

pub(crate) use self::{
    body::{BashBody, Body, Files, PythonBody},
    problems::{Problems, read, schema},
};
