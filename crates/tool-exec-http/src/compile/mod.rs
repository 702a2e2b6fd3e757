//! Compiles the settings of a tool to a plan, and reports every problem in them.

mod compiler;
mod plan;
mod problems;
mod settings;

pub(crate) use self::{
    plan::{Plan, RequestContent, ResultSelection, is_allowed_url},
    problems::{Problems, settings_schema},
    settings::Redirects,
};
