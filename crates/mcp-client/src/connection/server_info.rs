use mcp_wire::{Era, Revision, meta, meta_key};
use raw_json::{JsonKind, RawJson};

use crate::{ClientError, ClientErrorKind, ConnectionOptions};

/// Information that a server provides in the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Negotiated revision.
    pub revision: Revision,
    /// Name and version of the server, as it wrote them.
    pub implementation: Option<RawJson>,
    /// Capabilities of the server, as it wrote them.
    pub capabilities: RawJson,
    /// Instructions for the model of the client, a JSON string.
    pub instructions: Option<RawJson>,
}

impl ServerInfo {
    /// Creates the description of a server that provides nothing but its revision.
    #[must_use]
    pub fn new(revision: Revision) -> Self {
        Self {
            revision,
            implementation: None,
            capabilities: RawJson::object(),
            instructions: None,
        }
    }

    /// Negotiated era.
    #[must_use]
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// Name that the server claims. For people to read, never to trust.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.implementation.as_ref()?.get("name")?.string()
    }

    /// Version that the server claims.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.implementation.as_ref()?.get("version")?.string()
    }

    /// `true` if the server declares a capability, such as `tools`.
    #[must_use]
    pub fn has_capability(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some()
    }

    /// `true` if the server notifies of changes of any of its lists.
    pub(crate) fn has_any_list_changed(&self) -> bool {
        ["tools", "resources", "prompts"]
            .into_iter()
            .any(|capability| self.has_list_changed(capability))
    }

    /// `true` if the server notifies of changes of the list of this capability, such as `tools`.
    #[must_use]
    pub fn has_list_changed(&self, capability: &str) -> bool {
        self.has_flag(capability, "listChanged")
    }

    /// `true` if a member of a capability is `true`.
    pub(crate) fn has_flag(&self, capability: &str, member: &str) -> bool {
        self.capabilities
            .get(capability)
            .and_then(|capability| capability.get(member))
            .is_some_and(|flag| flag.as_str() == "true")
    }

    /// Parses the result of `initialize`.
    pub(crate) fn from_initialize(result: &RawJson) -> Result<Self, ClientError> {
        let version = result.get("protocolVersion").and_then(|version| version.string());
        let version = version
            .ok_or_else(|| ClientError::protocol("the result of `initialize` has no `protocolVersion`"))?;
        match version.parse::<Revision>() {
            Ok(revision) if revision.era() == Era::Legacy => Ok(Self::from_result(revision, result)),
            _ => {
                let detail = format!(
                    "the server opened the connection with the unsupported revision `{}`",
                    excerpt(&version)
                );
                Err(ClientError::new(ClientErrorKind::Unsupported(detail)))
            }
        }
    }

    /// Parses the result of `server/discover`.
    pub(crate) fn from_discover(result: &RawJson) -> Result<Self, ClientError> {
        let supported = result
            .get("supportedVersions")
            .filter(|versions| versions.kind() == JsonKind::Array);
        let supported = supported.ok_or_else(|| {
            ClientError::protocol("the result of `server/discover` has no `supportedVersions`")
        })?;
        let supported: Vec<String> = supported.to().unwrap_or_default();
        let mut known: Vec<Revision> = supported
            .iter()
            .filter_map(|version| version.parse().ok())
            .collect();
        known.retain(|revision| revision.era() == Era::Modern);
        match known.into_iter().max() {
            Some(revision) => Ok(Self::from_result(revision, result)),
            None => Err(ClientError::new(ClientErrorKind::Unsupported(format!(
                "the server supports none of the client's revisions, only {}",
                excerpt(&supported.join(", "))
            )))),
        }
    }

    fn from_result(revision: Revision, result: &RawJson) -> Self {
        let object = |value: &RawJson| value.kind() == JsonKind::Object;
        let of_meta = || meta(result)?.get(meta_key::SERVER_INFO);
        // The values live as long as the connection, and their message may be padded.
        let detached = |value: RawJson| value.detached();
        Self {
            revision,
            implementation: result
                .get("serverInfo")
                .or_else(of_meta)
                .filter(object)
                .map(detached),
            capabilities: result
                .get("capabilities")
                .filter(object)
                .map_or(RawJson::object(), detached),
            instructions: result
                .get("instructions")
                .filter(|text| text.kind() == JsonKind::String)
                .map(detached),
        }
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Name and version of this client.
pub(crate) fn client_info(options: &ConnectionOptions) -> RawJson {
    RawJson::from_members(&[
        ("name", RawJson::from(options.client_name.as_str())),
        ("version", RawJson::from(options.client_version.as_str())),
    ])
}

/// Params of `initialize`.
pub(crate) fn initialize_params(options: &ConnectionOptions) -> RawJson {
    RawJson::from_members(&[
        ("protocolVersion", RawJson::from(Revision::LATEST_LEGACY.as_str())),
        ("capabilities", options.handlers.capabilities()),
        ("clientInfo", client_info(options)),
    ])
}

/// Members of `_meta` of every modern request.
pub(crate) fn modern_meta(options: &ConnectionOptions, revision: Revision) -> Vec<(&'static str, RawJson)> {
    vec![
        (meta_key::PROTOCOL_VERSION, RawJson::from(revision.as_str())),
        (meta_key::CLIENT_CAPABILITIES, options.handlers.capabilities()),
        (meta_key::CLIENT_INFO, client_info(options)),
    ]
}
