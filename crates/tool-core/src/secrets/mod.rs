//! Secrets: references to them, and their removal from texts and JSON.

mod credentials;
mod forms;
mod hidden_fields;
mod hidden_secrets;
mod sanitize;
mod search;
mod secret;
mod template;
mod written;

pub use self::{
    credentials::hide_credentials,
    forms::{HIDDEN, names_secret},
    hidden_fields::{
        hide_fields, hide_fields_in_text, hide_fields_of_question, hide_fields_of_questions,
        hide_fields_of_report, hide_fields_of_result,
    },
    hidden_secrets::hide_secrets,
    sanitize::sanitize_arguments,
    search::SecretSearch,
    secret::{NoSecrets, Secret, SecretError, Secrets},
    template::{IfUnset, Provider, Reference, Template, TemplateError},
    written::written_credentials,
};
