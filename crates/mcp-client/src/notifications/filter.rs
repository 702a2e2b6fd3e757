use std::collections::BTreeSet;

use mcp_wire::{Era, method};
use raw_json::RawJson;

use crate::{ClientError, Connection, RequestOptions, ServerInfo};

impl Connection {
    /// Subscribes to a resource. Its updates arrive as `notifications/resources/updated` at [`events`](Self::events).
    ///
    /// A legacy server receives the request at once. For a modern server all subscriptions form one stream, which is
    /// reopened with this resource added.
    ///
    /// # Errors
    /// Returns the errors of [`request`](Self::request).
    ///
    /// # Cancellation
    /// If the future is dropped, a legacy server may have received the request or not. A modern server is told as soon
    /// as the future is polled.
    pub async fn subscribe(&self, uri: &str, options: RequestOptions) -> Result<(), ClientError> {
        if self.server().era() == Era::Legacy {
            self.request(method::RESOURCES_SUBSCRIBE, Some(uri_params(uri)), options)
                .await?;
        } else if self.subscribed_uris().insert(uri.to_owned()) {
            self.renew_subscription();
        }
        Ok(())
    }

    /// Ends a subscription started by [`subscribe`](Self::subscribe).
    ///
    /// # Errors
    /// Returns the errors of [`request`](Self::request).
    ///
    /// # Cancellation
    /// If the future is dropped, a legacy server may have received the request or not. A modern server is told as soon
    /// as the future is polled.
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

/// Builds the params of `subscriptions/listen`: the list changes that the server supports, and these resources. Returns
/// `None` if both are empty.
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
