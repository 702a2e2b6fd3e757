//! Stores: the one in memory, the rules of versions, and the source that offers tools.

mod large;
mod publisher;
mod source;
mod suite;
mod versions;

use std::sync::Arc;

use raw_json::RawJson;
use serde_json::json;
use tool_core::{Descriptor, ExecutorSpec, SystemClock};
use tool_registry::{MemoryStore, NewVersion, PublishOptions, Publisher, ReadManifest};

/// Reader of manifests that are descriptors of kind `mock` in JSON: `description`, `version`, `input` and `output`.
struct Manifests;

impl ReadManifest for Manifests {
    fn read(&self, tool: &str, manifest: &RawJson) -> Result<Descriptor, String> {
        let executor = ExecutorSpec::new(text(manifest, "kind").unwrap_or_else(|| "mock".to_owned()));
        let name = text(manifest, "name").unwrap_or_else(|| tool.to_owned());
        let mut descriptor = Descriptor::new(name, executor);
        descriptor.description = text(manifest, "description").ok_or("it has no description")?;
        descriptor.version = text(manifest, "version");
        if let Some(schema) = manifest.get("input") {
            descriptor.input_schema = schema;
        }
        descriptor.output_schema = manifest.get("output");
        Ok(descriptor)
    }
}

fn text(manifest: &RawJson, key: &str) -> Option<String> {
    manifest.get(key)?.string()
}

fn publisher(store: &Arc<MemoryStore>) -> Publisher {
    Publisher::new(store.clone(), Arc::new(Manifests), Arc::new(SystemClock::new()))
}

/// Version of `greet` whose description has its number.
fn greet(version: &str) -> NewVersion {
    let manifest = json!({"description": format!("Greets, in version {version}.")});
    NewVersion::new(
        "greet",
        version.parse().expect("a version"),
        RawJson::from(manifest),
    )
}

fn version(text: &str) -> semver::Version {
    text.parse().expect("a version")
}

async fn publish(publisher: &Publisher, version: &str) {
    let published = publisher
        .publish(greet(version), "ada", PublishOptions::default())
        .await;
    assert!(published.expect("published").is_new);
}
