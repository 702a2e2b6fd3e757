use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    sync::Arc,
    time::Duration,
};

use mcp_client::{EraChoice, HealthCheck};
use sha2::{Digest as _, Sha256};
use tool_core::{DefinitionPolicy, ListLimits, Pattern, ResourceUri, SecretError, Secrets, outward_name};

use crate::ServerTarget;

/// The executor kind of MCP servers.
pub(crate) const EXECUTOR_KIND: &str = "mcp";

/// Settings of an MCP server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// Name of the server, unique among servers.
    pub name: String,
    /// The way to reach the server.
    pub target: ServerTarget,
    /// Time limit of one call of a tool. The default of the configuration applies if absent.
    pub timeout: Option<Duration>,
    /// Time limit for the server to start and list its tools.
    pub start_timeout: Duration,
    /// The only tools and prompts to offer, by their names at the server, and resources, by their URIs. All of them if
    /// absent.
    pub include: Option<Vec<Pattern>>,
    /// Tools and prompts to exclude, by their names at the server, and resources, by their URIs.
    pub exclude: Vec<Pattern>,
    /// Other names for tools, by their names at the server.
    pub rename: BTreeMap<String, String>,
    /// Prefix of the names of tools and prompts. URIs of resources are never changed.
    pub prefix: String,
    /// Protocol era of the server.
    pub era: EraChoice,
    /// Maximum size of one message of the server, in bytes.
    pub max_message: usize,
    /// Rule by which calls share connections.
    pub isolation: Isolation,
    /// Maximum number of dedicated connections, in addition to the shared one.
    pub max_connections: usize,
    /// Request that finds out whether the server is healthy.
    pub health_check: HealthCheck,
    /// `true` to run the health check after every start. The start fails if the check does.
    pub check_at_start: bool,
    /// Interval of health checks. There are none if absent.
    pub check_interval: Option<Duration>,
    /// Interval at which lists are read again whose changes the server does not announce and for which it sends no time
    /// to live.
    pub refresh_interval: Duration,
    /// `true` to cache its lists between runs, if there is a [`ListCache`](crate::ListCache).
    pub keep_lists: bool,
    /// `true` to start the server only when it is needed, if its lists are cached.
    pub is_lazy: bool,
    /// Time without use after which the server is stopped until it is needed again. It is never stopped if absent,
    /// while a call, task or subscription is open, or while it has dedicated connections.
    pub idle_timeout: Option<Duration>,
    /// Place of the idempotency key in requests of a server that does once what it receives twice with the same key.
    /// There is none if absent.
    pub key_place: Option<KeyPlace>,
    /// Policy for entries of its lists that hold suspicious text.
    pub definitions: DefinitionPolicy,
    /// Limits of its lists and their entries.
    pub list_limits: ListLimits,
    /// Instructions to give instead of the server's. The server's own if absent, and none if empty.
    pub instructions: Option<String>,
}

/// Place of a call's idempotency key in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyPlace {
    /// The member of `_meta` with this key.
    Meta(String),
    /// The argument of this name, for tools that have it.
    Argument(String),
}

/// Decides which calls to a server share a connection. A client with a dedicated connection sees the lists of that
/// connection. All others see those of the shared connection.
///
/// Some servers list a tool only for clients that can be asked what the tool asks for. If no call uses the shared
/// connection ([`Session`](Self::Session), [`Principal`](Self::Principal)), it declares every capability and refuses
/// every request, so that such tools are on the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// A client that can be asked for something has a dedicated connection, if the server is of the legacy era, which
    /// asks in the middle of a call. Every other call uses the shared connection, and so do calls that find no
    /// connection left.
    #[default]
    Auto,
    /// All clients share one connection, over which a legacy server can ask nobody.
    Shared,
    /// Each session of a client has a dedicated connection. Clients without sessions have one of their principal for
    /// one call at a time.
    Session,
    /// Each principal has a dedicated connection. Clients that can be asked for different things do not share it.
    Principal,
}

impl ServerSettings {
    /// Settings of a server with the defaults. Its tools are named with its name and `__` in front.
    #[must_use]
    pub fn new(name: impl Into<String>, target: impl Into<ServerTarget>) -> Self {
        let name = name.into();
        Self {
            prefix: format!("{name}__"),
            name,
            target: target.into(),
            timeout: None,
            start_timeout: Duration::from_secs(20),
            include: None,
            exclude: Vec::new(),
            rename: BTreeMap::new(),
            era: EraChoice::default(),
            max_message: 16 * 1024 * 1024,
            isolation: Isolation::default(),
            max_connections: 16,
            health_check: HealthCheck::default(),
            check_at_start: false,
            check_interval: None,
            refresh_interval: Duration::from_secs(300),
            keep_lists: true,
            is_lazy: true,
            idle_timeout: None,
            key_place: None,
            definitions: DefinitionPolicy::default(),
            list_limits: ListLimits::default(),
            instructions: None,
        }
    }

    /// Sets the prefix of the names of tools and prompts.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the time limit of one call of a tool.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the time limit for the server to start and list its tools.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Sets the only tools, prompts and resources to offer.
    #[must_use]
    pub fn include(mut self, patterns: impl IntoIterator<Item = Pattern>) -> Self {
        self.include = Some(patterns.into_iter().collect());
        self
    }

    /// Sets the tools, prompts and resources to exclude.
    #[must_use]
    pub fn exclude(mut self, patterns: impl IntoIterator<Item = Pattern>) -> Self {
        self.exclude = patterns.into_iter().collect();
        self
    }

