//! Resolution of descriptors into a snapshot.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use tool_core::{
    Catalogue, Descriptor, DynBackend, Executor, Feature, PinMode, PrepareError, SecretUse, SettingLevel,
    Settings, TaskSupport, Tool, ToolParts, ToolState, Trust, UpstreamState, UriTemplate, check_name,
};
use tool_schema::{LazySchema, verify};

use crate::{
    PinPolicy, PinSet, RefusedFeature, Snapshot,
    look_alikes::{Look, Looks, look_alikes},
    namespaces::Namespaces,
    pins::{PinCheck, check_pin},
    registry::Shared,
    snapshot::key,
    spread::map_all,
};

/// Resolves the lists of all sources into a snapshot.
pub(crate) struct Resolver<'a> {
    pub(crate) executors: &'a HashMap<String, Arc<dyn Executor>>,
    pub(crate) defaults: Settings,
    pub(crate) upstream_settings: &'a HashMap<String, Settings>,
    /// Generation of the present parts.
    pub(crate) generation: u64,
    pub(crate) shared: &'a Shared,
    pub(crate) namespaces: &'a Namespaces,
    /// Returns `true` if an operator gave the name (second) to a tool of the source (first).
    pub(crate) is_renamed: &'a (dyn Fn(&str, &str) -> bool + Sync),
    /// Previous snapshot. Unchanged tools are reused, and the state of a tool is always kept.
    pub(crate) before: &'a Snapshot,
    /// `true` if unchanged tools are reused. `false` if settings or executors may have changed.
    pub(crate) reuses_tools: bool,
    /// `true` if unchanged lists count as changed.
    pub(crate) lists_changed: bool,
    pub(crate) pins: &'a PinPolicy,
    /// Settings that tools have in common.
    pub(crate) common_settings: CommonSettings,
    /// Comparison of names.
    pub(crate) looks: Looks,
}

/// Tool that is offered if no other one has its name and its definition is accepted.
struct Candidate {
    tool: Arc<Tool>,
    pin: PinCheck,
    /// Look of its name, if people know it by a name.
    look: Option<Look>,
}

/// Settings that were made for tools. Most tools of a registry have equal ones, and share them.
#[derive(Default)]
pub(crate) struct CommonSettings(Mutex<Vec<Settings>>);

impl CommonSettings {
    /// Maximum number of different settings that are compared.
    const MAX_KNOWN: usize = 16;

    /// Returns the known settings that are equal to these.
    fn share(&self, settings: Settings) -> Settings {
        let mut known = self.0.lock();
        if let Some(same) = known.iter().find(|known| **known == settings) {
            return same.clone();
        }
        if known.len() < Self::MAX_KNOWN {
            known.push(settings.clone());
        }
        settings
    }
}

