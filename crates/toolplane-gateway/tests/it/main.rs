//! The gateway in front of scripted and mock tools, with messages as bytes.

mod acting;
mod approving;
mod beside_tools;
mod calls;
mod chained;
mod embedding;
mod legacy_rounds;
mod lists;
mod missing;
mod modern_rounds;
mod operator;
mod own_lists;
mod sessions;
mod support;
mod tasks;
mod watching;
