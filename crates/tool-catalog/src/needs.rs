//! Needs of an installation: secrets, hosts and programs that its content names.

use raw_json::{JsonKind, RawJson};
use serde_json::{Value, json};
use tool_core::{Descriptor, IfUnset, Provider, Reach, Template};

use crate::{CatalogError, foreign::shown};

/// Maximum number of needs of each kind that are listed.
const MAX_LISTED: usize = 256;
/// Schemes of URLs whose hosts are listed.
const SCHEMES: [&str; 4] = ["http://", "https://", "ws://", "wss://"];

/// Secrets, hosts and programs that a tool or server needs.
///
/// # Examples
/// ```
/// use tool_catalog::CatalogNeeds;
/// use tool_core::RawJson;
///
/// let settings = r#"{"url": "https://api.example.com/v1", "headers": {"Authorization": "Bearer ${TOKEN}"}}"#;
/// let settings = RawJson::parse(settings).expect("it is JSON");
/// let needs = CatalogNeeds::of_settings(&settings)?;
/// assert_eq!((needs.secrets[0].name.as_str(), needs.secrets[0].field.as_str()), ("TOKEN", "/headers/Authorization"));
/// assert_eq!(needs.hosts, ["api.example.com"]);
/// # Ok::<(), tool_catalog::CatalogError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogNeeds {
    /// References to secrets and variables, in the order of their fields.
    pub secrets: Vec<NeededSecret>,
    /// Hosts, as they are written.
    pub hosts: Vec<String>,
    /// Programs that are started, with their arguments.
    pub programs: Vec<String>,
    /// Other things, a sentence fragment each: an image, a tool of a server.
    pub others: Vec<String>,
}

/// Reference to a secret or a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NeededSecret {
    /// Name of the secret or variable.
    pub name: String,
    /// Reference as it is written, such as `${TOKEN}`.
    pub reference: String,
    /// JSON Pointer (RFC 6901) to the field in which it stands.
    pub field: String,
    /// Place that receives it: an origin such as `https://api.example.com`, or the code of the tool. `None` for the program or
    /// endpoint of a server.
    pub destination: Option<String>,
    /// `true` if the field has a value without it.
    pub has_default: bool,
}

impl CatalogNeeds {
    /// Lists the needs of a tool by the reach that its executor states.
    ///
    /// # Errors
    /// If the tool names a file of the machine (`${file:..}`): a foreign tool may not choose one.
    pub fn of_tool(tool: &Descriptor, reach: &Reach) -> Result<Self, CatalogError> {
        let mut needs = Self::default();
        for used in &reach.secrets {
            let written = tool.executor.config.pointer(&used.field).and_then(Value::as_str);
            let written = written.and_then(|text| Template::parse(text).ok());
            let template = Template::parse(&used.secret).ok();
            let Some(reference) = template.iter().flat_map(Template::references).next() else {
                continue;
            };
            refuse_file(&used.field, reference.provider, &used.secret)?;
            let mut in_field = written.iter().flat_map(Template::references);
            needs.add_secret(NeededSecret {
                name: reference.name.clone(),
                reference: used.secret.clone(),
                field: used.field.clone(),
                destination: Some(used.destination.clone()),
                has_default: in_field.any(|known| {
                    known.name == reference.name && matches!(known.fallback, IfUnset::Default(_))
                }),
            });
        }
        for host in &reach.hosts {
            needs.add_host(host);
        }
        if reach.is_any_host {
            needs
                .others
                .push("any host: arguments of a call choose it".to_owned());
        }
        needs.others.extend(reach.others.iter().take(MAX_LISTED).cloned());
        Ok(needs)
    }

    /// Finds the needs of a server with these settings, or of any other settings.
    ///
    /// # Errors
    /// If the settings name a file of the machine (`${file:..}`): foreign settings may not choose one.
    pub fn of_settings(settings: &RawJson) -> Result<Self, CatalogError> {
        let mut needs = Self::default();
        needs.walk(settings, "")?;
        let texts = |key: &str| -> Vec<String> {
            let list = settings.get(key).filter(|list| list.kind() == JsonKind::Array);
            let items = list
                .iter()
                .flat_map(|list| list.items().filter_map(|item| item.string()));
            items.collect()
        };
        for (index, name) in texts("inherit_env").into_iter().enumerate() {
            needs.add_secret(NeededSecret {
                reference: format!("${{{name}}}"),
                name,
                field: format!("/inherit_env/{index}"),
                destination: None,
                has_default: true,
            });
        }
        for host in texts("network").iter().chain(&texts("hosts")) {
            needs.add_host(host);
        }
        if let Some(command) = settings.get("command").and_then(|command| command.string()) {
            let words = std::iter::once(command).chain(texts("args"));
            let program: Vec<String> = words.map(|word| quote(&word)).collect();
            needs.programs.push(program.join(" "));
        }
        Ok(needs)
    }

