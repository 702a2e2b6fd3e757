use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use mcp_wire::{Id, Request, RpcError, code, meta_key, method};
use raw_json::{Kind, RawJson};

use crate::protocol::object;

/// What a listening client wants to be told.
#[derive(Debug)]
pub(crate) struct Wants {
    /// The subscription of the modern era that every notification is marked with.
    subscription: Option<Id>,
    /// The lists whose changes are wanted, in the order of [`LISTS`]; legacy clients want all.
    lists: [bool; LISTS.len()],
    /// The resources that are watched.
    watched: Mutex<BTreeSet<String>>,
}

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

/// How many resources one client may watch on one connection.
const MAX_WATCHED: usize = 1024;
/// The longest URI of a watched resource.
const MAX_URI: usize = 8 * 1024;

impl Wants {
    /// What a legacy client wants: every notice, but of resources only those that it has subscribed to.
    pub(crate) fn legacy() -> Self {
        Self {
            subscription: None,
            lists: [true; LISTS.len()],
            watched: Mutex::default(),
        }
    }

    /// Reads `subscriptions/listen`; what the server does not offer is left out.
    pub(crate) fn subscription(request: &Request, capabilities: &RawJson) -> Result<Self, RpcError> {
        let invalid = |message: &str| RpcError::new(code::INVALID_PARAMS, message);
        let filter = request
            .params
            .as_ref()
            .and_then(|params| params.get("notifications"));
        let filter = filter.filter(|filter| filter.kind() == Kind::Object);
        let filter = filter.ok_or_else(|| invalid("`notifications` must be an object"))?;
        let wants = Self {
            subscription: Some(request.id.clone()),
            lists: LISTS.map(|(_, key, capability)| {
                is_true(&filter, key) && offers(capabilities, capability, "listChanged")
            }),
            watched: Mutex::default(),
        };
        if let Some(uris) = filter.get("resourceSubscriptions") {
            let texts: Option<Vec<String>> = uris.items().map(|uri| uri.string()).collect();
            let texts = texts.filter(|_| uris.kind() == Kind::Array);
            let texts =
                texts.ok_or_else(|| invalid("`resourceSubscriptions` must be an array of strings"))?;
            if offers(capabilities, "resources", "subscribe") {
                texts.into_iter().try_for_each(|uri| wants.watch(uri))?;
            }
        }
        Ok(wants)
    }

    /// Whether a server with these capabilities ever has something to tell.
    pub(crate) fn are_offered(capabilities: &RawJson) -> bool {
        offers(capabilities, "resources", "subscribe")
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
        let watched = self.watched();
        if !watched.is_empty() {
            let uris = RawJson::from_serialize(&watched).expect("strings can be written");
            filter.push(("resourceSubscriptions", uris));
        }
        let params = object(&[("notifications", object(&filter))]);
        self.frame(method::SUBSCRIPTIONS_ACKNOWLEDGED, Some(&params))
    }

    /// The answer to a subscription that the server ends.
    pub(crate) fn end(&self) -> Option<Vec<u8>> {
        let id = self.subscription.as_ref()?;
        let meta = object(&[(meta_key::SUBSCRIPTION_ID, id.as_raw().clone())]);
        let result = object(&[("resultType", RawJson::from("complete")), ("_meta", meta)]);
        Some(mcp_wire::result(id, &result))
    }

    /// Whether a notification is wanted; `uri` is that of the resource that it is about.
    pub(crate) fn includes(&self, method: &str, uri: Option<&str>) -> bool {
        if method == method::RESOURCES_UPDATED {
            return uri.is_some_and(|uri| self.watches(uri));
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

    /// Begins to watch a resource.
    pub(crate) fn watch(&self, uri: String) -> Result<(), RpcError> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if uri.len() > MAX_URI || watched.len() >= MAX_WATCHED && !watched.contains(&uri) {
            let message =
                format!("at most {MAX_WATCHED} resources with URIs of {MAX_URI} bytes can be watched");
            return Err(RpcError::new(code::INVALID_PARAMS, message));
        }
        watched.insert(uri);
        Ok(())
    }

    /// Watches none but these.
    pub(crate) fn watch_only(&self, uris: &[String]) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|uri| uris.contains(uri));
    }

    /// Watches a resource no longer.
    pub(crate) fn unwatch(&self, uri: &str) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.remove(uri);
    }

    pub(crate) fn watched(&self) -> Vec<String> {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.iter().cloned().collect()
    }

    /// Whether a resource is watched, or one that it is part of.
    fn watches(&self, uri: &str) -> bool {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.contains(uri)
            || watched.iter().any(|whole| {
                let rest = uri.strip_prefix(whole.as_str());
                rest.is_some_and(|rest| whole.ends_with('/') || rest.starts_with(['/', '?', '#']))
            })
    }
}

fn offers(capabilities: &RawJson, capability: &str, feature: &str) -> bool {
    capabilities
        .get(capability)
        .is_some_and(|capability| is_true(&capability, feature))
}

fn is_true(object: &RawJson, key: &str) -> bool {
    object.get(key).is_some_and(|value| value.as_str() == "true")
}
