//! OpenAPI documents as tools: Swagger 2.0 and OpenAPI 3.0, 3.1 and 3.2, in JSON or YAML.
//!
//! [`import`] makes a [`Descriptor`](tool_core::Descriptor) of each operation, with the settings of the executor of kind `http`
//! and with an input schema of JSON Schema 2020-12. An operation that this executor cannot send is listed with the reason.
//! Nothing is ever fetched: a `$ref` that leads out of the document is such a reason.
//!
//! # Examples
//! ```
//! use tool_openapi::{ImportOptions, import};
//!
//! let document = br#"{
//!     "openapi": "3.1.0",
//!     "info": {"title": "Pets", "version": "1"},
//!     "servers": [{"url": "https://pets.example.com/v1"}],
//!     "paths": {"/pets/{id}": {"get": {
//!         "operationId": "showPet",
//!         "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]
//!     }}}
//! }"#;
//! let api = import(document, &ImportOptions::new())?;
//! assert_eq!(&*api.tools[0].descriptor.name, "showPet");
//! assert_eq!(api.tools[0].descriptor.executor.config["url"], "https://pets.example.com/v1/pets/{id}");
//! # Ok::<(), tool_openapi::OpenApiError>(())
//! ```

mod document;
mod error;
mod import;
mod imported;
mod operation;
mod options;
mod request;
mod schema;

pub use self::{
    error::OpenApiError,
    import::import,
    imported::{ApiOperation, ImportedApi, ImportedSecret, ImportedTool, SkippedOperation},
    options::{ImportOptions, OperationFilter},
};
pub use tool_core::{self, serde_json};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
