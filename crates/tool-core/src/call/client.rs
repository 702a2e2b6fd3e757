use std::sync::Arc;

use raw_json::RawJson;

use crate::{Ask, Caller, ClientKey};

/// Identifies a client to sources that keep connections for single clients. Two clients with equal identities share
/// their connections and see the same lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ClientIdentity {
    /// Key of the client: its session, or its principal if sessions cannot be told apart.
    pub key: ClientKey,
    /// Principal that the client acts for. A session is visible to its own principal only.
    pub principal: Arc<str>,
    /// Tenant of the principal.
    pub tenant: Arc<str>,
    /// Questions that the client declared to answer.
    pub capabilities: ClientCapabilities,
}

/// Set of client capabilities that a server can tell apart: `elicitation`, `sampling`, `roots` and their known
/// members. Clients that declare the same capabilities in other words, or extra unknown members, have equal sets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ClientCapabilities(u16);

/// Clients that one connection of a source serves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientGroup {
    /// Identity that the connection is reserved for.
    pub identity: ClientIdentity,
    /// `true` if the connection serves every client of the principal, whatever its key.
    pub is_principal: bool,
}

impl ClientGroup {
    /// Creates the group of the clients that a connection is reserved for: those with the identity's key, or every client of
    /// its principal.
    #[must_use]
    pub fn new(identity: ClientIdentity, is_principal: bool) -> Self {
        Self {
            identity,
            is_principal,
        }
    }
}

/// Known capabilities and their members.
const DECLARED: [(&str, &[&str]); 3] = [
    ("elicitation", &["form", "url"]),
    ("sampling", &["context", "tools"]),
    ("roots", &["listChanged"]),
];

impl ClientCapabilities {
    /// Reads the declared capabilities of a client.
    #[must_use]
    pub fn from_json(declared: &RawJson) -> Self {
        let mut bits = 0;
        for (key, members) in DECLARED {
            let capability = declared.get(key);
            let has_member = |name: &&str| {
                let value = capability.as_ref().and_then(|capability| capability.get(name));
                value.is_some_and(|value| !matches!(value.as_str(), "false" | "null"))
            };
            bits = bits << 1 | u16::from(capability.is_some());
            for name in members {
                bits = bits << 1 | u16::from(has_member(name));
            }
        }
        Self(bits)
    }

    /// Returns `true` if the client answers no questions.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the capabilities as an object that [`ClientCapabilities::from_json`] reads.
    #[must_use]
    pub fn to_json(self) -> RawJson {
        let n_bits: usize = DECLARED.iter().map(|(_, members)| 1 + members.len()).sum();
        let mut left = n_bits;
        let mut take = || {
            left -= 1;
            self.0 >> left & 1 == 1
        };
        let mut declared = Vec::new();
        for (key, members) in DECLARED {
            let is_declared = take();
            let members: Vec<_> = members
                .iter()
                .filter(|_| take())
                .map(|name| match *name {
                    "listChanged" => (*name, RawJson::from(true)),
                    _ => (*name, RawJson::object()),
                })
                .collect();
            if is_declared {
                declared.push((key, RawJson::from_members(&members)));
            }
        }
        RawJson::from_members(&declared)
    }
}

impl ClientIdentity {
    /// Creates the identity of the client of a call or request. `ask` is the connection to the client, if there is
    /// one; without it, `key` and `capabilities` describe the client as far as the edge knows it.
    #[must_use]
    pub fn new(
        ask: Option<&dyn Ask>,
        key: Option<&ClientKey>,
        capabilities: ClientCapabilities,
        caller: &Caller,
    ) -> Self {
        let principal = &caller.principal;
        let known = ask.map(Ask::client).or_else(|| key.cloned());
        Self {
            key: known.unwrap_or_else(|| ClientKey::Principal(Arc::clone(principal))),
            principal: Arc::clone(principal),
            tenant: Arc::clone(&caller.tenant),
            capabilities: ask.map_or(capabilities, |ask| {
                ClientCapabilities::from_json(&ask.capabilities())
            }),
        }
    }
}

impl ClientGroup {
    /// Returns `true` if the connection serves this client.
    #[must_use]
    pub fn includes(&self, client: &ClientIdentity) -> bool {
        let own = &self.identity;
        own.principal == client.principal
            && own.tenant == client.tenant
            && own.capabilities == client.capabilities
            && (self.is_principal || own.key == client.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(declared: &str) -> ClientCapabilities {
        ClientCapabilities::from_json(&RawJson::parse(declared.to_owned()).expect("JSON"))
    }

    #[test]
    fn every_set_of_capabilities_is_read_back_from_its_json() {
        for declared in [
            "{}",
            r#"{"elicitation":{}}"#,
            r#"{"elicitation":{"url":{}},"roots":{}}"#,
            r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}"#,
        ] {
            let set = capabilities(declared);
            assert_eq!(set.to_json(), RawJson::parse(declared.to_owned()).expect("JSON"));
            assert_eq!(ClientCapabilities::from_json(&set.to_json()), set, "{declared}");
        }
    }

    #[test]
    fn capabilities_that_no_server_can_tell_apart_are_equal() {
        let plain = capabilities(r#"{"elicitation":{"form":{}}}"#);
        assert_eq!(
            plain,
            capabilities(r#"{"x":{},"elicitation":{"form":{"n":1},"url":null}}"#)
        );
        assert_ne!(plain, capabilities(r#"{"elicitation":{}}"#));
        assert!(capabilities(r#"{"tasks":{}}"#).is_empty());
    }

    #[test]
    fn a_group_holds_the_clients_of_its_own_principal_and_tenant_only() {
        let client = |key: &str, principal: &str, tenant: &str| {
            let mut caller = Caller::new(principal);
            caller.tenant = tenant.into();
            let key = ClientKey::Session(key.into());
            ClientIdentity::new(None, Some(&key), ClientCapabilities::default(), &caller)
        };
        let group = |is_principal| ClientGroup {
            identity: client("1", "anna", "a"),
            is_principal,
        };
        for (key, principal, tenant, of_session, of_principal) in [
            ("1", "anna", "a", true, true),
            ("2", "anna", "a", false, true),
            ("1", "otto", "a", false, false),
            ("1", "anna", "b", false, false),
        ] {
            let client = client(key, principal, tenant);
            assert_eq!(group(false).includes(&client), of_session, "{client:?}");
            assert_eq!(group(true).includes(&client), of_principal, "{client:?}");
        }
    }
}
