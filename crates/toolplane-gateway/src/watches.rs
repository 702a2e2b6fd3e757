use std::{collections::HashMap, sync::Arc, time::Duration};

use mcp_server::{Notifier, Peer};
use mcp_wire::method;
use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::time::{Instant, sleep};
use toolplane::{
    Toolplane,
    core::{Caller, ClientIdentity, ClientKey, ErrorKind, ToolError},
};

use crate::{client, identity::Identities};

/// The resources that clients watch: their servers are asked for news of each once, as long as anyone watches it.
#[derive(Debug, Default)]
pub(crate) struct Watches(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    watched: HashMap<String, Watch>,
    /// Those who tell clients, by number.
    notices: Vec<(u64, Notifier)>,
    last: u64,
}

#[derive(Debug)]
struct Watch {
    /// When somebody last asked for it.
    since: Instant,
    caller: Arc<Caller>,
}

/// How many resources are watched at most, by all clients together.
const MAX_WATCHED: usize = 4096;
/// How often is looked whether resources are still watched: clients leave without a word.
const LOOK: Duration = Duration::from_secs(30);
/// How long a resource is kept that nobody watches yet: who asks for it watches it soon after.
const GRACE: Duration = Duration::from_secs(30);

impl Watches {
    /// Begins to watch a resource for a caller that may read it, and for its client.
    pub(crate) async fn begin(
        &self,
        plane: &Toolplane,
        uri: &str,
        caller: &Arc<Caller>,
        client: &ClientIdentity,
    ) -> Result<(), ToolError> {
        let is_new = self.enter(uri, caller)?;
        let subscribed = plane.subscribe_for(uri, caller, client).await;
        if subscribed.is_err() && is_new {
            self.0.lock().watched.remove(uri);
        }
        subscribed
    }

    /// Notes that somebody asks for a resource, and tells whether nobody did before.
    fn enter(&self, uri: &str, caller: &Arc<Caller>) -> Result<bool, ToolError> {
        let watched = &mut self.0.lock().watched;
        let is_new = !watched.contains_key(uri);
        if is_new && watched.len() >= MAX_WATCHED {
            let message = format!("{MAX_WATCHED} resources are watched already");
            return Err(ToolError::new(ErrorKind::Overloaded, message));
        }
        let since = Instant::now();
        // The first caller stays: whether this one may read the resource is not known yet.
        let watch = watched.entry(uri.to_owned()).or_insert_with(|| Watch {
            since,
            caller: Arc::clone(caller),
        });
        watch.since = since;
        Ok(is_new)
    }

    /// Passes on what a server says of a resource that has changed.
    pub(crate) fn tell(&self, update: &RawJson) {
        let notices = self.0.lock().notices.clone();
        for (_, notices) in notices {
            notices.send(method::RESOURCES_UPDATED, Some(update));
        }
    }

    /// Tells one client what is nobody else's business; one of the modern era is told nothing unasked.
    pub(crate) fn tell_client(&self, client: &ClientKey, method: &str, params: &RawJson) {
        let Some(connection) = client::connection_of(client) else {
            return;
        };
        let notices = self.0.lock().notices.clone();
        for (_, notices) in notices {
            notices.send_to(connection, method, Some(params));
        }
    }

    /// Tells those clients whose business it is.
    pub(crate) fn tell_those(
        &self,
        is_for: impl Fn(&Peer) -> bool + Copy,
        method: &str,
        params: Option<&RawJson>,
    ) {
        let notices = self.0.lock().notices.clone();
        for (_, notices) in notices {
            notices.send_where(is_for, method, params);
        }
    }

    /// Tells those who watch a task how it is now.
    pub(crate) fn tell_task(&self, state: &RawJson) {
        let notices = self.0.lock().notices.clone();
        for (_, notices) in notices {
            notices.send(method::TASKS_CHANGED, Some(state));
        }
    }

    /// Whether anyone watches a task.
    pub(crate) fn is_task_watched(&self, id: &str) -> bool {
        let notices = self.0.lock().notices.clone();
        notices.iter().any(|(_, notices)| notices.has_task_subscriber(id))
    }

    /// Tells those who listen to these notices from now on, until the guard is dropped.
    pub(crate) fn announce(&self, notices: &Notifier) -> Announced<'_> {
        let mut state = self.0.lock();
        state.last += 1;
        let number = state.last;
        state.notices.push((number, notices.clone()));
        Announced {
            watches: self,
            number,
        }
    }

    /// Gives up what nobody watches any more, again and again. Never ends.
    pub(crate) async fn tidy(&self, plane: &Toolplane, identities: &Identities) {
        loop {
            sleep(LOOK).await;
            self.end_unwatched(plane, identities);
            for uri in self.take_left() {
                if let Err(error) = plane.unsubscribe(&uri).await {
                    tracing::debug!(uri, %error, "a server still tells of a resource that nobody watches");
                }
                // Somebody may have come meanwhile, whose request for news was ended with the others'.
                let caller = self
                    .0
                    .lock()
                    .watched
                    .get(&uri)
                    .map(|watch| Arc::clone(&watch.caller));
                if let Some(caller) = caller {
                    let _ = plane.subscribe(&uri, &caller).await;
                }
            }
        }
    }

    /// Gives up what servers tell single clients that do not watch it any more.
    fn end_unwatched(&self, plane: &Toolplane, identities: &Identities) {
        let notices = self.0.lock().notices.clone();
        let mut watchers: HashMap<String, Vec<Peer>> = HashMap::new();
        for (uri, peer) in notices.iter().flat_map(|(_, notices)| notices.subscribers()) {
            watchers.entry(uri).or_default().push(peer);
        }
        plane.end_unwatched(GRACE, &|uri, clients| {
            let of_uri = watchers.get(uri);
            of_uri.is_some_and(|peers| peers.iter().any(|peer| identities.is_in(peer, clients)))
        });
    }

    /// Takes out the resources that nobody watches.
    fn take_left(&self) -> Vec<String> {
        let mut state = self.0.lock();
        let State { watched, notices, .. } = &mut *state;
        if watched.is_empty() {
            return Vec::new();
        }
        let mut by_clients: Vec<String> = notices
            .iter()
            .flat_map(|(_, notices)| notices.subscribed_uris())
            .collect();
        by_clients.sort_unstable();
        let is_left = |uri: &String, watch: &mut Watch| {
            watch.since.elapsed() >= GRACE && by_clients.binary_search(uri).is_err()
        };
        watched.extract_if(is_left).map(|(uri, _)| uri).collect()
    }
}

/// Notices that are told as long as this lives.
pub(crate) struct Announced<'a> {
    watches: &'a Watches,
    number: u64,
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        let number = self.number;
        self.watches
            .0
            .lock()
            .notices
            .retain(|(known, _)| *known != number);
    }
}
