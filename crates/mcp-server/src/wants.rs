use std::{
    collections::BTreeSet,
    future::poll_fn,
    task::{Context, Poll, ready},
};

use mcp_wire::{Id, Request, RpcError, code, extension, meta_key, method};
use parking_lot::Mutex;
use raw_json::{JsonKind, RawJson};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::missed::{Missed, Notice};

/// What a listening client wants to be told.
#[derive(Debug)]
pub(crate) struct Wants {
    /// The subscription of the modern era that every notification is marked with.
    subscription: Option<Id>,
    /// The lists whose changes are wanted, in the order of [`LISTS`]; legacy clients want all.
    lists: [bool; LISTS.len()],
    /// The resources that are watched, by their URIs.
    pub(crate) resources: Watched,
    /// The tasks that are watched, by their ids.
    pub(crate) tasks: Watched,
    missed: Missed,
}

/// What is watched of one kind.
#[derive(Debug, Default)]
pub(crate) struct Watched(Mutex<BTreeSet<String>>);

/// A notification of a changed list: its name, the key that asks for it, and the capability it belongs to.
const LISTS: [(&str, &str, &str); 3] = [
    (method::TOOLS_LIST_CHANGED, "toolsListChanged", "tools"),
    (method::PROMPTS_LIST_CHANGED, "promptsListChanged", "prompts"),
    (
        method::RESOURCES_LIST_CHANGED,
        "resourcesListChanged",
        "resources",
    ),
];

/// The keys that name what is watched.
const RESOURCES: &str = "resourceSubscriptions";
const TASKS: &str = "taskIds";

/// How many resources, and how many tasks, one client may watch on one connection.
const MAX_WATCHED: usize = 1024;
/// The longest URI of a watched resource, or id of a task.
const MAX_KEY: usize = 8 * 1024;

impl Wants {
    /// What a legacy client wants: every notice, but of resources only those that it has subscribed to.
    pub(crate) fn legacy() -> Self {
        Self {
            subscription: None,
            lists: [true; LISTS.len()],
            resources: Watched::default(),
            tasks: Watched::default(),
            missed: Missed::default(),
        }
    }

    /// Reads `subscriptions/listen`; what the server does not offer is left out.
    pub(crate) fn subscription(request: &Request, capabilities: &RawJson) -> Result<Self, RpcError> {
        let invalid = |message: &str| RpcError::new(code::INVALID_PARAMS, message);
        let filter = request
            .params
            .as_ref()
            .and_then(|params| params.get("notifications"));
        let filter = filter.filter(|filter| filter.kind() == JsonKind::Object);
        let filter = filter.ok_or_else(|| invalid("`notifications` must be an object"))?;
        let wants = Self {
            subscription: Some(request.id.clone()),
            lists: LISTS.map(|(_, key, capability)| {
                is_true(&filter, key) && offers(capabilities, capability, "listChanged")
            }),
            resources: Watched::default(),
            tasks: Watched::default(),
            missed: Missed::default(),
        };
        let named = |key: &str| {
            let Some(list) = filter.get(key) else {
                return Ok(Vec::new());
            };
            let texts: Option<Vec<String>> = list.items().map(|text| text.string()).collect();
            texts
                .filter(|_| list.kind() == JsonKind::Array)
                .ok_or_else(|| invalid(&format!("`{key}` must be an array of strings")))
        };
        let (uris, ids) = (named(RESOURCES)?, named(TASKS)?);
        if offers(capabilities, "resources", "subscribe") {
            uris.into_iter().try_for_each(|uri| wants.resources.add(uri))?;
        }
        if offers_tasks(capabilities) {
            ids.into_iter().try_for_each(|id| wants.tasks.add(id))?;
        }
        Ok(wants)
    }

    /// Whether a server with these capabilities ever has something to tell.
    pub(crate) fn are_offered(capabilities: &RawJson) -> bool {
        offers(capabilities, "resources", "subscribe")
            || offers_tasks(capabilities)
            || LISTS
                .iter()
                .any(|(_, _, capability)| offers(capabilities, capability, "listChanged"))
    }

    /// The first message of a subscription: what it will bring.
    pub(crate) fn acknowledgement(&self) -> Vec<u8> {
        let mut filter: Vec<(&str, RawJson)> = LISTS
            .iter()
            .zip(self.lists)
            .filter(|(_, is_wanted)| *is_wanted)
            .map(|((_, key, _), _)| (*key, RawJson::from(true)))
            .collect();
        for (key, watched) in [(RESOURCES, &self.resources), (TASKS, &self.tasks)] {
            let watched = watched.all();
            if !watched.is_empty() {
                filter.push((
                    key,
                    RawJson::from_serialize(&watched).expect("strings can be written"),
                ));
            }
        }
        let params = RawJson::from_members(&[("notifications", RawJson::from_members(&filter))]);
        self.frame(method::SUBSCRIPTIONS_ACKNOWLEDGED, Some(&params))
    }

    /// The answer to a subscription that the server ends.
    pub(crate) fn end(&self) -> Option<Vec<u8>> {
        let id = self.subscription.as_ref()?;
        let meta = RawJson::from_members(&[(meta_key::SUBSCRIPTION_ID, id.as_raw().clone())]);
        let result = RawJson::from_members(&[("resultType", RawJson::from("complete")), ("_meta", meta)]);
        Some(mcp_wire::result(id, &result))
    }

