use std::{
    collections::{BTreeMap, HashMap, HashSet, hash_map::Entry},
    path::PathBuf,
    sync::Arc,
};

use serde_json::json;
use tool_core::{PinMode, Template};
use tool_settings::{Entries, NodeId, SectionLevel};

use crate::{
    AlertsSpec, AuthoringSpec, Configuration, Defaults, Diagnostic, EndpointSpec, GatewayMode, GatewaySpec,
    HealthSpec, PolicySpec, SearchSpec, ServerSpec, ServerTransport, StoreSpec, UsageSpec,
    config::{
        policy::{self, PolicyBody},
        principals::PrincipalsDraft,
    },
    diagnostics::report::Report,
    document::{
        lists::patterns,
        place::{Cx, Place},
    },
    loading::{checks::Others, itself::starts_gateway},
    tools::tool::{ToolDraft, ToolPlaces},
};

/// A configuration that is being read, with the places that messages about clashes need.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    servers: Vec<ServerDraft>,
    server_names: HashMap<String, usize>,
    endpoints: Vec<(Place, EndpointSpec)>,
    tools: Vec<ToolDraft>,
    tool_names: HashMap<Arc<str>, usize>,
    defaults: Option<(Place, Defaults)>,
    gateway: Option<(Place, GatewaySpec)>,
    store: Option<(Place, (StoreSpec, UsageSpec))>,
    health: Option<(Place, HealthSpec)>,
    alerts: Option<(Place, AlertsSpec)>,
    search: Option<(Place, SearchSpec)>,
    authoring: Option<(Place, AuthoringSpec)>,
    /// Places of the callbacks of approvals, in their order.
    callbacks: Vec<Place>,
    policy: PolicySpec,
    allowlist: Option<Place>,
    secrets: BTreeMap<String, Template>,
    secret_places: HashMap<String, Place>,
    rule_places: RulePlaces,
    principals: PrincipalsDraft,
    pub(crate) includes: Vec<(Place, PathBuf)>,
}

/// Places of the parts of a configuration.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) servers: HashMap<String, Place>,
    pub(crate) endpoints: HashMap<String, Place>,
    /// Settings of the servers that do not stand in a tool.
    pub(crate) server_settings: HashMap<String, NodeId>,
    pub(crate) tools: HashMap<Arc<str>, ToolPlaces>,
    pub(crate) secrets: HashMap<String, Place>,
    pub(crate) alerts: Option<Place>,
    pub(crate) search: Option<Place>,
    /// Places of the callbacks of approvals, in their order.
    pub(crate) callbacks: Vec<Place>,
    pub(crate) rules: RulePlaces,
}

