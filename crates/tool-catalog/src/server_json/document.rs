//! Structure of the document. Members that are not used are not read: the schema allows any.

use std::collections::BTreeMap;

use raw_json::RawJson;
use serde::Deserialize;

use crate::CatalogError;

/// Maximum number of items in each list.
const MAX_ITEMS: usize = 256;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Body {
    pub(super) packages: Vec<Package>,
    pub(super) remotes: Vec<Remote>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Package {
    pub(super) registry_type: String,
    pub(super) identifier: String,
    pub(super) version: Option<String>,
    pub(super) registry_base_url: Option<String>,
    pub(super) file_sha256: Option<String>,
    pub(super) runtime_hint: Option<String>,
    pub(super) transport: Option<Transport>,
    #[serde(default)]
    pub(super) runtime_arguments: Vec<Argument>,
    #[serde(default)]
    pub(super) package_arguments: Vec<Argument>,
    #[serde(default)]
    pub(super) environment_variables: Vec<NamedInput>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Transport {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Remote {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) url: String,
    #[serde(default)]
    pub(super) headers: Vec<NamedInput>,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, Input>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Argument {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) name: Option<String>,
    pub(super) value_hint: Option<String>,
    #[serde(flatten)]
    pub(super) input: InputWithVariables,
}

/// Environment variable or header.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct NamedInput {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) input: InputWithVariables,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct InputWithVariables {
    #[serde(flatten)]
    pub(super) own: Input,
    pub(super) variables: BTreeMap<String, Input>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Input {
    pub(super) description: Option<String>,
    pub(super) is_required: bool,
    pub(super) is_secret: bool,
    pub(super) value: Option<String>,
    pub(super) default: Option<String>,
    pub(super) choices: Vec<String>,
}

/// Reads packages and endpoints.
pub(super) fn read(place: &str, document: &RawJson) -> Result<Body, CatalogError> {
    let body: Body = document.to().map_err(|error| {
        let failure = CatalogError::invalid(place, format!("it is no `server.json`: {error}"));
        match document.as_str().contains("\"registry_type\"") {
            true => failure
                .with_hint("it was written before the schema of 2025-09-16: publish it in the present form"),
            false => failure,
        }
    })?;
    let packages = body.packages.iter().map(|package| {
        let lists = [package.runtime_arguments.len(), package.package_arguments.len()];
        lists
            .into_iter()
            .max()
            .unwrap_or_default()
            .max(package.environment_variables.len())
    });
    let remotes = body.remotes.iter().map(|remote| remote.headers.len());
    let longest = packages
        .chain(remotes)
        .chain([body.packages.len(), body.remotes.len()])
        .max();
    if longest.unwrap_or_default() > MAX_ITEMS {
        let problem = format!("one of its lists has more than {MAX_ITEMS} items");
        return Err(CatalogError::invalid(place, problem));
    }
    Ok(body)
}

impl Package {
    /// Returns the name for people.
    pub(super) fn label(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.identifier),
            None => self.identifier.clone(),
        }
    }
}

impl Remote {
    /// Returns the name for people.
    pub(super) fn label(&self) -> String {
        format!("{} {}", self.kind, self.url)
    }
}
