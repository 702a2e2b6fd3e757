//! Rules that match nothing.

use std::{collections::HashSet, fmt, sync::Arc};

use tool_core::{Feature, Pattern, ResourceUri};
use tool_registry::Snapshot;

use crate::{
    Toolplane,
    build::executors::{ServerRules, Servers},
};

/// Rule about names that matches no tool, prompt, resource or principal, although all names that it could match are known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct IdleRule {
    /// Server of the setting; `None` for the policy and for chaos.
    pub server: Option<String>,
    /// Setting, such as `blocklist`, `approval.required` or `exclude`; [`IdleRule::CHAOS`] for a rule of the chaos
    /// plan.
    pub setting: &'static str,
    /// Pattern as written.
    pub pattern: String,
    /// Pattern that was probably meant.
    pub suggestion: Option<String>,
}

impl IdleRule {
    /// Setting of a rule of the [chaos plan](crate::Builder::chaos).
    pub const CHAOS: &'static str = "chaos";
    /// Setting of the tools that a gateway always lists.
    pub const PINNED: &'static str = "gateway.pinned";

    /// Returns `true` if the rule names a principal instead of tools: an entry of `permissions` or `principals`.
    #[must_use]
    pub fn is_about_principals(&self) -> bool {
        matches!(self.setting, "permissions" | "principals")
    }
}

impl fmt::Display for IdleRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => write!(f, "`{}` of the server `{server}`", self.setting)?,
            None if self.setting == Self::CHAOS => f.write_str("a rule of the chaos plan")?,
            None if self.setting == Self::PINNED => write!(f, "`{}`", self.setting)?,
            None => write!(f, "`policy.{}`", self.setting)?,
        }
        if self.is_about_principals() {
            return write!(
                f,
                " has `{}`, but no client can authenticate as that principal",
                self.pattern
            );
        }
        write!(
            f,
            " has `{}`, which matches no tool, prompt or resource",
            self.pattern
        )
    }
}

impl Toolplane {
    /// Returns the rules that match nothing: of the policy (`blocklist`, `allowlist`, `required_permissions`,
    /// `approval.required`), of the gateway (`pinned`), of the chaos plan, and of servers (`include`, `exclude`, `rename`). Rules that could
    /// match items of a server whose lists are unknown are not included.
    #[must_use]
    pub fn idle_rules(&self) -> Vec<IdleRule> {
        let running = self.0.live.load();
        let own_rules = running.servers.own_rules();
        let rules = self.0.rules.load();
        let permissions = rules.required_permissions.iter().map(|(rule, _)| rule);
        let pinned = self.0.discovery.pinned();
        let chaos = self.0.chaos.plan().into_iter().flat_map(|plan| &plan.rules);
        let lists = [
            (
                IdleRule::CHAOS,
                chaos.flat_map(|rule| &rule.tools).collect::<Vec<_>>(),
            ),
            (IdleRule::PINNED, pinned.iter().collect()),
            ("blocklist", rules.blocklist.iter().collect()),
            ("allowlist", rules.allowlist.iter().flatten().collect()),
            ("required_permissions", permissions.collect()),
            ("approval.required", rules.approval.required.iter().collect()),
        ];
        let has_rules = lists.iter().any(|(_, rules)| !rules.is_empty());
        let known = match has_rules {
            true => self.known_names(&running.servers, &own_rules),
            // Names are many, and most configurations have no rules about them.
            false => Known::default(),
        };
        let of_policy = lists.into_iter().flat_map(|(setting, rules)| {
            let known = &known;
            rules
                .into_iter()
                .filter_map(move |rule| known.judge(None, setting, rule))
        });
        let of_servers = own_rules.iter().filter_map(|own| {
            let known = Known::own(own.names.as_ref()?);
            let server = Some(own.server.as_str());
            let idle = own
                .rules
                .iter()
                .filter_map(|(setting, rule)| known.judge(server, setting, rule));
            Some(idle.collect::<Vec<_>>())
        });
        let idle: Vec<_> = of_policy.chain(of_servers.flatten()).collect();
        let mut seen = HashSet::new();
        idle.into_iter()
            .filter(|rule| seen.insert(rule.clone()))
            .collect()
    }

    fn known_names(&self, servers: &Servers, own_rules: &[ServerRules]) -> Known {
        let mut known = Known::from_snapshot(&self.0.registry.snapshot());
        for missing in self.missing() {
            let own = own_rules.iter().find(|own| own.server == missing.server);
            // The prefix of a host program's source is unknown.
            known
                .unknown
                .push(own.map_or_else(String::new, |own| own.prefix.clone()));
        }
        known.unknown.extend(servers.disabled_prefixes.iter().cloned());
        known
    }

