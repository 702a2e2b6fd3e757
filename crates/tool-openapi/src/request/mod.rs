//! Requests of operations: arguments of the tool, and the settings that send them.

mod arguments;
mod body;
mod cookies;
mod parameter;
mod path;
mod place;
mod query;
mod settings;

pub(crate) use self::settings::tool_request;
