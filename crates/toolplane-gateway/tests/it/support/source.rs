use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::watch;
use tool_testkit::TestTool;
use toolplane::core::{
    BoxFuture, Catalogue, ClientGroup, ClientIdentity, Descriptor, ErrorKind, Feature, OnUpdate, Source,
    SourceState, SourceStatus, ToolError, Update,
};

use super::raw;

/// A source whose tools, prompts and resources a test changes.
pub(crate) struct ChangingSource {
    catalogue: Mutex<Arc<Catalogue>>,
    revision: watch::Sender<u64>,
    /// Subscribed resources.
    subscribed: Mutex<BTreeSet<String>>,
    tell: Mutex<Vec<OnUpdate>>,
    /// Lists for single clients.
    own: Mutex<Option<(ClientGroup, Arc<Catalogue>)>>,
    /// Resources that these clients are subscribed to.
    own_subscribed: Mutex<BTreeSet<String>>,
}

impl ChangingSource {
    pub(crate) fn new(names: &[&str]) -> Arc<Self> {
        let changing = Self {
            catalogue: Mutex::default(),
            revision: watch::Sender::new(0),
            subscribed: Mutex::default(),
            tell: Mutex::default(),
            own: Mutex::default(),
            own_subscribed: Mutex::default(),
        };
        changing.set(names);
        Arc::new(changing)
    }

    /// Returns the subscribed resources.
    pub(crate) fn subscribed(&self) -> Vec<String> {
        let subscribed = self.subscribed.lock().expect("no test panics with it");
        subscribed.iter().cloned().collect()
    }

    /// Returns the resources that the clients with lists of their own are subscribed to.
    pub(crate) fn own_subscribed(&self) -> Vec<String> {
        let subscribed = self.own_subscribed.lock().expect("no test panics with it");
        subscribed.iter().cloned().collect()
    }

    /// Sends an update of a resource.
    pub(crate) fn update(&self, params: &str) {
        self.tell(&Update::Resource(raw(params)));
    }

    /// Sends an update.
    pub(crate) fn tell(&self, update: &Update) {
        for tell in &*self.tell.lock().expect("no test panics with it") {
            tell(update);
        }
    }

    /// Replaces the prompts and resources: features with their names or URIs.
    pub(crate) fn set_others(&self, others: &[(Feature, &str)]) {
        let others = others.iter().map(|(feature, key)| other_feature(*feature, key));
        let others: Vec<_> = others.map(Arc::new).collect();
        self.change(|catalogue| {
            let known = std::mem::take(&mut catalogue.others);
            // Unchanged features keep their descriptors, as with a real server.
            let kept = others
                .into_iter()
                .map(|new| known.iter().find(|old| **old == new).cloned().unwrap_or(new));
            catalogue.others = kept.collect();
        });
    }

    fn change(&self, change: impl FnOnce(&mut Catalogue)) {
        let mut catalogue = self.catalogue.lock().expect("no test panics with it");
        let mut next = Catalogue::new(catalogue.revision + 1, catalogue.tools.clone())
            .with_others(catalogue.others.clone());
        change(&mut next);
        let revision = next.revision;
        *catalogue = Arc::new(next);
        drop(catalogue);
        self.revision.send_replace(revision);
    }

    /// Offers tools of these names to these clients only, and sends an update. Without names, the clients see the shared tools.
    pub(crate) fn set_own(&self, clients: &ClientGroup, names: &[&str]) {
        let tools = names.iter().map(|name| Arc::new(behavior_tool(name))).collect();
        let others = [
            (Feature::Prompt, "own_prompt"),
            (Feature::Resource, "own://note"),
            (Feature::Resource, "test://both"),
        ];
        let others = others.map(|(feature, name)| Arc::new(other_feature(feature, name)));
        let catalogue = Arc::new(Catalogue::new(1, tools).with_others(others.into()));
        let own = (!names.is_empty()).then(|| (clients.clone(), catalogue));
        *self.own.lock().expect("no test panics with it") = own;
        self.tell(&Update::ClientLists {
            source: self.name().into(),
            clients: clients.clone(),
            changed: vec![Feature::Tool],
        });
    }

