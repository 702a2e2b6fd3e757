//! Versions side by side in a registry.

use std::sync::Arc;

use tool_core::{
    Arguments, CallContext, Descriptor, DynBackend, ErrorKind, Executor, ExecutorSpec, Invoke, PrepareError,
    RawJson, TargetBackend, ToolError, invoke_fn,
};
use tool_registry::{FixedSource, MemoryStore, Registry, RegistryParts, StoreSource, ToolAlias};

use super::{Manifests, publish, publisher, version};

/// Executor whose tools return the description that they were prepared with.
struct Describe;

impl Executor for Describe {
    fn kind(&self) -> &str {
        "mock"
    }

    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        let description = RawJson::from(descriptor.description.as_str());
        Ok(Arc::new(invoke_fn(move |_: Arc<Arguments>| {
            let description = description.clone();
            async move { Ok::<_, ToolError>(description) }
        })))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::object()
    }
}

fn registry(store: &Arc<MemoryStore>) -> Registry {
    let mut fixed = Descriptor::new("fixed", ExecutorSpec::new("mock"));
    fixed.version = Some("1.2.3".to_owned());
    let unversioned = Descriptor::new("plain", ExecutorSpec::new("mock"));
    let parts = RegistryParts::default()
        .with_sources([
            Arc::new(FixedSource::new(
                "configuration",
                vec![Arc::new(fixed), Arc::new(unversioned)],
            )) as _,
            Arc::new(StoreSource::new(store.clone(), Arc::new(Manifests))) as _,
        ])
        .with_executors([Arc::new(Describe) as _]);
    Registry::new(parts)
}

#[tokio::test]
async fn several_versions_are_called_side_by_side() {
    let store = Arc::new(MemoryStore::new());
    let publisher = publisher(&store);
    for number in ["1.0.0", "1.1.0", "2.0.0"] {
        publish(&publisher, number).await;
    }
    let digest = raw_json::hex(&publisher.record("greet").await.expect("known").versions[1].digest);
    let registry = registry(&store);
    for (request, expected) in [
        ("1.0.0", "1.0.0"),
        ("^1", "1.1.0"),
        (">=1, <1.1", "1.0.0"),
        ("latest", "2.0.0"),
        ("2.0.0", "2.0.0"),
        (&format!("sha256:{}", &digest[..12]), "1.1.0"),
    ] {
        let tool = registry.find_version("greet", request).await.expect(request);
        assert_eq!(tool.descriptor().version.as_deref(), Some(expected), "{request}");
        let mut cx = CallContext::local(&tool, Arguments::none());
        let reply = TargetBackend
            .invoke(&mut cx)
            .await
            .and_then(tool_core::Outcome::into_reply)
            .expect("a reply");
        assert_eq!(reply.text(), format!("Greets, in version {expected}."));
        if request != "latest" {
            assert!(
                registry.get_version("greet", request).is_some(),
                "the next call reads nothing"
            );
        }
    }
    let old = registry.find_version("greet", "1.0.0").await.expect("known");
    let new = registry.get("greet").expect("listed");
    assert!(
        !Arc::ptr_eq(old.state(), new.state()),
        "each version has a state of its own"
    );
    assert_eq!(
        registry
            .snapshot()
            .tools()
            .iter()
            .filter(|tool| &**tool.name() == "greet")
            .count(),
        1
    );
}

#[tokio::test]
async fn a_change_of_the_store_ends_what_was_known_of_a_version() {
    let store = Arc::new(MemoryStore::new());
    let publisher = publisher(&store);
    publish(&publisher, "1.0.0").await;
    let registry = registry(&store);
    let mut changes = registry.changes();
    registry.follow();
    assert_eq!(
        registry
            .find_version("greet", "^1")
            .await
            .expect("known")
            .descriptor()
            .version
            .as_deref(),
        Some("1.0.0")
    );
    publish(&publisher, "1.1.0").await;
    let is_new = || {
        registry
            .get("greet")
            .is_some_and(|tool| tool.descriptor().version.as_deref() == Some("1.1.0"))
    };
    while !is_new() {
        changes.changed().await.expect("the registry lives");
    }
    assert!(registry.get_version("greet", "^1").is_none());
    assert_eq!(
        registry
            .find_version("greet", "^1")
            .await
            .expect("known")
            .descriptor()
            .version
            .as_deref(),
        Some("1.1.0")
    );
    let before = registry.find_version("greet", "1.0.0").await.expect("known");
    publisher
        .yank("greet", &version("1.0.0"), "it leaks", "ada")
        .await
        .expect("yanked");
    changes.changed().await.expect("the registry lives");
    let after = registry
        .find_version("greet", "1.0.0")
        .await
        .expect("by its exact version");
    assert!(
        after.descriptor().description.ends_with("Withdrawn: it leaks."),
        "{}",
        after.descriptor().description
    );
    assert!(Arc::ptr_eq(before.state(), after.state()), "its state is kept");
}

#[tokio::test]
async fn a_tool_without_a_store_has_the_version_that_it_states() {
    let registry = registry(&Arc::new(MemoryStore::new()));
    assert!(registry.find_version("fixed", "^1").await.is_ok());
    for (name, request, kind, expected) in [
        (
            "fixed",
            "^2",
            ErrorKind::NotFound,
            "`fixed` has no version `^2`; its version is `1.2.3`",
        ),
        (
            "plain",
            "1.0.0",
            ErrorKind::NotFound,
            "`plain` has no version: give it one in its definition",
        ),
        (
            "other",
            "1.0.0",
            ErrorKind::NotFound,
            "there is no tool `other` with a version `1.0.0`",
        ),
        (
            "fixed",
            "new",
            ErrorKind::InvalidArguments,
            "`new` is no version: write `1.4.2`",
        ),
        (
            "fixed",
            "sha256:xyz",
            ErrorKind::InvalidArguments,
            "is no version",
        ),
    ] {
        let error = registry.find_version(name, request).await.expect_err(expected);
        assert_eq!(error.kind(), kind);
        assert!(error.message().contains(expected), "{}", error.message());
    }
}

#[tokio::test]
async fn an_alias_is_listed_and_policy_rules_for_its_tool_apply_to_it() {
    let store = Arc::new(MemoryStore::new());
    let publisher = publisher(&store);
    for number in ["1.0.0", "2.0.0"] {
        publish(&publisher, number).await;
    }
    publisher
        .set_alias(ToolAlias::new("greet_v1", "greet", "^1"))
        .await
        .expect("set");
    let registry = registry(&store);
    let alias = registry.find("greet_v1").await.expect("listed");
    assert_eq!(alias.descriptor().version.as_deref(), Some("1.0.0"));
    assert_eq!(alias.names().collect::<Vec<_>>(), ["greet_v1", "greet"]);
    assert!(registry.find_version("greet_v1", "^1").await.is_ok());
    assert!(registry.find_version("greet_v1", "^2").await.is_err());
}
