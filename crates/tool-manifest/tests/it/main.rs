//! Files in every accepted spelling, and what is said of those that are wrong.

mod bad_input;
mod fixtures;
mod hostile;
mod loading;
mod places;
mod schema;
mod secrets;
mod short_form;