    /// What a notification says what it is about by, if only those who watch that are told.
    pub(crate) fn key(method: &str) -> Option<&'static str> {
        match method {
            method::RESOURCES_UPDATED => Some("uri"),
            method::TASKS_CHANGED => Some("taskId"),
            _ => None,
        }
    }

    /// Whether a notification is wanted; `about` is what it has under its [`key`](Self::key).
    pub(crate) fn includes(&self, method: &str, about: Option<&str>) -> bool {
        match method {
            method::RESOURCES_UPDATED => return about.is_some_and(|uri| self.resources.has_part(uri)),
            method::TASKS_CHANGED => return about.is_some_and(|id| self.tasks.has(id)),
            _ => {}
        }
        match LISTS.iter().position(|(name, _, _)| *name == method) {
            Some(index) => self.lists[index],
            // The filter of the modern era names all that there is.
            None => self.subscription.is_none(),
        }
    }

    /// A notification as this client gets it.
    pub(crate) fn frame(&self, method: &str, params: Option<&RawJson>) -> Vec<u8> {
        match &self.subscription {
            Some(id) => {
                let mark = [(meta_key::SUBSCRIPTION_ID, id.as_raw().clone())];
                mcp_wire::notification(method, Some(&mcp_wire::with_meta(params, &mark)))
            }
            None => mcp_wire::notification(method, params),
        }
    }
}

impl Wants {
    /// Tells the client by a queue. What does not fit in waits outside of it, as far as it must not get lost.
    pub(crate) fn tell(&self, out: &mpsc::Sender<Vec<u8>>, method: &str, params: Option<&RawJson>) {
        let frame = self.frame(method, params);
        // Held all the time, so that nothing overtakes what it makes needless.
        let mut missed = self.missed.lock();
        let frame = match missed.is_empty() {
            true => match out.try_send(frame) {
                Err(TrySendError::Full(frame)) => frame,
                _ => return,
            },
            false => frame,
        };
        match Notice::of(method, params, &frame) {
            Some(notice) => missed.add(notice, || self.resources.all()),
            None => drop(out.try_send(frame)),
        }
    }

    /// The next message of what did not fit into the queue, when that is empty.
    pub(crate) fn poll_missed(&self, cx: &Context<'_>) -> Poll<Vec<u8>> {
        let mut missed = self.missed.lock();
        ready!(missed.poll(cx));
        let notice = missed.take().expect("there is one");
        Poll::Ready(self.missed_frame(notice))
    }

    /// Puts what did not fit into the queue there as soon as there is room. Ends when nobody reads it any longer.
    pub(crate) async fn tell_missed(&self, out: &mpsc::Sender<Vec<u8>>) {
        loop {
            poll_fn(|cx| self.missed.lock().poll(cx)).await;
            let Ok(place) = out.reserve().await else { return };
            let mut missed = self.missed.lock();
            if let Some(notice) = missed.take() {
                place.send(self.missed_frame(notice));
            }
        }
    }

    fn missed_frame(&self, notice: Notice) -> Vec<u8> {
        match notice {
            Notice::List(method) => self.frame(&method, None),
            Notice::Resource(uri) => {
                let params = RawJson::from_members(&[("uri", RawJson::from(&*uri))]);
                self.frame(method::RESOURCES_UPDATED, Some(&params))
            }
            Notice::Task(_, frame) => frame,
        }
    }
}

impl Watched {
    /// Begins to watch this.
    pub(crate) fn add(&self, key: String) -> Result<(), RpcError> {
        let mut watched = self.0.lock();
        if key.len() > MAX_KEY || watched.len() >= MAX_WATCHED && !watched.contains(&key) {
            let message = format!("at most {MAX_WATCHED} with names of {MAX_KEY} bytes can be watched");
            return Err(RpcError::new(code::INVALID_PARAMS, message));
        }
        watched.insert(key);
        Ok(())
    }

    /// Watches none but these.
    pub(crate) fn keep_only(&self, keys: &[String]) {
        self.0.lock().retain(|key| keys.contains(key));
    }

    /// Watches this no longer.
    pub(crate) fn remove(&self, key: &str) {
        self.0.lock().remove(key);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.lock().contains(key)
    }

    /// Whether a resource is watched, or one that it is part of.
    fn has_part(&self, uri: &str) -> bool {
        let watched = self.0.lock();
        watched.contains(uri)
            || watched.iter().any(|whole| {
                let rest = uri.strip_prefix(whole.as_str());
                rest.is_some_and(|rest| whole.ends_with('/') || rest.starts_with(['/', '?', '#']))
            })
    }
}

fn offers_tasks(capabilities: &RawJson) -> bool {
    let extensions = capabilities.get("extensions");
    extensions.is_some_and(|extensions| extensions.get(extension::TASKS).is_some())
}

fn offers(capabilities: &RawJson, capability: &str, feature: &str) -> bool {
    capabilities
        .get(capability)
        .is_some_and(|capability| is_true(&capability, feature))
}

fn is_true(object: &RawJson, key: &str) -> bool {
    object.get(key).is_some_and(|value| value.as_str() == "true")
}