    pub(crate) fn set(&self, names: &[&str]) {
        let tools = names.iter().map(|name| Arc::new(behavior_tool(name))).collect();
        self.change(|catalogue| catalogue.tools = tools);
    }
}

/// Returns a tool that [`BehaviorExecutor`](super::BehaviorExecutor) runs.
pub(crate) fn behavior_tool(name: &str) -> Descriptor {
    let mut descriptor = TestTool::new(name).descriptor;
    descriptor.executor.kind = "acting".to_owned();
    descriptor
}

/// Returns a prompt, resource or template by its name or URI.
fn other_feature(feature: Feature, key: &str) -> Descriptor {
    let mut descriptor = behavior_tool(key);
    descriptor.feature = feature;
    descriptor.definition = Some(raw(&match feature {
        Feature::Prompt => format!(r#"{{"name":"{key}","arguments":[],"x":1e2}}"#),
        Feature::Resource => format!(r#"{{"uri":"{key}","name":"n","x":1e2}}"#),
        _ => format!(r#"{{"uriTemplate":"{key}","name":"n","x":1e2}}"#),
    }));
    if feature != Feature::Prompt {
        descriptor.uri = Some(key.into());
        descriptor.name = format!("s_{key}").into();
    }
    descriptor
}

impl Source for ChangingSource {
    fn name(&self) -> &'static str {
        "changing"
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.lock().expect("no test panics with it"))
    }

    fn snapshot_for(&self, client: &ClientIdentity) -> Option<Arc<Catalogue>> {
        let own = self.own.lock().expect("no test panics with it");
        let own = own.as_ref().filter(|(clients, _)| clients.includes(client));
        own.map(|(_, catalogue)| catalogue.clone())
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        let mut revision = self.revision.subscribe();
        Box::pin(async move {
            let _ = revision.wait_for(|revision| *revision != seen).await;
        })
    }

    fn may_hold(&self, _: Feature, _: &str) -> bool {
        false
    }

    fn subscribe<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        let mut subscribed = self.subscribed.lock().expect("no test panics with it");
        let result = match uri.contains("quiet") {
            true => Err(ToolError::new(ErrorKind::UpstreamError, "no news")),
            false => {
                subscribed.insert(uri.to_owned());
                Ok(())
            }
        };
        Box::pin(std::future::ready(result))
    }

    fn subscribe_for<'a>(
        &'a self,
        uri: &'a str,
        client: &'a ClientIdentity,
    ) -> BoxFuture<'a, Result<bool, ToolError>> {
        let is_own = self.snapshot_for(client).is_some();
        if is_own {
            let mut subscribed = self.own_subscribed.lock().expect("no test panics with it");
            subscribed.insert(uri.to_owned());
        }
        Box::pin(std::future::ready(Ok(is_own)))
    }

    fn end_unwatched(&self, _: Duration, is_watched: &dyn Fn(&str, &ClientGroup) -> bool) {
        let own = self.own.lock().expect("no test panics with it").clone();
        let mut subscribed = self.own_subscribed.lock().expect("no test panics with it");
        subscribed.retain(|uri| own.as_ref().is_some_and(|(clients, _)| is_watched(uri, clients)));
    }

    fn unsubscribe<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        self.subscribed
            .lock()
            .expect("no test panics with it")
            .remove(uri);
        Box::pin(std::future::ready(Ok(())))
    }

    fn on_update(&self, tell: OnUpdate) {
        self.tell.lock().expect("no test panics with it").push(tell);
    }

    fn status(&self) -> SourceStatus {
        {
            let mut status = SourceStatus::new(SourceState::Ready);
            status.n_tools = self.snapshot().tools.len();
            status
        }
    }
}
