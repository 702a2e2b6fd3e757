//! Lists, their pages and their changes.

mod client_lists;
mod first_answers;
mod missing;
mod tools;