impl Resolver<'_> {
    /// Resolves all sources. Of two entries with the same name or URI, that of the first source is offered and the other one is
    /// refused.
    pub(crate) fn resolve(&self, sources: &[(&str, Arc<Catalogue>)]) -> Snapshot {
        let mut snapshot = Snapshot {
            revision: self.before.revision + 1,
            source_revisions: sources.iter().map(|(_, catalogue)| catalogue.revision).collect(),
            unconfirmed: {
                let kept = sources.iter().filter(|(_, catalogue)| catalogue.is_kept);
                kept.map(|(source, _)| (*source).to_owned()).collect()
            },
            ..Snapshot::default()
        };
        let n_tools = sources.iter().map(|(_, catalogue)| catalogue.tools.len()).sum();
        let n_others: usize = sources.iter().map(|(_, catalogue)| catalogue.others.len()).sum();
        let tools = snapshot.feature_list_mut(Feature::Tool);
        tools.items.reserve(n_tools);
        tools.by_key.reserve(n_tools);
        let mut owners: HashMap<_, &str, RandomState> =
            HashMap::with_capacity_and_hasher(n_tools + n_others, RandomState::default());
        let mut named = Vec::with_capacity(n_tools);
        let mut descriptors = Vec::with_capacity(n_tools + n_others);
        let mut first_used = Vec::new();
        for (source, catalogue) in sources {
            let rejected = catalogue.rejected.iter();
            snapshot
                .refused
                .extend(rejected.map(|r| refused_feature(source, r.feature, &r.name, r.reason.clone())));
            for descriptor in catalogue.tools.iter().chain(&catalogue.others) {
                match self.namespace_conflict(source, descriptor) {
                    Some(reason) => {
                        let refused = refused_feature(source, descriptor.feature, &descriptor.name, reason);
                        snapshot.refused.push(refused);
                    }
                    None => descriptors.push((*source, descriptor)),
                }
            }
        }
        snapshot.pins = self.pins_for(&descriptors);
        // Large lists are spread over all cores: this is most of the work.
        let candidates = map_all(&descriptors, |(source, descriptor)| {
            self.candidate(source, descriptor, &snapshot).map_err(Box::new)
        });
        for ((source, descriptor), candidate) in descriptors.into_iter().zip(candidates) {
            match (owners.entry((descriptor.feature, key(descriptor))), candidate) {
                (Entry::Occupied(owner), _) => {
                    let reason = conflict_reason(descriptor, owner.get());
                    let refused = refused_feature(source, descriptor.feature, &descriptor.name, reason);
                    snapshot.refused.push(refused);
                }
                (Entry::Vacant(vacant), Ok(candidate)) => {
                    let name = vacant.key().1.clone();
                    vacant.insert(source);
                    named.extend(candidate.look.map(|look| (source, &**descriptor, look)));
                    match candidate.pin {
                        // A withheld tool keeps its name, so that no other source can take it.
                        PinCheck::Withheld(withheld) => {
                            snapshot.withheld.push(*withheld);
                            continue;
                        }
                        PinCheck::FirstUse(pin) => first_used.push(*pin),
                        PinCheck::Offered => {}
                    }
                    let list = snapshot.feature_list_mut(descriptor.feature);
                    list.by_key.insert(name, candidate.tool.clone());
                    list.items.push(candidate.tool);
                }
                (Entry::Vacant(_), Err(refused)) => snapshot.refused.push(*refused),
            }
        }
        if !first_used.is_empty() {
            self.pins.store().add_first_used(first_used);
            snapshot.pins = self.pins.store().snapshot();
        }
        snapshot.warnings = look_alikes(named);
        snapshot.retained = self.retained(sources, &snapshot);
        self.finish(&mut snapshot);
        snapshot
    }

    /// Returns the pins that these descriptors are compared with. Pins that are still being read are waited for, so they are not asked
    /// for in vain.
    fn pins_for(&self, descriptors: &[(&str, &Arc<Descriptor>)]) -> Arc<PinSet> {
        let mut modes = descriptors
            .iter()
            .map(|(source, descriptor)| self.pins.mode_of(source, descriptor.origin.trust));
        match modes.any(|mode| mode != PinMode::Off) {
            true => self.pins.store().snapshot(),
            false => self.before.pins.clone(),
        }
    }

    /// Makes the tool of a descriptor, and finds out whether its definition is accepted. `now` has the pins, and no tools yet.
    fn candidate(
        &self,
        source: &str,
        descriptor: &Arc<Descriptor>,
        now: &Snapshot,
    ) -> Result<Candidate, RefusedFeature> {
        let tool = self.tool(source, descriptor)?;
        Ok(Candidate {
            pin: self.check_pin(source, &tool, now),
            look: is_named(descriptor.feature).then(|| self.looks.of(descriptor)),
            tool,
        })
    }

    fn check_pin(&self, source: &str, tool: &Arc<Tool>, now: &Snapshot) -> PinCheck {
        let descriptor = tool.descriptor();
        let offered = self.before.find(descriptor.feature, &key(descriptor));
        // Compared already: nothing has changed, neither the definition nor the pins.
        if self.reuses_tools
            && Arc::ptr_eq(&self.before.pins, &now.pins)
            && !self.before.unconfirmed.contains(source)
            && offered.is_some_and(|offered| Arc::ptr_eq(offered, tool))
        {
            return PinCheck::Offered;
        }
        check_pin(
            self.pins,
            &now.pins,
            source,
            tool,
            now.unconfirmed.contains(source),
        )
    }

    /// Returns the reason if a name belongs to the namespace of another source. Names that an operator gave are exempt.
    fn namespace_conflict(&self, source: &str, descriptor: &Descriptor) -> Option<String> {
        if !is_named(descriptor.feature) || descriptor.origin.trust == Trust::Operator {
            return None;
        }
        let name = &descriptor.name;
        let (prefix, owner) = self.namespaces.find_foreign(source, name)?;
        (!(self.is_renamed)(source, name)).then(|| {
            format!(
                "names that begin with `{prefix}` belong to `{owner}`; rename it in the settings of `{source}`, or give one of \
                 the two another `prefix`"
            )
        })
    }

    /// Returns the states of missing tools that may return. Their upstream has the name of their source.
    fn retained(
        &self,
        sources: &[(&str, Arc<Catalogue>)],
        now: &Snapshot,
    ) -> HashMap<(Feature, Arc<str>), Arc<ToolState>> {
        let unread = sources.iter().filter(|(_, catalogue)| catalogue.revision == 0);
        let unread: HashSet<&str> = unread.map(|(name, _)| *name).collect();
        let may_return = |(feature, key): &(Feature, Arc<str>), state: &ToolState| {
            let upstream = state.upstream();
            upstream.is_some_and(|upstream| unread.contains(&**upstream.name()))
                && now.find_any(*feature, key).is_none()
        };
        let lists = Feature::ALL
            .iter()
            .copied()
            .map(|feature| self.before.list(feature));
        let withheld = self.before.withheld.iter().map(|withheld| &withheld.tool);
        let known = lists.flatten().chain(withheld).map(|tool| {
            let descriptor = tool.descriptor();
            ((descriptor.feature, key(descriptor)), tool.state().clone())
        });
        let retained = self.before.retained.clone();
        known
            .chain(retained)
            .filter(|(key, state)| may_return(key, state))
            .collect()
    }

    /// Sorts the lists, and sets the revision of those that have changed.
    fn finish(&self, snapshot: &mut Snapshot) {
        let revision = snapshot.revision;
        for &feature in Feature::ALL {
            let before = self.before.feature_list(feature);
            let list = snapshot.feature_list_mut(feature);
            list.items.sort_by(|a, b| a.name().cmp(b.name()));
            let is_same = list.items.len() == before.items.len()
                && list
                    .items
                    .iter()
                    .zip(&before.items)
                    // A list shows definitions only, so that other changes do not matter.
                    .all(|(now, then)| Arc::ptr_eq(now, then) || now.has_definition_of(then));
            list.revision = if is_same && self.before.revision > 0 && !self.lists_changed {
                before.revision
            } else {
                revision
            };
        }
        let templates = snapshot.list(Feature::ResourceTemplate).iter();
        snapshot.uri_templates = templates
            .map(|template| UriTemplate::new(template.descriptor().uri.as_deref().unwrap_or_default()))
            .collect();
    }

    fn tool(&self, source: &str, descriptor: &Arc<Descriptor>) -> Result<Arc<Tool>, RefusedFeature> {
        let before = self.before.find_any(descriptor.feature, &key(descriptor));
        let is_kept = |tool: &&Arc<Tool>| self.reuses_tools && Arc::ptr_eq(tool.descriptor(), descriptor);
        match before.filter(is_kept) {
            Some(tool) => Ok(tool.clone()),
            None => self.new_tool(source, descriptor, before),
        }
    }

    /// Checks that a tool can be offered, and prepares its backend. Changes nothing.
    pub(crate) fn prepare(
        &self,
        source: &str,
        descriptor: &Descriptor,
    ) -> Result<(&dyn Executor, Arc<dyn DynBackend>), RefusedFeature> {
        let refused = |reason: String, problems| RefusedFeature {
            problems,
            ..refused_feature(source, descriptor.feature, &descriptor.name, reason)
        };
        if is_named(descriptor.feature) {
            check_name(&descriptor.name).map_err(|error| refused(error.to_string(), Vec::new()))?;
        }
        if descriptor.feature == Feature::Tool && descriptor.origin.trust == Trust::Upstream {
            // Files are checked with their lines. A tool of a server whose arguments nothing can check is never called.
            verify(&descriptor.input_schema).map_err(|error| {
                refused(
                    format!("its `inputSchema` is not usable: {}", error.reason()),
                    Vec::new(),
                )
            })?;
        }
        let kind = &descriptor.executor.kind;
        let executor = self.executors.get(kind).ok_or_else(|| {
            let mut kinds: Vec<_> = self.executors.keys().map(|kind| format!("`{kind}`")).collect();
            kinds.sort();
            let known = kinds.join(", ");
            RefusedFeature {
                missing_kind: Some(kind.as_str().into()),
                ..refused(
                    format!("there is no executor `{kind}` here; there are {known}"),
                    Vec::new(),
                )
            }
        })?;
        let ungranted = ungranted(&**executor, descriptor);
        if !ungranted.is_empty() {
            return Err(refused(join(&ungranted), ungranted));
        }
        let prepared = executor
            .prepare(descriptor)
            .map_err(|problems| refused(join(&problems), problems))?;
        Ok((&**executor, prepared))
    }

    /// Makes a tool. The state of the tool before it is kept.
    pub(crate) fn new_tool(
        &self,
        source: &str,
        descriptor: &Arc<Descriptor>,
        before: Option<&Arc<Tool>>,
    ) -> Result<Arc<Tool>, RefusedFeature> {
        let (executor, prepared) = self.prepare(source, descriptor)?;
        let upstream = executor
            .upstream(descriptor)
            .map(|name| self.shared.upstream(name));
        let mut parts = ToolParts::new(descriptor.clone(), prepared);
        parts.input = Arc::new(LazySchema::new(descriptor.input_schema.clone()));
        parts.output = descriptor
            .output_schema
            .clone()
            .map(|schema| Arc::new(LazySchema::new(schema)) as _);
        let mut provenance = executor.provenance(descriptor);
        provenance.names.extend(descriptor.policy_names.iter().cloned());
        parts.provenance = provenance.into();
        parts.settings = {
            let mut settings = self.settings(descriptor, upstream.as_deref());
            settings.passes_key = executor.passes_key(descriptor);
            settings.task_support = match executor.task_support(descriptor) {
                TaskSupport::Background if descriptor.origin.awaits_acceptance() => TaskSupport::None,
                support => support,
            };
            settings.calls_tools = executor.calls_tools();
            if settings.calls_tools && descriptor.timeout.is_none() {
                settings.attempt_timeout = settings.call_timeout;
            }
            if executor.bounds_results() {
                settings.max_result_bytes = None;
            }
            self.common_settings.share(settings)
        };
        parts.state = {
            let own_key = (descriptor.feature, key(descriptor));
            let retained = || self.before.retained.get(&own_key).cloned();
            let of_clients = || self.shared.clients.state_of(&own_key);
            let known = before.map(|tool| tool.state().clone());
            state(known.or_else(retained).or_else(of_clients), upstream)
        };
        let tool = Tool::new(parts);
        let same = before.filter(|before| tool.answers_as(before));
        let generation = same.map_or(self.generation, |same| same.generation());
        Ok(Arc::new(tool.in_generation(generation)))
    }

    /// Returns the settings of a tool. Its own settings override those of its upstream, which override the defaults. Its timeout
    /// also extends the timeout of the call, unless an agent set it: that one only shortens an attempt. Metadata that a server
    /// sends sets nothing.
    fn settings(&self, descriptor: &Descriptor, upstream: Option<&UpstreamState>) -> Settings {
        let upstream = upstream.and_then(|upstream| self.upstream_settings.get(&**upstream.name()));
        let mut settings = upstream.unwrap_or(&self.defaults).clone();
        match descriptor.timeout {
            Some(timeout) if descriptor.origin.awaits_acceptance() => {
                settings.attempt_timeout = settings.attempt_timeout.min(timeout);
            }
            Some(timeout) => {
                settings.attempt_timeout = timeout;
                settings.call_timeout = settings.call_timeout.max(timeout);
            }
            None => {}
        }
        if descriptor.origin.declarations_count() {
            settings = settings.overridden(&descriptor.overrides, SettingLevel::Tool);
        }
        settings.settled(descriptor)
    }
}

