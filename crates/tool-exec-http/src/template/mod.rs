//! Templates of the parts of a request, with references and arguments in them. Each part encodes what is inserted.

mod body;
mod encode;
mod header;
mod query_param;
mod reserved_names;
mod text;
mod url_template;

pub(crate) use self::{
    body::BodyTemplate,
    encode::push_value,
    header::{EnvironmentHeader, HeaderError, HeaderTemplate, check_name},
    query_param::QueryParam,
    reserved_names::ReservedNames,
    text::{Scope, TemplateError, TextTemplate},
    url_template::{UrlError, UrlTemplate, check_parsed, check_url},
};
