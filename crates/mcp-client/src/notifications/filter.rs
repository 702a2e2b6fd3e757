use std::collections::BTreeSet;

use mcp_wire::{Era, method};
use raw_json::RawJson;

use crate::{ClientError, Connection, RequestOptions, ServerInfo};

impl Connection {
    /// Asks for news of a resource, which come as `notifications/resources/updated` of [`events`](Self::events).
    ///
    /// A legacy server is asked at once. A modern one is asked for everything that is wanted in one stream, which is
    /// opened anew with this resource in it.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn subscribe(&self, uri: &str, options: RequestOptions) -> Result<(), ClientError> {
        if self.server().era() == Era::Legacy {
            self.request(method::RESOURCES_SUBSCRIBE, Some(uri_params(uri)), options)
                .await?;
        } else if self.subscribed_uris().insert(uri.to_owned()) {
            self.renew_subscription();
        }
        Ok(())
    }

    /// Ends [`subscribe`](Self::subscribe).
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn unsubscribe(&self, uri: &str, options: RequestOptions) -> Result<(), ClientError> {
        if self.server().era() == Era::Legacy {
            self.request(method::RESOURCES_UNSUBSCRIBE, Some(uri_params(uri)), options)
                .await?;
        } else if self.subscribed_uris().remove(uri) {
            self.renew_subscription();
        }
        Ok(())
    }
}

/// What `subscriptions/listen` asks for: the changes that the server says it tells, and these resources. Nothing when
/// there is nothing to ask for.
pub(crate) fn subscription_filter(server: &ServerInfo, resources: &BTreeSet<String>) -> Option<RawJson> {
    let mut members = Vec::new();
    for (capability, key) in [
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ] {
        if server.has_list_changed(capability) {
            members.push((key, RawJson::from(true)));
        }
    }
    if !resources.is_empty() {
        let list = RawJson::from_serialize(resources).expect("strings are JSON");
        members.push(("resourceSubscriptions", list));
    }
    if members.is_empty() {
        return None;
    }
    Some(RawJson::from_members(&[(
        "notifications",
        RawJson::from_members(&members),
    )]))
}

fn uri_params(uri: &str) -> RawJson {
    RawJson::from_members(&[("uri", RawJson::from(uri))])
}
