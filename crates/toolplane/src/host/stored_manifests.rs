//! Manifests of a store.

use raw_json::RawJson;
use tool_core::Descriptor;
use tool_manifest::{LoadOptions, Severity, Syntax};
use tool_registry::{ReadManifest, Registry};

/// Reader of the manifests in a store: the documents that files hold, in every dialect.
///
/// # Examples
/// ```
/// use toolplane::{RawJson, StoredManifests, registry::ReadManifest};
///
/// let manifest = RawJson::parse(
///     r#"{"tool_id": "greet", "tool_type": "api", "description": "Greets.",
///         "executor_config": {"url": "http://127.0.0.1:1/greet"}, "parameters": []}"#,
/// )?;
/// let tool = StoredManifests.read("greet", &manifest)?;
/// assert_eq!(tool.executor.kind, "http");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct StoredManifests;

impl ReadManifest for StoredManifests {
    fn read(&self, tool: &str, manifest: &RawJson) -> Result<Descriptor, String> {
        if let Some(plain) = tool_manifest::read_plain(tool, manifest, crate::sections()) {
            return Ok(plain);
        }
        let options = LoadOptions::new().text(tool, Syntax::Json, manifest.as_str());
        // A version brings its files along: none are read here.
        let loaded = crate::manifest::load_without_files(&options).map_err(|problems| {
            let errors = problems
                .into_iter()
                .filter(|problem| problem.severity == Severity::Error);
            let errors: Vec<_> = errors.map(|problem| problem.message).collect();
            errors.join("; ")
        })?;
        let configuration = loaded.configuration;
        // A server that the manifest describes is a record of its own in the store.
        match <[_; 1]>::try_from(configuration.tools) {
            Ok([only]) => Ok(std::sync::Arc::unwrap_or_clone(only)),
            Err(tools) => Err(format!("the manifest describes {} tools, not one", tools.len())),
        }
    }
}

/// [`StoredManifests`] that accept a tool for publication if the executors of a toolplane do.
pub(crate) struct CheckedManifests(pub(crate) Registry);

impl ReadManifest for CheckedManifests {
    fn read(&self, tool: &str, manifest: &RawJson) -> Result<Descriptor, String> {
        StoredManifests.read(tool, manifest)
    }

    fn check(&self, tool: &Descriptor) -> Result<(), String> {
        let checked = self.0.check(tool);
        checked.map_err(|refused| format!("`{}` cannot run here: {}", refused.name, refused.reason))
    }
}