    /// Returns `true` if nothing is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the needs as JSON.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        let secrets: Vec<Value> = self
            .secrets
            .iter()
            .map(|secret| {
                json!({
                    "name": secret.name,
                    "reference": secret.reference,
                    "field": secret.field,
                    "destination": secret.destination,
                    "default": secret.has_default,
                })
            })
            .collect();
        // In this order in every program, whatever order the maps of its JSON have.
        RawJson::from_members(&[
            ("secrets", RawJson::from(Value::from(secrets))),
            ("hosts", RawJson::from(json!(self.hosts))),
            ("programs", RawJson::from(json!(self.programs))),
            ("others", RawJson::from(json!(self.others))),
        ])
    }

    /// Reads the needs that a bundle states. Parts with another structure are left out: nobody relies on them.
    pub(crate) fn from_json(value: &RawJson) -> Self {
        let texts = |key: &str| -> Vec<String> {
            let list = value.get(key).unwrap_or_else(RawJson::object);
            list.items()
                .filter_map(|item| item.string())
                .take(MAX_LISTED)
                .collect()
        };
        let secrets = value.get("secrets").unwrap_or_else(RawJson::object);
        let secrets = secrets.items().filter_map(|secret| {
            let text = |key: &str| secret.get(key).and_then(|text| text.string());
            Some(NeededSecret {
                name: text("name")?,
                reference: text("reference")?,
                field: text("field")?,
                destination: text("destination"),
                has_default: secret
                    .get("default")
                    .is_some_and(|value| value.as_str() == "true"),
            })
        });
        Self {
            secrets: secrets.take(MAX_LISTED).collect(),
            hosts: texts("hosts"),
            programs: texts("programs"),
            others: texts("others"),
        }
    }

    fn walk(&mut self, value: &RawJson, pointer: &str) -> Result<(), CatalogError> {
        match value.kind() {
            JsonKind::String => self.read(&value.string().unwrap_or_default(), pointer),
            JsonKind::Array => value
                .items()
                .enumerate()
                .try_for_each(|(index, item)| self.walk(&item, &format!("{pointer}/{index}"))),
            JsonKind::Object => value.members().try_for_each(|(key, member)| {
                let key = key.replace('~', "~0").replace('/', "~1");
                self.walk(&member, &format!("{pointer}/{key}"))
            }),
            _ => Ok(()),
        }
    }

    fn read(&mut self, text: &str, pointer: &str) -> Result<(), CatalogError> {
        let lower = text.trim_start().to_ascii_lowercase();
        if let Some(scheme) = SCHEMES.iter().find(|scheme| lower.starts_with(**scheme)) {
            let rest = &text.trim_start()[scheme.len()..];
            self.add_host(host_of(rest));
        }
        // A text that is no template, such as a script, has no references.
        let Some(template) = Template::parse(text).ok().filter(|_| text.contains("${")) else {
            return Ok(());
        };
        for reference in template.references() {
            refuse_file(pointer, reference.provider, &reference.to_string())?;
            self.add_secret(NeededSecret {
                name: reference.name.clone(),
                reference: reference.to_string(),
                field: pointer.to_owned(),
                destination: None,
                has_default: matches!(reference.fallback, IfUnset::Default(_)),
            });
        }
        Ok(())
    }

    fn add_secret(&mut self, secret: NeededSecret) {
        if self.secrets.len() < MAX_LISTED && !self.secrets.contains(&secret) {
            self.secrets.push(secret);
        }
    }

    fn add_host(&mut self, host: &str) {
        let host = host.to_owned();
        if self.hosts.len() < MAX_LISTED && !host.is_empty() && !self.hosts.contains(&host) {
            self.hosts.push(host);
        }
    }
}

