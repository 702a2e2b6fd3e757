use tool_core::{ClientGroup, ClientIdentity};

/// Identifies the client, or the clients of one principal, that a dedicated connection serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PoolKey {
    pub(crate) identity: ClientIdentity,
    /// `true` if a connection serves one call at a time.
    pub(crate) is_exclusive: bool,
    /// `true` if a connection serves all clients of the principal.
    pub(crate) is_principal: bool,
}

impl PoolKey {
    /// Returns the clients that a connection of this key serves.
    pub(crate) fn group(&self) -> ClientGroup {
        ClientGroup::new(self.identity.clone(), self.is_principal)
    }
}
