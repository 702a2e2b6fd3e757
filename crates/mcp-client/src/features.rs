//! What servers offer beside tools.

use std::collections::BTreeSet;

use mcp_wire::{Era, method};
use raw_json::RawJson;

use crate::{ClientError, ClientErrorKind, Connection, PageLimits, RequestOptions, ServerInfo};

impl Connection {
    /// Lists the resources of the server, as [`list_tools`](Self::list_tools) does with tools.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_resources(&self) -> Result<Vec<RawJson>, ClientError> {
        self.list(method::RESOURCES_LIST, "resources", PageLimits::default())
            .await
    }

    /// Lists the templates of resources, as [`list_tools`](Self::list_tools) does with tools.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_resource_templates(&self) -> Result<Vec<RawJson>, ClientError> {
        self.list(
            method::RESOURCES_TEMPLATES_LIST,
            "resourceTemplates",
            PageLimits::default(),
        )
        .await
    }

    /// Lists the prompts of the server, as [`list_tools`](Self::list_tools) does with tools.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_prompts(&self) -> Result<Vec<RawJson>, ClientError> {
        self.list(method::PROMPTS_LIST, "prompts", PageLimits::default())
            .await
    }

    /// Completes an argument of a prompt or template; `params` and result as the protocol writes them.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn complete(&self, params: RawJson, options: RequestOptions) -> Result<RawJson, ClientError> {
        self.request(method::COMPLETION_COMPLETE, Some(params), options)
            .await
    }

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
        } else if self.subscribed().insert(uri.to_owned()) {
            self.listen_anew();
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
        } else if self.subscribed().remove(uri) {
            self.listen_anew();
        }
        Ok(())
    }

    /// Asks whether the server is there: a legacy one by `ping`, a modern one by `server/discover`. Any answer says that it
    /// is, an error as well.
    ///
    /// # Errors
    /// As [`request`](Self::request), but for [`ClientErrorKind::Rpc`].
    pub async fn ping(&self, options: RequestOptions) -> Result<(), ClientError> {
        let question = match self.server().era() {
            Era::Legacy => method::PING,
            Era::Modern => method::DISCOVER,
        };
        match self.request(question, None, options).await {
            Err(error) if !matches!(error.kind(), ClientErrorKind::Rpc(_)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Says which log messages a legacy server is to send, such as `warning` and worse.
    ///
    /// # Errors
    /// As [`request`](Self::request); [`ClientErrorKind::Unsupported`] for a modern server, which reads the level in the
    /// `_meta` of each request ([`mcp_wire::meta_key::LOG_LEVEL`]).
    pub async fn set_log_level(&self, level: &str, options: RequestOptions) -> Result<(), ClientError> {
        if self.server().era() == Era::Modern {
            let detail = "a modern server reads the log level in `_meta` of each request";
            return Err(ClientError::new(ClientErrorKind::Unsupported(detail.to_owned())));
        }
        let params = RawJson::from_members(&[("level", RawJson::from(level))]);
        self.request(method::LOGGING_SET_LEVEL, Some(params), options)
            .await?;
        Ok(())
    }
}

/// What `subscriptions/listen` asks for: the changes that the server says it tells, and these resources. Nothing when
/// there is nothing to ask for.
pub(crate) fn listen_filter(server: &ServerInfo, resources: &BTreeSet<String>) -> Option<RawJson> {
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
