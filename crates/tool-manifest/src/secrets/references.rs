use std::iter;

use serde_json::Value;
use tool_core::{Provider, Reference, SecretError, Secrets, Template};

use crate::{ConfigPart, Diagnostic, EmbeddingsSpec, Loaded, ServerSpec, ServerTransport, WebhookSpec};

impl Loaded {
    /// Finds the `${…}` references outside of tools that have no value now: errors in secrets and in required servers, and
    /// warnings in other servers, endpoints, webhooks and embeddings, which cannot be used meanwhile, while everything else can.
    /// Disabled servers are left out.
    ///
    /// No value is kept or shown.
    #[must_use]
    pub fn check_references(&self, secrets: &dyn Secrets) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let servers = self.configuration.servers.iter();
        for server in servers.filter(|server| !server.disabled) {
            for (pointer, template) in templates(server) {
                let missing = missing(template, secrets).map(|missing| missing.to_string());
                for missing in missing.chain(missing_file(&pointer, template, secrets)) {
                    let location = self.locate_server(&server.name, &pointer);
                    let problem = match server.required {
                        true => Diagnostic::error(missing),
                        false => unusable("server", &server.name, &missing),
                    };
                    problems.push(problem.with_location(location));
                }
            }
        }
        let endpoints = self.configuration.endpoints.iter();
        for endpoint in endpoints.filter(|endpoint| !endpoint.disabled) {
            for (pointer, template) in endpoint.templates() {
                for missing in missing(template, secrets) {
                    let location = self.locate_server(&endpoint.name, &pointer);
                    let problem = unusable("endpoint", &endpoint.name, &missing.to_string());
                    problems.push(problem.with_location(location));
                }
            }
        }
        for (name, template) in &self.configuration.secrets {
            for missing in missing(template, secrets) {
                let place = self.places.secrets.get(name);
                let location = place.map(|place| place.document.location(place.at));
                problems.push(Diagnostic::error(missing.to_string()).with_location(location));
            }
        }
        let alerts = self.configuration.alerts.webhook.iter();
        let alerts = alerts.map(|webhook| (webhook, self.places.alerts.as_ref(), "/webhook"));
        let callbacks = self.configuration.policy.approval.callbacks.iter();
        let callbacks = callbacks.zip(&self.places.callbacks);
        let callbacks = callbacks.map(|(webhook, place)| (webhook, Some(place), ""));
        for (webhook, place, prefix) in alerts.chain(callbacks) {
            for (pointer, template) in self::webhook(webhook) {
                for missing in missing(template, secrets) {
                    let location = place.map(|place| {
                        let at = place.document.descend(place.at, &format!("{prefix}{pointer}"));
                        place.document.location(at)
                    });
                    let message = format!("the webhook cannot be used now: {missing}");
                    problems.push(Diagnostic::warning(message).with_location(location));
                }
            }
        }
        problems.extend(self.missing_of_embeddings(secrets));
        problems
    }

    /// Finds the `${…}` references in executors' settings that have no value now: warnings, since a text that looks like a
    /// reference may be something else.
    ///
    /// No value is kept or shown.
    #[must_use]
    pub fn check_tool_references(&self, secrets: &dyn Secrets) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for tool in &self.configuration.tools {
            let mut missing = Vec::new();
            walk(&tool.executor.config, &mut String::new(), secrets, &mut missing);
            for (pointer, missing) in missing {
                let location = self.locate(&tool.name, ConfigPart::Settings, &pointer);
                problems.push(Diagnostic::warning(missing.to_string()).with_location(location));
            }
        }
        problems
    }

    /// Finds the references of the embeddings that have no value now.
    fn missing_of_embeddings(&self, secrets: &dyn Secrets) -> Vec<Diagnostic> {
        let Some(EmbeddingsSpec::Service { url, api_key, .. }) = &self.configuration.search.embeddings else {
            return Vec::new();
        };
        let templates = [("url", Some(url)), ("api_key", api_key.as_ref())];
        let templates = templates
            .into_iter()
            .filter_map(|(key, template)| Some((key, template?)));
        let missing = templates
            .flat_map(|(key, template)| missing(template, secrets).map(move |missing| (key, missing)));
        let located = missing.map(|(key, missing)| {
            let location = self.places.search.as_ref().map(|place| {
                let at = place.document.descend(place.at, &format!("/embeddings/{key}"));
                place.document.location(at)
            });
            let message = format!("the embeddings cannot be used now: {missing}");
            Diagnostic::warning(message).with_location(location)
        });
        located.collect()
    }
}

