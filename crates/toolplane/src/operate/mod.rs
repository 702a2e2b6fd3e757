//! Operation: health, readiness, switches and records for operators.

pub(crate) mod callbacks;
pub(crate) mod checks;
pub(crate) mod health;
pub(crate) mod health_page;
pub(crate) mod idle_rules;
pub(crate) mod instructions;
pub(crate) mod pins;
pub(crate) mod records;
pub(crate) mod required;
pub(crate) mod status;
pub(crate) mod switches;
pub(crate) mod usage;
