//! Files in every accepted spelling, and what is said of those that are wrong.

mod fixtures;
mod short_form;
