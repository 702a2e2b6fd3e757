//! Namespaces of sources, and look-alikes.

use std::sync::Arc;

use tokio::sync::watch;
use tool_core::{BoxFuture, Catalogue, Feature, Source, SourceState, SourceStatus, Trust};
use tool_registry::{FixedSource, Registry};
use tool_testkit::TestTool;

use crate::registry;

/// A server with a prefix, all of whose tools are known.
struct Server {
    name: &'static str,
    prefix: &'static str,
    renamed: &'static str,
    catalogue: Arc<Catalogue>,
}

impl Server {
    /// Makes a server with these tools, named as agents see them.
    fn with(name: &'static str, prefix: &'static str, tools: &[&str]) -> Self {
        let descriptors = tools.iter().map(|tool| {
            let mut descriptor = TestTool::new(tool).descriptor;
            descriptor.origin.trust = Trust::Upstream;
            descriptor.origin.place = name.to_owned();
            Arc::new(descriptor)
        });
        let catalogue = {
            let mut catalogue = Catalogue::default();
            catalogue.revision = 1;
            catalogue.tools = descriptors.collect();
            catalogue
        };
        Self {
            name,
            prefix,
            renamed: "",
            catalogue: Arc::new(catalogue),
        }
    }
}

impl Source for Server {
    fn name(&self) -> &str {
        self.name
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.catalogue.clone()
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn changed(&self, _: u64) -> BoxFuture<'_, ()> {
        let (sender, mut never) = watch::channel(());
        Box::pin(async move {
            let _ = never.changed().await;
            drop(sender);
        })
    }

    fn may_hold(&self, _: Feature, name: &str) -> bool {
        name.starts_with(self.prefix)
    }

    fn status(&self) -> SourceStatus {
        SourceStatus::new(SourceState::Ready)
    }

    fn prefix(&self) -> Option<String> {
        Some(self.prefix.to_owned())
    }

    fn is_renamed(&self, name: &str) -> bool {
        name == self.renamed
    }
}

/// Returns each tool with the name of its source.
fn owners(registry: &Registry) -> Vec<(String, String)> {
    let snapshot = registry.snapshot();
    let owned = snapshot.tools().iter().map(|tool| {
        let source = registry.find_source(tool).expect("it was listed by one");
        (tool.name().to_string(), source.name().to_owned())
    });
    owned.collect()
}

fn of(owners: &[(String, String)], name: &str) -> Option<String> {
    let owner = owners.iter().find(|(tool, _)| tool == name);
    owner.map(|(_, source)| source.clone())
}

/// A server cannot take a name in the namespace of another one, whichever of them is listed first, and even if the
/// other one has no tool of this name.
#[test]
fn names_belong_to_the_server_with_the_longest_prefix() {
    for (thief, prefix, stolen, free) in [
        ("a", "a__", ["a__b__echo", "a__b__other"], "a__c__echo"),
        ("bare", "", ["a__b__echo", "a__b__x"], "other"),
        ("a_", "a_", ["a__b__echo", "a__b__"], "a_echo"),
    ] {
        for is_first in [true, false] {
            let names = [stolen[0], stolen[1], free];
            let (thief_server, owner): (Arc<dyn Source>, Arc<dyn Source>) = (
                Arc::new(Server::with(thief, prefix, &names)),
                Arc::new(Server::with("owner", "a__b__", &["a__b__echo"])),
            );
            let sources = if is_first {
                vec![thief_server, owner]
            } else {
                vec![owner, thief_server]
            };
            let registry = registry(sources);
            let owners = owners(&registry);
            assert_eq!(
                of(&owners, "a__b__echo").as_deref(),
                Some("owner"),
                "{thief} {is_first}"
            );
            assert_eq!(of(&owners, stolen[1]), None, "{thief} {is_first}");
            assert_eq!(of(&owners, free).as_deref(), Some(thief));
            let snapshot = registry.snapshot();
            let refused: Vec<_> = snapshot
                .refused()
                .iter()
                .map(|refused| (&*refused.source, &*refused.name))
                .collect();
            assert_eq!(refused, [(thief, stolen[0]), (thief, stolen[1])]);
            assert!(
                snapshot.refused()[0]
                    .reason
                    .contains("names that begin with `a__b__` belong to `owner`")
            );
        }
    }
}

/// An operator may use any name, both when renaming a tool and for a tool of the configuration.
#[test]
fn operators_may_use_any_name() {
    let mut bare = Server::with("bare", "", &["a__echo", "a__x"]);
    bare.renamed = "a__echo";
    let registry = registry(vec![
        Arc::new(FixedSource::new(
            "configuration",
            vec![Arc::new(TestTool::new("a__ours").descriptor)],
        )),
        Arc::new(bare),
        Arc::new(Server::with("a", "a__", &["a__ours"])),
    ]);
    let owners = owners(&registry);
    assert_eq!(of(&owners, "a__echo").as_deref(), Some("bare"));
    assert_eq!(of(&owners, "a__ours").as_deref(), Some("configuration"));
    assert_eq!(of(&owners, "a__x"), None);
}

/// Servers with the same prefix share a namespace: the first one has the name.
#[test]
fn servers_without_prefixes_share_names() {
    let registry = registry(vec![
        Arc::new(Server::with("a", "", &["echo"])),
        Arc::new(Server::with("b", "", &["echo", "other"])),
    ]);
    let owners = owners(&registry);
    assert_eq!(of(&owners, "echo").as_deref(), Some("a"));
    assert_eq!(of(&owners, "other").as_deref(), Some("b"));
}

#[test]
fn look_alike_names_are_reported() {
    let mut own = TestTool::new("r_ad_all").descriptor;
    own.definition = Some(raw_json::RawJson::parse(r#"{"name":"r\u0435ad_all"}"#).unwrap());
    let registry = registry(vec![
        Arc::new(FixedSource::new(
            "configuration",
            ["read_file", "read_all", "plain"]
                .map(|name| Arc::new(TestTool::new(name).descriptor))
                .to_vec(),
        )),
        Arc::new(Server::with(
            "s",
            "",
            &["Read_File", "read-fi1e", "p1ain", "plane"],
        )),
        Arc::new(FixedSource::new("more", vec![Arc::new(own)])),
    ]);
    let warnings = registry.list_warnings();
    let told: Vec<_> = warnings
        .iter()
        .map(|(source, warning)| (&**source, warning.to_string()))
        .collect();
    let alike =
        |name: &str, first: &str| format!("tool `{name}`: its name looks like `{first}` of `configuration`");
    assert_eq!(
        told,
        [
            ("s", alike("Read_File", "read_file")),
            ("s", alike("read-fi1e", "read_file")),
            ("s", alike("p1ain", "plain")),
            ("more", alike("r_ad_all", "read_all")),
        ]
    );
    assert_eq!(registry.snapshot().tools().len(), 8, "they are offered");
}