    /// Sets the protocol era of the server.
    #[must_use]
    pub fn era(mut self, era: EraChoice) -> Self {
        self.era = era;
        self
    }

    /// Sets the rule by which calls share connections.
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Sets the request that finds out whether the server is healthy.
    #[must_use]
    pub fn health_check(mut self, check: HealthCheck) -> Self {
        self.health_check = check;
        self
    }

    /// Returns `true` if a tool or prompt of this name is offered.
    pub(crate) fn offers_name(&self, own: &str) -> bool {
        let fits = |rule: &Pattern| rule.matches(own);
        self.include.as_ref().is_none_or(|rules| rules.iter().any(fits)) && !self.exclude.iter().any(fits)
    }

    /// Returns `true` if a resource or template of this URI is offered in the list.
    pub(crate) fn offers_listed_uri(&self, uri: &str) -> bool {
        self.offers_all()
            || ResourceUri::new("", uri).is_some_and(|uri| self.includes(&uri) && !self.excludes(&uri))
    }

    /// Returns `true` if a resource of this URI may be read or watched although the list does not contain it, for
    /// example as an instance of an offered template. A URI with `..` may not: links on the way make its target
    /// unknown.
    pub(crate) fn offers_unlisted_uri(&self, uri: &str, is_of_template: bool) -> bool {
        let is_taken = |uri: &ResourceUri<'_>| {
            (is_of_template || self.includes(uri)) && !self.excludes(uri) && !uri.has_dot_segments()
        };
        self.offers_all() || ResourceUri::new("", uri).as_ref().is_some_and(is_taken)
    }

    fn offers_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_empty()
    }

    fn includes(&self, uri: &ResourceUri<'_>) -> bool {
        self.include.as_ref().is_none_or(|rules| uri.is_within(rules))
    }

    fn excludes(&self, uri: &ResourceUri<'_>) -> bool {
        self.exclude.iter().any(|rule| uri.could_match(rule))
    }

    /// Outward name of a tool.
    #[must_use]
    pub fn outward_tool_name(&self, tool: &str) -> String {
        let own = self.rename.get(tool).map_or(tool, String::as_str);
        outward_name(&format!("{}{own}", self.prefix))
    }

    /// Returns the prefix as it stands in outward names. It is cut if it leaves no room for the name.
    pub(crate) fn outward_prefix(&self) -> String {
        const LONGEST: usize = tool_core::MAX_NAME - 9;
        let mut prefix = match self.prefix.as_str() {
            "" => String::new(),
            prefix => outward_name(prefix),
        };
        prefix.truncate(LONGEST);
        prefix
    }

    /// Returns other names by which a tool may be known: its name in the server's list, and the name that it would have
    /// there if it was not renamed.
    pub(crate) fn alternative_names(&self, tool: &str, shown_as: &str) -> Vec<Arc<str>> {
        // The usual case.
        if !self.rename.contains_key(tool) && shown_as.strip_prefix(&self.prefix) == Some(tool) {
            return Vec::new();
        }
        let unnamed = outward_name(&format!("{}{tool}", self.prefix));
        let mut names = vec![self.outward_tool_name(tool), unnamed];
        names.dedup();
        names.retain(|name| name != shown_as);
        names.into_iter().map(Arc::from).collect()
    }

    /// SHA-256 of the server's target as it is written, with references instead of their values.
    pub(crate) fn target_digest(&self) -> [u8; 32] {
        let mut hasher = HashWriter(Sha256::new());
        write!(hasher, "{:?}", self.target).expect("hashing does not fail");
        hasher.0.finalize().into()
    }

    /// Checks, without waiting, that every reference has a value.
    ///
    /// # Errors
    /// Returns the first reference without a value.
    pub fn check(&self, secrets: &dyn Secrets) -> Result<(), SecretError> {
        self.target
            .texts()
            .iter()
            .try_for_each(|text| text.check(secrets))
    }
}

/// Hashes text as it is written, so that the whole text is never held.
struct HashWriter(Sha256);

impl fmt::Write for HashWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tool_core::Template;
    use tool_testkit::{file_readers, file_spelling};

    use super::*;
    use crate::HttpTarget;

    fn settings(include: Option<&str>, exclude: Option<&str>) -> ServerSettings {
        let target = HttpTarget::new(Template::parse("http://localhost").unwrap());
        let rules = |rule: Option<&str>| rule.map(|rule| vec![Pattern::new(rule)]);
        ServerSettings {
            include: rules(include),
            exclude: rules(exclude).unwrap_or_default(),
            ..ServerSettings::new("files", target)
        }
    }

    proptest! {
        #[test]
        fn a_uri_that_any_reader_takes_for_an_excluded_file_is_not_offered(
            choices in prop::collection::vec(any::<u8>(), 100),
        ) {
            let uri = file_spelling("/secret/key.txt", &choices);
            let is_read = |path: Option<String>| path.is_some_and(|path| path.starts_with("/secret/"));
            if file_readers().iter().any(|(_, read)| is_read(read(&uri))) {
                for settings in [settings(None, Some("file:///secret/*")), settings(Some("file:///open/*"), None)] {
                    prop_assert!(!settings.offers_listed_uri(&uri), "{uri:?}");
                    prop_assert!(!settings.offers_unlisted_uri(&uri, false), "{uri:?}");
                }
                prop_assert!(!settings(None, Some("file:///secret/*")).offers_unlisted_uri(&uri, true), "{uri:?}");
            }
        }
    }
}
