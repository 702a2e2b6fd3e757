//! Lists, their pages and their changes.

mod client_lists;
mod missing;
mod tools;