/// Returns `true` for entries that people and models know by a name, and not by a URI.
fn is_named(feature: Feature) -> bool {
    matches!(feature, Feature::Tool | Feature::Prompt)
}

fn join(problems: &[PrepareError]) -> String {
    let reasons: Vec<_> = problems.iter().map(ToString::to_string).collect();
    reasons.join("; ")
}

/// Returns the uses of secrets by a tool that an agent made, for which it has no grant.
fn ungranted(executor: &dyn Executor, descriptor: &Descriptor) -> Vec<PrepareError> {
    if descriptor.origin.trust != Trust::Agent {
        return Vec::new();
    }
    let uses = executor.reach(descriptor).secrets.into_iter();
    let ungranted = uses.filter(|needed| !descriptor.origin.granted.contains(needed));
    ungranted
        .map(|needed| {
            let SecretUse {
                secret,
                field,
                destination,
                ..
            } = &needed;
            let message = format!("`{secret}` in `{field}` is not granted to the tool, for {destination}");
            PrepareError::at(&**field, message)
                .with_hint("an operator grants it by `toolplane secrets grant`")
        })
        .collect()
}

/// Returns the previous state of a tool if its upstream is still the same, otherwise a new state.
fn state(before: Option<Arc<ToolState>>, upstream: Option<Arc<UpstreamState>>) -> Arc<ToolState> {
    let name = |upstream: &Arc<UpstreamState>| upstream.name().clone();
    let known = before.filter(|state| state.upstream().map(name) == upstream.as_ref().map(name));
    known.unwrap_or_else(|| Arc::new(ToolState::new(upstream)))
}

fn refused_feature(source: &str, feature: Feature, name: &str, reason: String) -> RefusedFeature {
    RefusedFeature {
        feature,
        source: source.to_owned(),
        name: name.to_owned(),
        reason,
        problems: Vec::new(),
        missing_kind: None,
    }
}

/// Returns the reason for which the second of two entries with the same key is not offered.
fn conflict_reason(descriptor: &Descriptor, owner: &str) -> String {
    let (kind, name) = (descriptor.feature.as_str(), key(descriptor));
    match descriptor.feature {
        Feature::Tool | Feature::Prompt => {
            format!(
                "`{name}` is already a {kind} of `{owner}`; rename one of them or give its server a prefix"
            )
        }
        _ => format!("`{name}` is already a {kind} of `{owner}`, which comes first"),
    }
}