    /// Logs each rule that [matches nothing](Self::idle_rules) as a warning: once, and again after it has matched in
    /// between or after a reload. Never completes.
    ///
    /// # Cancellation
    /// Dropping the future ends the checks.
    pub async fn watch_rules(&self) {
        let mut changes = self.changes();
        let mut rules = self.0.rules.load();
        let mut told = HashSet::new();
        loop {
            changes.mark_unchanged();
            let now = self.0.rules.load();
            if !Arc::ptr_eq(&now, &rules) {
                told.clear();
                rules = now;
            }
            let mut idle = self.idle_rules();
            if self.requires_authentication() {
                // A store that does not work shows in the log with the first request.
                idle.extend(self.idle_principals().await.unwrap_or_default());
            }
            for rule in idle.iter().filter(|rule| !told.contains(*rule)) {
                match &rule.suggestion {
                    Some(suggestion) => tracing::warn!("{rule}; did you mean `{suggestion}`?"),
                    None => tracing::warn!("{rule}"),
                }
            }
            told = idle.into_iter().collect();
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Names that a rule may match.
#[derive(Default)]
struct Known {
    names: Vec<String>,
    /// Prefixes and URIs of resources and templates.
    resources: Vec<(String, String)>,
    /// Prefixes of servers whose lists are unknown.
    unknown: Vec<String>,
}

impl Known {
    fn from_snapshot(snapshot: &Snapshot) -> Self {
        let mut known = Self::default();
        let offered = Feature::ALL
            .iter()
            .copied()
            .flat_map(|feature| snapshot.list(feature));
        // A rule about a withheld tool is no mistake either.
        let withheld = snapshot.withheld().iter().map(|withheld| &withheld.tool);
        for tool in offered.chain(withheld) {
            let uri = tool.descriptor().uri.as_deref();
            match uri.and_then(|uri| Some((tool.name().strip_suffix(uri)?, uri))) {
                Some((prefix, uri)) => known.resources.push((prefix.to_owned(), uri.to_owned())),
                None => known.names.extend(tool.names().map(str::to_owned)),
            }
        }
        // An unusable tool is no mistake of the rule.
        known
            .names
            .extend(snapshot.refused().iter().map(|refused| refused.name.clone()));
        known
    }

    /// Returns the names of one server.
    fn own(names: &[(Feature, String)]) -> Self {
        let mut known = Self::default();
        for (feature, name) in names {
            match feature {
                Feature::Tool | Feature::Prompt => known.names.push(name.clone()),
                _ => known.resources.push((String::new(), name.clone())),
            }
        }
        known
    }

    fn judge(&self, server: Option<&str>, setting: &'static str, rule: &Pattern) -> Option<IdleRule> {
        (!self.may_match(rule)).then(|| IdleRule {
            server: server.map(str::to_owned),
            setting,
            pattern: rule.as_str().to_owned(),
            suggestion: self.suggestion(rule.as_str()),
        })
    }

    fn may_match(&self, rule: &Pattern) -> bool {
        let is_about = |(prefix, uri): &(String, String)| {
            rule.matches(&format!("{prefix}{uri}"))
                || rule
                    .after(prefix)
                    .iter()
                    .any(|rest| may_be_of_scheme(rest.as_str(), uri))
                || ResourceUri::new(prefix, uri).is_none_or(|uri| uri.could_match(rule))
        };
        self.names.iter().any(|name| rule.matches(name))
            || self.unknown.iter().any(|prefix| !rule.after(prefix).is_empty())
            || self.resources.iter().any(is_about)
    }

    /// Returns a name or pattern similar to this one.
    fn suggestion(&self, pattern: &str) -> Option<String> {
        let resources = self
            .resources
            .iter()
            .map(|(prefix, uri)| format!("{prefix}{uri}"));
        let names: Vec<String> = self.names.iter().cloned().chain(resources).collect();
        let (head, star) = match pattern.split_once('*') {
            Some((head, "")) => (head, "*"),
            Some(_) => return None,
            None => (pattern, ""),
        };
        // Compares a pattern with an equally long beginning of a name.
        let cut = |name: &String| match star {
            "" => name.clone(),
            _ => name.chars().take(head.chars().count()).collect(),
        };
        let most = (head.chars().count() / 3).clamp(1, 3);
        let near = names
            .iter()
            .map(cut)
            .map(|name| (strsim::damerau_levenshtein(head, &name), name));
        if let Some((_, name)) = near.filter(|(distance, _)| *distance <= most).min() {
            return Some(name + star);
        }
        // Without the prefix of its server.
        let mut ends = names.iter().filter(|_| head.len() > 2).filter_map(|name| {
            let at = name.rfind(head)?;
            let is_end = star == "*" || at + head.len() == name.len();
            (is_end && name[..at].ends_with("__")).then(|| format!("{}{star}", &name[..at + head.len()]))
        });
        ends.next()
    }
}

/// Returns `true` if a pattern may match an unlisted resource with the scheme of this one.
fn may_be_of_scheme(pattern: &str, uri: &str) -> bool {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme);
    let named = pattern.split_once(':').map(|(scheme, _)| scheme);
    named.is_some_and(|named| {
        named.contains('*') || scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(named))
    })
}
