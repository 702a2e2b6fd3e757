use mcp_wire::{Id, Request, RpcError, code, extension, meta_key, method};
use raw_json::{JsonKind, RawJson};

use super::uri_set::UriSet;

/// Notifications that one client wants: changes of lists, and of the resources and tasks that it has subscribed to.
#[derive(Debug)]
pub(crate) struct SubscriptionFilter {
    /// Subscription of the modern era, whose id every notification carries.
    subscription: Option<Id>,
    /// `true` for each list whose changes are wanted, in the order of [`LISTS`]; legacy clients want all.
    lists: [bool; LISTS.len()],
    /// Resources, by their URIs.
    pub(crate) resources: UriSet,
    /// Tasks, by their ids.
    pub(crate) tasks: UriSet,
}

/// Notifications of changed lists: name, key in the filter, and capability.
const LISTS: [(&str, &str, &str); 3] = [
    (method::TOOLS_LIST_CHANGED, "toolsListChanged", "tools"),
    (method::PROMPTS_LIST_CHANGED, "promptsListChanged", "prompts"),
    (
        method::RESOURCES_LIST_CHANGED,
        "resourcesListChanged",
        "resources",
    ),
];

/// Key of the resources in the filter of a subscription.
const RESOURCES: &str = "resourceSubscriptions";
/// Key of the tasks in the filter of a subscription.
const TASKS: &str = "taskIds";

impl SubscriptionFilter {
    /// Creates the filter of a legacy client: all notifications, except those of resources that it has not subscribed to.
    pub(crate) fn for_legacy_client() -> Self {
        Self {
            subscription: None,
            lists: [true; LISTS.len()],
            resources: UriSet::default(),
            tasks: UriSet::default(),
        }
    }

    /// Reads `subscriptions/listen`, without the parts that the server does not offer.
    pub(crate) fn from_request(request: &Request, capabilities: &RawJson) -> Result<Self, RpcError> {
        let invalid = |message: &str| RpcError::new(code::INVALID_PARAMS, message);
        let wanted = request
            .params
            .as_ref()
            .and_then(|params| params.get("notifications"));
        let wanted = wanted.filter(|wanted| wanted.kind() == JsonKind::Object);
        let wanted = wanted.ok_or_else(|| invalid("`notifications` must be an object"))?;
        let filter = Self {
            subscription: Some(request.id.clone()),
            lists: LISTS.map(|(_, key, capability)| {
                is_true(&wanted, key) && offers(capabilities, capability, "listChanged")
            }),
            resources: UriSet::default(),
            tasks: UriSet::default(),
        };
        let strings = |key: &str| {
            let Some(list) = wanted.get(key) else {
                return Ok(Vec::new());
            };
            let texts: Option<Vec<String>> = list.items().map(|text| text.string()).collect();
            texts
                .filter(|_| list.kind() == JsonKind::Array)
                .ok_or_else(|| invalid(&format!("`{key}` must be an array of strings")))
        };
        let (uris, ids) = (strings(RESOURCES)?, strings(TASKS)?);
        if offers(capabilities, "resources", "subscribe") {
            uris.into_iter()
                .try_for_each(|uri| filter.resources.insert(uri))?;
        }
        if offers_tasks(capabilities) {
            ids.into_iter().try_for_each(|id| filter.tasks.insert(id))?;
        }
        Ok(filter)
    }

    /// Returns `true` if a server with these capabilities offers any notifications.
    pub(crate) fn is_supported_by(capabilities: &RawJson) -> bool {
        offers(capabilities, "resources", "subscribe")
            || offers_tasks(capabilities)
            || LISTS
                .iter()
                .any(|(_, _, capability)| offers(capabilities, capability, "listChanged"))
    }

    /// Returns the first message of a subscription: the filter that the server accepted.
    pub(crate) fn acknowledgement(&self) -> Vec<u8> {
        let mut accepted: Vec<(&str, RawJson)> = LISTS
            .iter()
            .zip(self.lists)
            .filter(|(_, is_wanted)| *is_wanted)
            .map(|((_, key, _), _)| (*key, RawJson::from(true)))
            .collect();
        for (key, set) in [(RESOURCES, &self.resources), (TASKS, &self.tasks)] {
            let uris = set.to_vec();
            if !uris.is_empty() {
                accepted.push((
                    key,
                    RawJson::from_serialize(&uris).expect("strings can be written"),
                ));
            }
        }
        let params = RawJson::from_members(&[("notifications", RawJson::from_members(&accepted))]);
        self.frame(method::SUBSCRIPTIONS_ACKNOWLEDGED, Some(&params))
    }

    /// Returns the response to a subscription that the server ends.
    pub(crate) fn final_response(&self) -> Option<Vec<u8>> {
        let id = self.subscription.as_ref()?;
        let meta = RawJson::from_members(&[(meta_key::SUBSCRIPTION_ID, id.as_raw().clone())]);
        let result = RawJson::from_members(&[("resultType", RawJson::from("complete")), ("_meta", meta)]);
        Some(mcp_wire::result(id, &result))
    }

    /// Returns the member of a notification's parameters that names its subject, if only subscribers of that subject
    /// receive it.
    pub(crate) fn subject_key(method: &str) -> Option<&'static str> {
        match method {
            method::RESOURCES_UPDATED => Some("uri"),
            method::TASKS_CHANGED => Some("taskId"),
            _ => None,
        }
    }

    /// Returns `true` if the client wants a notification; `subject` is the value under its
    /// [`subject_key`](Self::subject_key).
    pub(crate) fn matches(&self, method: &str, subject: Option<&str>) -> bool {
        match method {
            method::RESOURCES_UPDATED => return subject.is_some_and(|uri| self.resources.covers(uri)),
            method::TASKS_CHANGED => return subject.is_some_and(|id| self.tasks.contains(id)),
            _ => {}
        }
        match LISTS.iter().position(|(name, _, _)| *name == method) {
            Some(index) => self.lists[index],
            // The filter of the modern era lists all notifications.
            None => self.subscription.is_none(),
        }
    }

    /// Writes a notification for this client.
    pub(crate) fn frame(&self, method: &str, params: Option<&RawJson>) -> Vec<u8> {
        match &self.subscription {
            Some(id) => {
                let mark = [(meta_key::SUBSCRIPTION_ID, id.as_raw().clone())];
                mcp_wire::notification(method, Some(&mcp_wire::with_meta(params, &mark)))
            }
            None => mcp_wire::notification(method, params),
        }
    }

    /// Writes a notification of a changed resource for this client.
    pub(super) fn resource_updated(&self, uri: &str) -> Vec<u8> {
        let params = RawJson::from_members(&[("uri", RawJson::from(uri))]);
        self.frame(method::RESOURCES_UPDATED, Some(&params))
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
