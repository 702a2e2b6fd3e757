//! Rules of the contract.

mod arguments;
mod attempt_history;
mod context;
mod credentials;
mod duration;
mod health;
mod hidden_fields;
mod lifecycle;
mod name;
mod retry_after;
mod secret_search;
mod template;
mod tool;
mod trace;
mod use_alone;