/// Refuses a reference to a file of the machine.
fn refuse_file(field: &str, provider: Provider, reference: &str) -> Result<(), CatalogError> {
    if provider != Provider::File {
        return Ok(());
    }
    let problem = format!("`{}` names a file of the machine", shown(reference));
    Err(CatalogError::invalid(field, problem)
        .with_hint("what a catalog holds may refer to secrets by name: `${NAME}` or `${secret:NAME}`"))
}

/// Returns the host and port of the rest of a URL, without user and password. References stay as they are written.
fn host_of(rest: &str) -> &str {
    // A `/` or `?` inside of a reference ends nothing.
    let mut depth = 0_usize;
    let end = rest.char_indices().find(|(_, letter)| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(letter, '/' | '?' | '#' | '\\')
    });
    let authority = end.map_or(rest, |(end, _)| &rest[..end]);
    authority.rsplit('@').next().unwrap_or(authority)
}

/// Quotes a word for people, as a shell would.
fn quote(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@${},+~".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_those_that_a_request_would_reach() {
        for (rest, host) in [
            ("a.example.com/x", "a.example.com"),
            ("a.example.com:8443?x=/y", "a.example.com:8443"),
            ("user:pass@b.example.com/", "b.example.com"),
            ("${HOST:-a/b}/x", "${HOST:-a/b}"),
            ("a.example.com\\@b.example.com", "a.example.com"),
            ("", ""),
        ] {
            assert_eq!(host_of(rest), host, "{rest}");
        }
    }

    #[test]
    fn files_of_the_machine_are_refused() {
        let settings = RawJson::from(json!({"headers": {"a/b": "x ${file:/etc/passwd}"}}));
        let error = CatalogNeeds::of_settings(&settings).unwrap_err();
        assert_eq!(error.place(), "/headers/a~1b");
    }

    #[test]
    fn the_reach_of_a_tool_is_listed_with_its_defaults() {
        let config = json!({"url": "https://a.example.com/${T:-x}", "headers_from_env": ["X=KEY"]});
        let tool = Descriptor::new("a", tool_core::ExecutorSpec::new("http").with_config(config));
        let used =
            |secret: &str, field: &str| tool_core::SecretUse::new(secret, field, "https://a.example.com");
        let reach =
            |used: Vec<tool_core::SecretUse>| Reach::new(used).with_hosts(["a.example.com".to_owned()]);
        let listed = reach(vec![used("${T}", "/url"), used("${KEY}", "/headers_from_env/0")]);
        let needs =
            CatalogNeeds::of_tool(&tool, &listed.with_any_host(true).with_other("the method GET")).unwrap();
        let secrets: Vec<_> = needs
            .secrets
            .iter()
            .map(|secret| (secret.name.as_str(), secret.has_default))
            .collect();
        assert_eq!(secrets, [("T", true), ("KEY", false)]);
        assert_eq!(
            needs.secrets[0].destination.as_deref(),
            Some("https://a.example.com")
        );
        assert_eq!(
            needs.others,
            ["any host: arguments of a call choose it", "the method GET"]
        );
        assert_eq!(CatalogNeeds::from_json(&needs.to_json()), needs);
        let file = reach(vec![used("${file:/etc/passwd}", "/url")]);
        assert_eq!(CatalogNeeds::of_tool(&tool, &file).unwrap_err().place(), "/url");
    }

    #[test]
    fn everything_is_listed_once() {
        let settings = RawJson::from(json!({
            "command": "npx", "args": ["-y", "a b"],
            "env": {"A": "${A} ${A}", "B": "${secret:b:-x}", "C": "$${NOT}"},
            "inherit_env": ["HOME_DIR"], "network": ["api.example.com:443"],
        }));
        let needs = CatalogNeeds::of_settings(&settings).unwrap();
        let secrets: Vec<_> = needs
            .secrets
            .iter()
            .map(|secret| (secret.reference.as_str(), secret.has_default))
            .collect();
        assert_eq!(
            secrets,
            [("${A}", false), ("${secret:b}", true), ("${HOME_DIR}", true)]
        );
        assert_eq!(needs.hosts, ["api.example.com:443"]);
        assert_eq!(needs.programs, ["npx -y 'a b'"]);
        assert_eq!(CatalogNeeds::from_json(&needs.to_json()), needs);
    }
}