/// Places of the patterns of the policy, by their setting and their text.
pub(crate) type RulePlaces = HashMap<(&'static str, String), Place>;

#[derive(Debug)]
pub(crate) struct ServerDraft {
    pub(crate) spec: ServerSpec,
    pub(crate) place: Place,
    /// Its settings; `None` if they stand in a tool.
    pub(crate) settings: Option<NodeId>,
    /// `true` if it is written inside a tool that it serves. Such a server may be written several times.
    pub(crate) inline: bool,
    /// `true` if it is of the file of a client, which is never refused as a whole.
    pub(crate) is_of_client: bool,
}

impl Draft {
    /// Adds a server. `at` is shown in messages, and `settings` is what a store keeps.
    pub(crate) fn add_server(&mut self, cx: Cx<'_>, at: NodeId, settings: NodeId, spec: ServerSpec) {
        let place = cx.place(at);
        self.put_server(
            cx.report,
            ServerDraft {
                spec,
                place,
                settings: Some(settings),
                inline: false,
                is_of_client: false,
            },
        );
    }

    pub(crate) fn put_server(&mut self, report: &Report, new: ServerDraft) {
        let index = *self
            .server_names
            .entry(new.spec.name.clone())
            .or_insert(self.servers.len());
        let Some(known) = self.servers.get_mut(index) else {
            self.servers.push(new);
            return;
        };
        let name = &new.spec.name;
        if known.is_of_client || new.is_of_client {
            let (kept, other) = if new.is_of_client {
                (&*known, &new)
            } else {
                (&new, &*known)
            };
            if !is_same_offer(&kept.spec, &other.spec) {
                let message = format!("this server `{name}` is not used: there is another one");
                let problem = Diagnostic::warning(message)
                    .with_location(Some(other.place.key_location()))
                    .with_related("the one that is used", kept.place.key_location());
                report.push(problem);
            }
            if !new.is_of_client {
                *known = new;
            }
            return;
        }
        if !known.inline && !new.inline {
            report.push(clash(
                &format!("the server `{name}` is configured twice"),
                &new.place,
                &known.place,
            ));
        } else if known.spec.transport != new.spec.transport {
            let message = format!("the server `{name}` is reached in another way elsewhere");
            report.push(clash(&message, &new.place, &known.place));
        } else if known.inline && !new.inline {
            *known = new;
        }
    }

    pub(crate) fn put_endpoint(&mut self, report: &Report, new: EndpointSpec, place: Place) {
        let known = self.endpoints.iter().find(|(_, known)| known.name == new.name);
        match known {
            Some((known, _)) => {
                let message = format!("the endpoint `{}` is configured twice", new.name);
                report.push(clash(&message, &place, known));
            }
            None => self.endpoints.push((place, new)),
        }
    }

    /// Reports endpoints that have the name of a server.
    pub(crate) fn check_endpoints(&self, report: &Report) {
        for (place, endpoint) in &self.endpoints {
            if let Some(server) = self.server_names.get(&endpoint.name) {
                let message = format!("the endpoint `{}` has the name of a server", endpoint.name);
                report.push(clash(&message, place, &self.servers[*server].place));
            }
        }
    }

    pub(crate) fn put_tool(&mut self, report: &Report, new: ToolDraft) {
        match self.tool_names.entry(new.descriptor.name.clone()) {
            Entry::Occupied(known) => {
                let message = format!("the tool `{}` is defined twice", known.key());
                let known = &self.tools[*known.get()];
                report.push(clash(&message, &new.places.name, &known.places.name));
            }
            Entry::Vacant(free) => {
                free.insert(self.tools.len());
                self.tools.push(new);
            }
        }
    }

    pub(crate) fn set_defaults(&mut self, cx: Cx<'_>, at: NodeId, defaults: Defaults) {
        set_once(
            &mut self.defaults,
            cx.report,
            "`defaults`",
            (cx.place(at), defaults),
        );
    }

    pub(crate) fn set_gateway(&mut self, cx: Cx<'_>, at: NodeId, gateway: GatewaySpec) {
        set_once(&mut self.gateway, cx.report, "`gateway`", (cx.place(at), gateway));
    }

    pub(crate) fn set_store(&mut self, cx: Cx<'_>, at: NodeId, store: (StoreSpec, UsageSpec)) {
        set_once(&mut self.store, cx.report, "`store`", (cx.place(at), store));
    }

    /// Keeps the places of patterns, by their setting.
    pub(crate) fn add_rule_places(
        &mut self,
        cx: Cx<'_>,
        setting: &'static str,
        patterns: &[(String, NodeId)],
    ) {
        for (pattern, at) in patterns {
            self.rule_places
                .entry((setting, pattern.clone()))
                .or_insert_with(|| cx.place(*at));
        }
    }

    /// Reports tools with the name of a meta-tool, unless all tools are listed.
    pub(crate) fn check_meta_tools(&self, report: &Report) {
        let mode = self
            .gateway
            .as_ref()
            .map_or(GatewayMode::List, |(_, gateway)| gateway.mode);
        if mode == GatewayMode::List {
            return;
        }
        let is_meta = |tool: &&ToolDraft| GatewayMode::META_TOOLS.contains(&&*tool.descriptor.name);
        for tool in self.tools.iter().filter(is_meta) {
            let name = &tool.descriptor.name;
            let message = format!(
                "the tool `{name}` has the name of a meta-tool, which `gateway.mode: {}` adds",
                mode.as_str()
            );
            let hint = "give the tool another name, or write `gateway: {mode: list}`";
            let place = Some(tool.places.name.key_location());
            report.push(Diagnostic::error(message).with_location(place).with_hint(hint));
        }
    }

    pub(crate) fn set_health(&mut self, cx: Cx<'_>, at: NodeId, health: HealthSpec) {
        set_once(&mut self.health, cx.report, "`health`", (cx.place(at), health));
    }

    pub(crate) fn set_alerts(&mut self, cx: Cx<'_>, at: NodeId, alerts: AlertsSpec) {
        set_once(&mut self.alerts, cx.report, "`alerts`", (cx.place(at), alerts));
    }

    pub(crate) fn set_search(&mut self, cx: Cx<'_>, at: NodeId, search: SearchSpec) {
        set_once(&mut self.search, cx.report, "`search`", (cx.place(at), search));
    }

    pub(crate) fn set_authoring(&mut self, cx: Cx<'_>, at: NodeId, authoring: AuthoringSpec) {
        let new = (cx.place(at), authoring);
        set_once(&mut self.authoring, cx.report, "`authoring`", new);
    }

    pub(crate) fn add_policy(&mut self, cx: Cx<'_>, body: PolicyBody) {
        let lists = [
            ("blocklist", &body.blocklist),
            ("allowlist", &body.allowlist),
            ("approval.required", policy::approval_required(&body.approval)),
        ];
        let written = lists.into_iter().flat_map(|(setting, list)| {
            let items = list.as_ref().into_iter().flatten();
            items.filter_map(move |item| Some((setting, item.as_ref()?.clone(), item.given()?)))
        });
        let required = body
            .required_permissions
            .as_ref()
            .into_iter()
            .flat_map(Entries::iter);
        let required = required
            .filter_map(|(pattern, list)| Some(("required_permissions", pattern.clone(), list.place()?)));
        let permissions = body.permissions.as_ref().into_iter().flat_map(Entries::iter);
        let permissions = permissions
            .filter_map(|(principal, list)| Some(("permissions", principal.clone(), list.place()?)));
        for (setting, pattern, at) in written.chain(required).chain(permissions) {
            self.rule_places
                .entry((setting, pattern))
                .or_insert_with(|| cx.place(at));
        }
        self.policy.blocklist.extend(patterns(body.blocklist));
        if let Some(at) = body.allowlist.given() {
            let place = cx.place(at);
            match &self.allowlist {
                Some(first) => cx.report.push(clash("`allowlist` is given twice", &place, first)),
                None => self.policy.allowlist = Some(patterns(body.allowlist)),
            }
            self.allowlist.get_or_insert(place);
        }
        self.principals.read(cx, body.roles, body.principals);
        let callback = policy::approval(cx, body.approval, &mut self.policy.approval);
        self.callbacks.extend(callback);
        policy::choice_and_limits(cx, body.tool_choice, body.limits, &mut self.policy);
        let entries = [&body.sections, &body.late_sections];
        cx.sections
            .read(SectionLevel::Policy, &cx, &entries, &mut self.policy.settings);
        if let Some(word) = body.definitions.get() {
            // If several files give one, the strictest counts.
            self.policy.definitions = self.policy.definitions.max(word.into());
        }
        self.policy.pin = self.policy.pin.max(body.pin.get().map(PinMode::from));
        extend(
            &mut self.policy.permissions,
            policy::permissions(body.permissions),
        );
        let required = policy::permissions(body.required_permissions);
        extend(&mut self.policy.required_permissions, required);
    }

    pub(crate) fn put_secret(&mut self, report: &Report, name: String, template: Template, place: Place) {
        if let Some(first) = self.secret_places.get(&name) {
            report.push(clash(
                &format!("the secret `{name}` is given twice"),
                &place,
                first,
            ));
            return;
        }
        self.secret_places.insert(name.clone(), place);
        self.secrets.insert(name, template);
    }

    /// Merges the draft of another file into this one.
    pub(crate) fn merge(&mut self, report: &Report, other: Self) {
        for server in other.servers {
            self.put_server(report, server);
        }
        for (place, endpoint) in other.endpoints {
            self.put_endpoint(report, endpoint, place);
        }
        for tool in other.tools {
            self.put_tool(report, tool);
        }
        if let Some(defaults) = other.defaults {
            set_once(&mut self.defaults, report, "`defaults`", defaults);
        }
        if let Some(gateway) = other.gateway {
            set_once(&mut self.gateway, report, "`gateway`", gateway);
        }
        if let Some(store) = other.store {
            set_once(&mut self.store, report, "`store`", store);
        }
        if let Some(health) = other.health {
            set_once(&mut self.health, report, "`health`", health);
        }
        if let Some(alerts) = other.alerts {
            set_once(&mut self.alerts, report, "`alerts`", alerts);
        }
        if let Some(search) = other.search {
            set_once(&mut self.search, report, "`search`", search);
        }
        if let Some(authoring) = other.authoring {
            set_once(&mut self.authoring, report, "`authoring`", authoring);
        }
        for (rule, place) in other.rule_places {
            self.rule_places.entry(rule).or_insert(place);
        }
        self.policy.blocklist.extend(other.policy.blocklist);
        if let (Some(list), Some(place)) = (other.policy.allowlist, other.allowlist) {
            match &self.allowlist {
                Some(first) => report.push(clash("`allowlist` is given twice", &place, first)),
                None => self.policy.allowlist = Some(list),
            }
            self.allowlist.get_or_insert(place);
        }
        self.principals.merge(report, other.principals);
        policy::merge_approval(&mut self.policy.approval, other.policy.approval);
        self.callbacks.extend(other.callbacks);
        policy::merge_choice_and_limits(&mut self.policy, other.policy.tool_choice, other.policy.limits);
        self.policy.settings.merge(&other.policy.settings);
        self.policy.definitions = self.policy.definitions.max(other.policy.definitions);
        self.policy.pin = self.policy.pin.max(other.policy.pin);
        extend(&mut self.policy.permissions, other.policy.permissions);
        let required = other.policy.required_permissions;
        extend(&mut self.policy.required_permissions, required);
        for (name, template) in other.secrets {
            if let Some(place) = other.secret_places.get(&name) {
                self.put_secret(report, name, template, place.clone());
            }
        }
        self.includes.extend(other.includes);
    }

    /// Marks everything as read from a file of a directory: problems leave it out instead of being errors.
    pub(crate) fn mark_scanned(&mut self) {
        for tool in &mut self.tools {
            tool.is_scanned = true;
        }
    }

    /// Finds the server of each tool that does not name one: by a name like `mcp__server__tool`, or as the only one.
    /// Tools of directories without one are left out, and the reasons are returned.
    pub(crate) fn route(&mut self, report: &Report) -> Vec<Diagnostic> {
        let names: Vec<&str> = self
            .servers
            .iter()
            .map(|server| server.spec.name.as_str())
            .collect();
        let mut left_out = Vec::new();
        self.tools.retain_mut(|tool| {
            if !tool.is_unrouted {
                return true;
            }
            let name = tool.descriptor.name.clone();
            if let Some((server, upstream)) = routed(&name, &names) {
                let config = json!({"server": server, "tool": upstream});
                Arc::make_mut(&mut tool.descriptor).executor.config = config;
                return true;
            }
            let problem = Diagnostic::error(format!("the tool `{name}` does not say which server runs it"))
                .with_location(Some(tool.places.name.key_location()))
                .with_hint(
                    "remove it: a server's tools are listed by themselves; or call it `mcp__server__tool`",
                );
            if tool.is_scanned {
                left_out.push(problem);
            } else {
                report.push(problem);
            }
            false
        });
        left_out
    }

    /// Reads the files of each tool. Tools of directories that fail are left out, and the reasons are returned.
    pub(crate) fn read_files(
        &mut self,
        report: &Report,
        mut read: impl FnMut(&mut ToolDraft) -> Result<(), Diagnostic>,
    ) -> Vec<Diagnostic> {
        let mut left_out = Vec::new();
        self.tools.retain_mut(|tool| match read(tool) {
            Err(problem) if tool.is_scanned => {
                left_out.push(problem);
                false
            }
            Err(problem) => {
                report.push(problem);
                true
            }
            Ok(()) => true,
        });
        left_out
    }

    /// Makes the checks of sections that need the whole configuration. Tools of directories that fail are left out.
    /// Returns those reasons, and the warnings of others.
    pub(crate) fn check_sections(&mut self, report: &Report) -> Vec<Diagnostic> {
        let usual = Defaults::default();
        let servers = self.servers.iter().map(|server| &server.spec);
        let endpoints = self.endpoints.iter().map(|(_, endpoint)| endpoint);
        let others = Others {
            names: self.tools.iter().map(|tool| &*tool.descriptor.name).collect(),
            servers: servers.filter(|server| !server.disabled).collect(),
            endpoints: endpoints.filter(|endpoint| !endpoint.disabled).collect(),
            defaults: self.defaults.as_ref().map_or(&usual, |(_, defaults)| defaults),
            embeds_texts: self
                .search
                .as_ref()
                .is_some_and(|(_, search)| search.embeddings.is_some()),
        };
        let mut said = Vec::new();
        let mut are_kept = Vec::with_capacity(self.tools.len());
        for tool in &self.tools {
            let (errors, warnings) = others.check(tool);
            are_kept.push(!tool.is_scanned || errors.is_empty());
            said.extend(warnings);
            if tool.is_scanned {
                said.extend(errors);
            } else {
                errors.into_iter().for_each(|error| report.push(error));
            }
        }
        let mut are_kept = are_kept.into_iter();
        self.tools.retain(|_| are_kept.next().unwrap_or(true));
        said
    }

    /// Reports roles that principals have and that no file defines.
    pub(crate) fn check_roles(&self, report: &Report) {
        self.principals.check(report);
    }

    /// Reports an `authoring` that has no effect: without a store, or without anybody who may make tools.
    pub(crate) fn check_authoring(&self, report: &Report) {
        let Some((place, authoring)) = &self.authoring else {
            return;
        };
        let at = Some(place.key_location());
        if !authoring.enabled {
            return;
        }
        if matches!(&self.store, Some((_, (StoreSpec::Off, _)))) {
            let message = "tools that agents make need a store, and `store.enabled` is false";
            let hint = "remove `enabled: false` from `store`, or `authoring`";
            report.push(Diagnostic::error(message).with_location(at).with_hint(hint));
            return;
        }
        let of_policy = self.policy.permissions.values().flatten();
        let is_create = |permission: &String| permission == AuthoringSpec::CREATE;
        if !of_policy.chain(self.principals.permissions()).any(is_create) {
            let message = "nobody has the permission `tools.create`, so that nobody can make tools";
            let hint = "give it to a role, a principal, or `local` in `policy.permissions`";
            report.push(Diagnostic::warning(message).with_location(at).with_hint(hint));
        }
    }

    /// Gives the defaults to servers that set none of their own.
    pub(crate) fn settle_servers(&mut self, report: &Report) {
        let usual = self
            .health
            .as_ref()
            .and_then(|(_, health)| health.server_interval);
        for server in &mut self.servers {
            if let Some(problem) = server.spec.health.settle(usual) {
                report.push(problem.with_location(Some(server.place.key_location())));
            }
        }
    }

    /// Refuses servers that start a gateway with one of the files of this configuration: it would start itself again and again.
    /// A client's file has such an entry once the client is connected to the gateway.
    pub(crate) fn refuse_itself(&mut self, report: &Report, files: &HashSet<PathBuf>) {
        for server in &mut self.servers {
            if !server.spec.disabled && starts_gateway(&server.spec.transport, files) {
                let name = &server.spec.name;
                let reason = "it is this gateway, with this configuration".to_owned();
                let problem = Diagnostic::warning(format!("the server `{name}` cannot be used: {reason}"));
                report.push(problem.with_location(Some(server.place.key_location())));
                server.spec.transport = ServerTransport::Refused { reason };
            }
        }
    }

    pub(crate) fn finish(mut self) -> (Configuration, Places) {
        for (principal, place) in self.principals.places() {
            let rule = ("principals", principal.to_owned());
            self.rule_places.insert(rule, place.clone());
        }
        self.principals.finish(&mut self.policy);
        let servers = self
            .servers
            .iter()
            .map(|server| (server.spec.name.clone(), server.place.clone()))
            .collect();
        let tools = self
            .tools
            .iter()
            .map(|tool| (tool.descriptor.name.clone(), tool.places.clone()))
            .collect();
        let server_settings = self
            .servers
            .iter()
            .filter_map(|server| Some((server.spec.name.clone(), server.settings?)))
            .collect();
        let endpoints = self.endpoints.iter();
        let endpoints = endpoints.map(|(place, endpoint)| (endpoint.name.clone(), place.clone()));
        let places = Places {
            servers,
            endpoints: endpoints.collect(),
            server_settings,
            tools,
            secrets: self.secret_places,
            alerts: self.alerts.as_ref().map(|(place, _)| place.clone()),
            search: self.search.as_ref().map(|(place, _)| place.clone()),
            callbacks: self.callbacks,
            rules: self.rule_places,
        };
        let (store, usage) = self.store.map(|(_, store)| store).unwrap_or_default();
        let configuration = Configuration {
            servers: self.servers.into_iter().map(|server| server.spec).collect(),
            endpoints: self.endpoints.into_iter().map(|(_, endpoint)| endpoint).collect(),
            tools: self.tools.into_iter().map(|tool| tool.descriptor).collect(),
            defaults: self.defaults.map(|(_, defaults)| defaults).unwrap_or_default(),
            policy: self.policy,
            secrets: self.secrets,
            gateway: self.gateway.map(|(_, gateway)| gateway).unwrap_or_default(),
            store,
            usage,
            health: self.health.map(|(_, health)| health).unwrap_or_default(),
            alerts: self.alerts.map(|(_, alerts)| alerts).unwrap_or_default(),
            search: self.search.map(|(_, search)| search).unwrap_or_default(),
            authoring: self.authoring.map(|(_, authoring)| authoring).unwrap_or_default(),
        };
        (configuration, places)
    }
}

/// Returns `true` if two servers offer the same.
fn is_same_offer(one: &ServerSpec, other: &ServerSpec) -> bool {
    let key = |spec: &ServerSpec| (spec.include.clone(), spec.exclude.clone(), spec.disabled);
    one.transport == other.transport && one.sandbox == other.sandbox && key(one) == key(other)
}

fn set_once<T>(slot: &mut Option<(Place, T)>, report: &Report, what: &str, new: (Place, T)) {
    match slot {
        Some((first, _)) => report.push(clash(&format!("{what} is given twice"), &new.0, first)),
        None => *slot = Some(new),
    }
}

/// Returns the server in a tool's name, or the only one, with the tool's name there.
fn routed<'a>(name: &'a str, servers: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let told = name
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"))
        .filter(|(server, _)| servers.contains(server));
    match (told, servers) {
        (Some(told), _) => Some(told),
        (None, [only]) => Some((only, name)),
        (None, _) => None,
    }
}

/// A problem of two places.
pub(crate) fn clash(message: &str, second: &Place, first: &Place) -> Diagnostic {
    Diagnostic::error(message)
        .with_location(Some(second.key_location()))
        .with_related("first given here", first.key_location())
}

/// Adds lists to those of the same names.
fn extend(lists: &mut BTreeMap<String, Vec<String>>, others: BTreeMap<String, Vec<String>>) {
    for (name, list) in others {
        lists.entry(name).or_default().extend(list);
    }
}
