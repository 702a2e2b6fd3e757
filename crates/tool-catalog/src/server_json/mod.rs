//! `server.json` of the MCP registry, by the schema of 2025-12-11.

mod choice;
mod document;
mod input;
mod package;
mod remote;
mod words;

use std::collections::BTreeMap;

use raw_json::{JsonKind, RawJson};

pub use self::{choice::PackageChoice, input::ServerInput};
use self::{
    document::{Package, Remote},
    input::Answers,
};
use crate::{
    CatalogError, CatalogErrorKind,
    foreign::{self, shown},
};

/// Description of a server as the MCP registry keeps it: its packages and its remote endpoints.
///
/// # Examples
/// ```
/// use tool_catalog::{Bundle, BundleContent};
///
/// let text = r#"{
///     "name": "io.github.ada/weather", "description": "Weather.", "version": "1.0.2",
///     "packages": [{"registryType": "npm", "identifier": "@ada/weather", "version": "1.0.2", "transport": {"type": "stdio"},
///         "environmentVariables": [{"name": "WEATHER_KEY", "isRequired": true, "isSecret": true}]}]
/// }"#;
/// let bundle = Bundle::parse("server.json", text.as_bytes())?;
/// let BundleContent::McpServer(server) = bundle.content else { unreachable!() };
/// let plan = server.plan(None, &Default::default())?;
/// assert_eq!(
///     plan.settings.as_str(),
///     r#"{"command":"npx","args":["-y","@ada/weather@1.0.2"],"env":{"WEATHER_KEY":"${WEATHER_KEY}"}}"#
/// );
/// # Ok::<(), tool_catalog::CatalogError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct McpServerJson {
    /// Name, such as `io.github.ada/weather`.
    pub name: String,
    /// Title, for people.
    pub title: Option<String>,
    /// Description.
    pub description: String,
    /// Version.
    pub version: String,
    packages: Vec<Package>,
    remotes: Vec<Remote>,
    document: RawJson,
}

/// Settings of a server, made of a `server.json`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerPlan {
    /// Settings: an entry of `servers` in a configuration.
    pub settings: RawJson,
    /// Package or endpoint that was chosen.
    pub package: PackageChoice,
    /// Statement of what is pinned, for people.
    pub pinned: String,
    /// Values that are still to be given: secrets, and required values without a default. The settings have a reference to each.
    pub asked: Vec<ServerInput>,
    /// Values that may be given, and are left out.
    pub optional: Vec<ServerInput>,
    /// Warnings about what the description asks for.
    pub warnings: Vec<String>,
}

impl McpServerJson {
    /// Reads a document. An answer of the registry, which has the document in `server`, is one as well.
    pub(crate) fn read(place: &str, document: &RawJson) -> Result<Self, CatalogError> {
        let inner = document
            .get("server")
            .filter(|inner| inner.kind() == JsonKind::Object);
        let document = match (document.get("name"), inner) {
            (None, Some(inner)) => inner,
            _ => document.clone(),
        };
        let invalid = |problem: String| CatalogError::invalid(place, problem);
        let text = |key: &str| document.get(key).and_then(|value| value.string());
        let (Some(name), Some(version)) = (text("name"), text("version")) else {
            let failure = invalid(
                "it is neither a bundle nor a `server.json`: it has no `name` and `version`".to_owned(),
            );
            return Err(match document.get("version_detail") {
                Some(_) => failure.with_hint(
                    "it was written before the schema of 2025-09-16: publish it in the present form",
                ),
                None => failure,
            });
        };
        let description = text("description").unwrap_or_default();
        foreign::check_texts(place, &name, &version, &description)?;
        let body = document::read(place, &document)?;
        Ok(Self {
            name,
            title: text("title").filter(|title| title.len() <= foreign::MAX_NAME),
            description,
            version,
            packages: body.packages,
            remotes: body.remotes,
            document: document.detached(),
        })
    }

    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> &RawJson {
        &self.document
    }

    /// Returns the last part of the name: a name for the server in a configuration.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// Returns all packages and endpoints, numbered from 1: first the packages, then the endpoints.
    #[must_use]
    pub fn choices(&self) -> Vec<PackageChoice> {
        let packages = self.packages.iter().map(|package| {
            let problem = package::settings(package, &mut Answers::default()).err();
            (package.registry_type.clone(), package.label(), problem)
        });
        let remotes = self.remotes.iter().map(|remote| {
            let problem = remote::settings(remote, &mut Answers::default()).err();
            ("remote".to_owned(), remote.label(), problem)
        });
        let all = packages.chain(remotes).enumerate();
        all.map(|(index, (kind, label, problem))| PackageChoice {
            number: index + 1,
            kind,
            label,
            problem: problem.map(|problem| problem.to_string()),
        })
        .collect()
    }

    /// Makes the settings of the server. `wanted` names the package by its number or its type; without it, the first usable one is
    /// chosen. `values` are the values that an operator gives, by the names of the inputs.
    ///
    /// # Errors
    /// If there is no such package, none can be used, or a value does not fit its input.
    pub fn plan(
        &self,
        wanted: Option<&str>,
        values: &BTreeMap<String, String>,
    ) -> Result<ServerPlan, CatalogError> {
        let choices = self.choices();
        let chosen = choice::choose(&self.name, &choices, wanted)?;
        let mut answers = Answers::new(values.clone());
        let made = match self.packages.get(chosen.number - 1) {
            Some(package) => package::settings(package, &mut answers)?,
            None => {
                let remote = &self.remotes[chosen.number - 1 - self.packages.len()];
                remote::settings(remote, &mut answers)?
            }
        };
        answers.check_used(&self.name)?;
        let (asked, optional) = answers.into_inputs();
        Ok(ServerPlan {
            settings: made.settings,
            package: chosen.clone(),
            pinned: made.pinned,
            asked,
            optional,
            warnings: made.warnings,
        })
    }
}

/// Settings that were made of a package or an endpoint.
struct Made {
    settings: RawJson,
    pinned: String,
    warnings: Vec<String>,
}

/// Error of a package or input that cannot be used.
fn unusable(place: &str, problem: impl Into<String>) -> CatalogError {
    CatalogError::new(CatalogErrorKind::Invalid, shown(place), problem)
}
