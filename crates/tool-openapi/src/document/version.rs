use std::fmt;

use serde_json::Value;

use super::{read::not_openapi, text_of};
use crate::OpenApiError;

/// Version of the format of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Version {
    /// Swagger 2.0.
    Swagger2,
    /// OpenAPI 3.0, whose schemas are a dialect of draft 5.
    OpenApi30(String),
    /// OpenAPI 3.1 or 3.2, whose schemas are JSON Schema 2020-12.
    OpenApi31(String),
}

impl Version {
    /// Returns the version that a document states.
    pub(super) fn from_root(root: &Value) -> Result<Self, OpenApiError> {
        if let Some(stated) = root.get("openapi") {
            let stated = text_of(stated);
            return match stated.split('.').take(2).collect::<Vec<_>>().as_slice() {
                ["3", "0"] => Ok(Self::OpenApi30(stated)),
                ["3", "1" | "2"] => Ok(Self::OpenApi31(stated)),
                _ => Err(unsupported("OpenAPI", &stated)),
            };
        }
        let stated = text_of(root.get("swagger").ok_or_else(not_openapi)?);
        if matches!(&*stated, "2" | "2.0") {
            Ok(Self::Swagger2)
        } else {
            Err(unsupported("Swagger", &stated))
        }
    }

    /// Returns `true` if keywords next to a `$ref` in a schema have a meaning.
    pub(crate) fn has_ref_siblings(&self) -> bool {
        matches!(self, Self::OpenApi31(_))
    }
}

fn unsupported(format: &str, stated: &str) -> OpenApiError {
    let shown: String = stated.chars().take(40).collect();
    OpenApiError::new(format!(
        "unsupported version `{}` of {format}",
        shown.escape_debug()
    ))
    .with_hint("supported are Swagger 2.0 and OpenAPI 3.0, 3.1 and 3.2")
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Swagger2 => f.write_str("Swagger 2.0"),
            Self::OpenApi30(stated) | Self::OpenApi31(stated) => write!(f, "OpenAPI {stated}"),
        }
    }
}
