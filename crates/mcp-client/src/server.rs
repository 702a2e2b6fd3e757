use mcp_wire::{Era, Revision, meta, meta_key};
use raw_json::{JsonKind, RawJson};

use crate::{ClientError, ClientErrorKind, ConnectionOptions};

/// What a server said of itself when the connection was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// The revision that both sides speak.
    pub revision: Revision,
    /// The name and version of the server, as it wrote them.
    pub implementation: Option<RawJson>,
    /// What the server offers, as it wrote it.
    pub capabilities: RawJson,
    /// How to use the server, a string.
    pub instructions: Option<RawJson>,
}

impl ServerInfo {
    /// The description of a server that speaks this revision and says nothing else of itself.
    #[must_use]
    pub fn new(revision: Revision) -> Self {
        Self {
            revision,
            implementation: None,
            capabilities: RawJson::object(),
            instructions: None,
        }
    }

    /// The era that both sides speak.
    #[must_use]
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// The name that the server gives itself: for people to read, never to trust.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.implementation.as_ref()?.get("name")?.string()
    }

    /// The version that the server gives itself.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.implementation.as_ref()?.get("version")?.string()
    }

    /// Whether the server declares a capability, such as `tools`.
    #[must_use]
    pub fn offers(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some()
    }

    /// Whether the server tells when one of its lists changes.
    pub(crate) fn tells_changes(&self) -> bool {
        ["tools", "resources", "prompts"]
            .into_iter()
            .any(|capability| self.has_list_changed(capability))
    }

    /// Whether the server tells when the list of this capability, such as `tools`, changes.
    #[must_use]
    pub fn has_list_changed(&self, capability: &str) -> bool {
        self.says(capability, "listChanged")
    }

    /// Whether a member of a capability is true.
    pub(crate) fn says(&self, capability: &str, member: &str) -> bool {
        self.capabilities
            .get(capability)
            .and_then(|capability| capability.get(member))
            .is_some_and(|flag| flag.as_str() == "true")
    }

    /// Reads the result of `initialize`.
    pub(crate) fn from_initialize(result: &RawJson) -> Result<Self, ClientError> {
        let version = result.get("protocolVersion").and_then(|version| version.string());
        let version = version
            .ok_or_else(|| ClientError::protocol("the result of `initialize` has no `protocolVersion`"))?;
        match version.parse::<Revision>() {
            Ok(revision) if revision.era() == Era::Legacy => Ok(Self::read(revision, result)),
            _ => {
                let detail = format!(
                    "the server opens the connection with revision `{}`",
                    short(&version)
                );
                Err(ClientError::new(ClientErrorKind::Unsupported(detail)))
            }
        }
    }

    /// Reads the result of `server/discover`.
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
            Some(revision) => Ok(Self::read(revision, result)),
            None => Err(ClientError::new(ClientErrorKind::Unsupported(format!(
                "the server speaks none of our revisions, only {}",
                short(&supported.join(", "))
            )))),
        }
    }

    fn read(revision: Revision, result: &RawJson) -> Self {
        let object = |value: &RawJson| value.kind() == JsonKind::Object;
        let of_meta = || meta(result)?.get(meta_key::SERVER_INFO);
        // They are kept as long as the connection, and the message that they stand in may be padded.
        let own = |value: RawJson| value.detached();
        Self {
            revision,
            implementation: result.get("serverInfo").or_else(of_meta).filter(object).map(own),
            capabilities: result
                .get("capabilities")
                .filter(object)
                .map_or(RawJson::object(), own),
            instructions: result
                .get("instructions")
                .filter(|text| text.kind() == JsonKind::String)
                .map(own),
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

/// What we say of ourselves.
pub(crate) fn client_info(options: &ConnectionOptions) -> RawJson {
    RawJson::from_members(&[
        ("name", RawJson::from(options.client_name.as_str())),
        ("version", RawJson::from(options.client_version.as_str())),
    ])
}

/// The parameters of `initialize`.
pub(crate) fn initialize_params(options: &ConnectionOptions) -> RawJson {
    RawJson::from_members(&[
        ("protocolVersion", RawJson::from(Revision::LATEST_LEGACY.as_str())),
        ("capabilities", options.handlers.capabilities()),
        ("clientInfo", client_info(options)),
    ])
}

/// What `_meta` of every modern request says.
pub(crate) fn modern_meta(options: &ConnectionOptions, revision: Revision) -> Vec<(&'static str, RawJson)> {
    vec![
        (meta_key::PROTOCOL_VERSION, RawJson::from(revision.as_str())),
        (meta_key::CLIENT_CAPABILITIES, options.handlers.capabilities()),
        (meta_key::CLIENT_INFO, client_info(options)),
    ]
}