/// The references of a template that have no value.
fn missing<'a>(template: &'a Template, secrets: &'a dyn Secrets) -> impl Iterator<Item = SecretError> + 'a {
    template
        .references()
        .filter_map(|reference| reference.check(secrets).err())
}

/// Returns the warning about a server or endpoint that cannot be used.
fn unusable(kind: &str, name: &str, missing: &str) -> Diagnostic {
    Diagnostic::warning(format!("the {kind} `{name}` cannot be used now: {missing}"))
}

/// Returns the problem with a file of variables that is not there. The path is checked if it has no references.
fn missing_file(pointer: &str, template: &Template, secrets: &dyn Secrets) -> Option<String> {
    let path = template.literal().filter(|_| pointer == "/env_file")?;
    let file = Reference::new(Provider::File, path);
    file.check(secrets).err().map(|missing| missing.to_string())
}

/// The templates of a server, each with a pointer to where it is written.
fn templates(server: &ServerSpec) -> Vec<(String, &Template)> {
    let mut templates = Vec::new();
    let named = |pointer: &str, name: &str| format!("/{pointer}/{}", escaped(name));
    match &server.transport {
        ServerTransport::Stdio {
            command,
            args,
            env,
            cwd,
            env_file,
            ..
        } => {
            templates.push(("/command".to_owned(), command));
            templates.extend(
                args.iter()
                    .enumerate()
                    .map(|(index, arg)| (format!("/args/{index}"), arg)),
            );
            templates.extend(env.iter().map(|(name, value)| (named("env", name), value)));
            templates.extend(cwd.iter().map(|cwd| ("/cwd".to_owned(), cwd)));
            templates.extend(env_file.iter().map(|file| ("/env_file".to_owned(), file)));
        }
        ServerTransport::Refused { .. } => {}
        ServerTransport::Http { url, headers, .. } => {
            templates.push(("/url".to_owned(), url));
            templates.extend(
                headers
                    .iter()
                    .map(|(name, value)| (named("headers", name), value)),
            );
        }
    }
    if let Some(sandbox) = &server.sandbox {
        for (key, paths) in [("reads", &sandbox.reads), ("writes", &sandbox.writes)] {
            let paths = paths.iter().enumerate();
            templates.extend(paths.map(|(index, path)| (format!("/sandbox/{key}/{index}"), path)));
        }
    }
    templates
}

/// The templates of a webhook, each with a pointer to where it is written.
fn webhook(webhook: &WebhookSpec) -> impl Iterator<Item = (String, &Template)> {
    let url = ("/url".to_owned(), &webhook.url);
    let secret = webhook.secret.iter();
    let headers = webhook.headers.iter();
    iter::once(url)
        .chain(secret.map(|secret| ("/secret".to_owned(), secret)))
        .chain(headers.map(|(name, value)| (format!("/headers/{}", escaped(name)), value)))
}

/// Searches settings for references. A text of several lines is taken for a script or a template of another kind.
fn walk(
    value: &Value,
    pointer: &mut String,
    secrets: &dyn Secrets,
    missing: &mut Vec<(String, SecretError)>,
) {
    match value {
        Value::String(text) if text.contains("${") && !text.contains('\n') => {
            if let Ok(template) = Template::parse(text) {
                let problems = self::missing(&template, secrets);
                missing.extend(problems.map(|problem| (pointer.clone(), problem)));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                step(item, &index.to_string(), pointer, secrets, missing);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                step(member, &escaped(key), pointer, secrets, missing);
            }
        }
        _ => {}
    }
}

fn step(
    value: &Value,
    segment: &str,
    pointer: &mut String,
    secrets: &dyn Secrets,
    missing: &mut Vec<(String, SecretError)>,
) {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(segment);
    walk(value, pointer, secrets, missing);
    pointer.truncate(length);
}

fn escaped(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}
