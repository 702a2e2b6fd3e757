//! Definition of a route, as read from its settings.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::Value;
use tool_core::{Descriptor, Pattern, PrepareError, Tool};
use tool_mapping::{Mapping, MappingPart, ReferenceRoot};
use tool_settings::{Percent, SettingFields, kind_of, pointer, suggest};

/// Definition of a route: which tools it chooses from, and by what.
#[derive(Debug)]
#[non_exhaustive]
pub struct RouteDefinition {
    /// Tools that it chooses from.
    pub wanted: WantedTools,
    /// Capabilities or labels that a candidate is the better for.
    pub requirements: Vec<String>,
    /// Latency that a candidate must not exceed.
    pub max_latency: Option<Duration>,
    /// Cost of a call that a candidate must not exceed, in US dollars.
    pub max_cost: Option<f64>,
    /// Share of successful calls that a candidate must reach, in percent.
    pub min_sla: Option<f64>,
    /// Figures that count besides health.
    pub priority: RoutePriority,
    /// Weights of the score.
    pub weights: RouteWeights,
    /// Points by which another candidate must be better to take the place of the leading one.
    pub hysteresis: f64,
    /// Maximum number of candidates that are called for one call.
    pub max_attempts: usize,
    /// Arguments by the name of the candidate. Others get those of the route.
    pub(crate) arguments: BTreeMap<String, Mapping>,
}

/// Tools that a route chooses from: those with a capability, and those that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct WantedTools {
    /// Capability that a tool must have.
    pub capability: Option<Arc<str>>,
    /// Labels that a tool with the capability must have.
    pub tags: Vec<String>,
    /// Tools that need no capability: names or patterns.
    pub tools: Vec<Pattern>,
}

/// Figures that count in a score, besides health and capabilities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoutePriority {
    /// `true` if latency counts.
    pub speed: bool,
    /// `true` if cost counts.
    pub cost: bool,
    /// `true` if the share of failed calls counts.
    pub reliability: bool,
}

/// Weights of a score. The defaults are those of the table that routes are built from.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RouteWeights {
    /// Points off for a degraded tool.
    pub degraded: f64,
    /// Points off for a latency above [`slow_above`](Self::slow_above), where speed counts.
    pub slow: f64,
    /// Points for a latency below [`fast_below`](Self::fast_below), where speed counts.
    pub fast: f64,
    /// Latency above which a tool is slow.
    pub slow_above: Duration,
    /// Latency below which a tool is fast.
    pub fast_below: Duration,
    /// Points off for each US dollar of a call, where cost counts.
    pub cost: f64,
    /// Points off for each percent of failed calls, where reliability counts.
    pub failures: f64,
    /// Points for each requirement that a tool meets.
    pub requirement: f64,
}

impl Default for RouteWeights {
    fn default() -> Self {
        Self {
            degraded: 20.0,
            slow: 30.0,
            fast: 20.0,
            slow_above: Duration::from_secs(1),
            fast_below: Duration::from_millis(200),
            cost: 1000.0,
            failures: 5.0,
            requirement: 30.0,
        }
    }
}

/// Default number of points by which another candidate must be better.
const DEFAULT_HYSTERESIS: f64 = 10.0;
/// Default number of candidates for one call.
const DEFAULT_ATTEMPTS: usize = 3;
/// Maximum number of candidates for one call that a route may ask for.
const MAX_ATTEMPTS: u32 = 10;

impl RouteDefinition {
    /// Creates the definition of a route among the tools with this capability, with defaults for everything else.
    #[must_use]
    pub fn for_capability(capability: impl Into<Arc<str>>) -> Self {
        Self::among(WantedTools {
            capability: Some(capability.into()),
            ..WantedTools::default()
        })
    }

    fn among(wanted: WantedTools) -> Self {
        Self {
            wanted,
            requirements: Vec::new(),
            max_latency: None,
            max_cost: None,
            min_sla: None,
            priority: RoutePriority::default(),
            weights: RouteWeights::default(),
            hysteresis: DEFAULT_HYSTERESIS,
            max_attempts: DEFAULT_ATTEMPTS,
            arguments: BTreeMap::new(),
        }
    }

    /// Returns the definition of a tool that is a route. `None` for another tool, and for one whose settings are not usable.
    #[must_use]
    pub fn of(descriptor: &Descriptor) -> Option<Self> {
        let executor = &descriptor.executor;
        (executor.kind == crate::RouteExecutor::KIND).then(|| Self::read(&executor.config).ok())?
    }

    /// Reads the settings of a route.
    ///
    /// # Errors
    /// Every problem in them, with its place.
    pub fn read(settings: &Value) -> Result<Self, Vec<PrepareError>> {
        let mut problems = Vec::new();
        let definition = Self::read_all(settings, &mut problems);
        if problems.is_empty() {
            Ok(definition)
        } else {
            Err(problems)
        }
    }

    fn read_all(settings: &Value, problems: &mut Vec<PrepareError>) -> Self {
        let mut fields = SettingFields::of(settings, "", problems);
        let capability = fields.text(&["capability"], problems);
        let tags = texts(&mut fields, "tags", problems);
        let tools = texts(&mut fields, "tools", problems);
        if let Some((at, "")) = &capability {
            problems.push(PrepareError::at(at, "the name of the capability is empty"));
        }
        let is_empty = capability.is_none() && tools.is_empty();
        if is_empty && settings.is_object() && problems.is_empty() {
            let problem = PrepareError::at("", "the route has no `capability`");
            problems
                .push(problem.with_hint("write `capability: search`, or name the `tools` to choose from"));
        }
        let mut route = Self::among(WantedTools {
            capability: capability.map(|(_, name)| name.into()),
            tags,
            tools: tools.into_iter().map(Pattern::new).collect(),
        });
        route.requirements = texts(&mut fields, "requirements", problems);
        if let Some((at, constraints)) = fields.get(&["constraints"]) {
            let mut fields = SettingFields::of(constraints, &at, problems);
            route.max_latency = fields.period("max_latency", problems);
            route.max_cost = number(&mut fields, "max_cost", problems);
            let min_sla: Option<Percent> = fields.parsed("min_sla", "a share such as `99.5%`", problems);
            route.min_sla = min_sla.map(|Percent(share)| share);
            fields.finish(problems);
        }
        if let Some((at, priority)) = fields.get(&["priority"]) {
            route.priority = RoutePriority::read(priority, &at, problems);
        }
        route.priority.speed |= fields.flag("prioritizeSpeed", problems);
        route.priority.cost |= fields.flag("minimizeCost", problems);
        if let Some((at, weights)) = fields.get(&["weights"]) {
            route.weights = RouteWeights::read(weights, &at, problems);
        }
        if let Some(hysteresis) = number(&mut fields, "hysteresis", problems) {
            route.hysteresis = hysteresis;
        }
        if let Some(attempts) = fields.count("max_attempts", MAX_ATTEMPTS, problems) {
            route.max_attempts = attempts as usize;
        }
        if let Some((at, arguments)) = fields.get(&["arguments"]) {
            route.arguments = mappings(arguments, &at, problems);
        }
        fields.finish(problems);
        route
    }

    /// Returns the names of the tools with arguments of their own.
    pub fn named_candidates(&self) -> impl Iterator<Item = &str> {
        self.arguments.keys().map(String::as_str)
    }
}

impl WantedTools {
    /// Returns `true` if a tool is a candidate by what it is: routes are none, so that no route leads back to itself.
    #[must_use]
    pub fn admits(&self, tool: &Tool) -> bool {
        let descriptor = tool.descriptor();
        if descriptor.executor.kind == crate::RouteExecutor::KIND {
            return false;
        }
        let metadata = &descriptor.metadata;
        let has_capability = self.capability.as_ref().is_some_and(|wanted| {
            metadata.capabilities.iter().any(|known| **known == **wanted)
                && self.tags.iter().all(|tag| metadata.tags.contains(tag))
        });
        has_capability
            || self
                .tools
                .iter()
                .any(|pattern| tool.names().any(|name| pattern.matches(name)))
    }
}

impl RoutePriority {
    /// Creates a priority of these figures.
    #[must_use]
    pub const fn of(speed: bool, cost: bool, reliability: bool) -> Self {
        Self {
            speed,
            cost,
            reliability,
        }
    }

    const WORDS: [&str; 3] = ["speed", "cost", "reliability"];

    /// Reads one word, or a list of words.
    fn read(value: &Value, at: &str, problems: &mut Vec<PrepareError>) -> Self {
        let mut priority = Self::default();
        let words: Vec<(String, &Value)> = match value {
            Value::Array(words) => {
                let words = words.iter().enumerate();
                words
                    .map(|(index, word)| (format!("{at}/{index}"), word))
                    .collect()
            }
            word => vec![(at.to_owned(), word)],
        };
        for (at, word) in words {
            match word.as_str() {
                Some("speed") => priority.speed = true,
                Some("cost") => priority.cost = true,
                Some("reliability") => priority.reliability = true,
                Some(other) => {
                    let problem = format!("there is no priority `{}`", suggest::shown(other));
                    problems
                        .push(PrepareError::at(at, problem).with_hint(suggest::value(other, &Self::WORDS)));
                }
                None => problems.push(PrepareError::at(
                    at,
                    format!(
                        "expected `speed`, `cost` or `reliability`, found {}",
                        kind_of(word)
                    ),
                )),
            }
        }
        priority
    }
}

impl RouteWeights {
    fn read(value: &Value, at: &str, problems: &mut Vec<PrepareError>) -> Self {
        let mut weights = Self::default();
        let mut fields = SettingFields::of(value, at, problems);
        for (name, weight) in [
            ("degraded", &mut weights.degraded),
            ("slow", &mut weights.slow),
            ("fast", &mut weights.fast),
            ("cost", &mut weights.cost),
            ("failures", &mut weights.failures),
            ("requirement", &mut weights.requirement),
        ] {
            if let Some(read) = number(&mut fields, name, problems) {
                *weight = read;
            }
        }
        for (name, bound) in [
            ("slow_above", &mut weights.slow_above),
            ("fast_below", &mut weights.fast_below),
        ] {
            if let Some(read) = fields.period(name, problems) {
                *bound = read;
            }
        }
        fields.finish(problems);
        if weights.fast_below > weights.slow_above {
            let at = pointer(at, "fast_below");
            let problem = PrepareError::at(at, "a tool would be fast and slow at once");
            problems.push(problem.with_hint("write a time that is not longer than `slow_above`"));
        }
        weights
    }
}

/// Reads a number that is not negative.
fn number(
    fields: &mut SettingFields<'_>,
    name: &'static str,
    problems: &mut Vec<PrepareError>,
) -> Option<f64> {
    let (at, value) = fields.get(&[name])?;
    let number = value.as_f64().filter(|number| *number >= 0.0);
    if number.is_none() {
        problems.push(PrepareError::at(at, "expected a number that is not negative"));
    }
    number
}

/// Reads a list of texts. A single text is a list of one.
fn texts(
    fields: &mut SettingFields<'_>,
    name: &'static str,
    problems: &mut Vec<PrepareError>,
) -> Vec<String> {
    let Some((at, value)) = fields.get(&[name]) else {
        return Vec::new();
    };
    let items = match value {
        Value::Array(items) => items.iter().collect(),
        single => vec![single],
    };
    let mut texts = Vec::with_capacity(items.len());
    for item in items {
        match item.as_str().filter(|text| !text.is_empty()) {
            Some(text) => texts.push(text.to_owned()),
            None => {
                let found = if item.as_str().is_some() {
                    "an empty one"
                } else {
                    kind_of(item)
                };
                problems.push(PrepareError::at(
                    &at,
                    format!("expected a list of texts, found {found}"),
                ));
            }
        }
    }
    texts
}

/// Reads the arguments of candidates. They may refer to the arguments of the route alone.
fn mappings(value: &Value, at: &str, problems: &mut Vec<PrepareError>) -> BTreeMap<String, Mapping> {
    let Some(members) = value.as_object() else {
        problems.push(PrepareError::at(
            at,
            format!("expected a map of tools, found {}", kind_of(value)),
        ));
        return BTreeMap::new();
    };
    let mut mappings = BTreeMap::new();
    for (tool, value) in members {
        let at = pointer(at, tool);
        if !value.is_object() {
            problems.push(PrepareError::at(
                &at,
                format!("expected a map of arguments, found {}", kind_of(value)),
            ));
        }
        let mapping = Mapping::read(value, &at, problems);
        mapping.visit(&mut |part| check_part(part, problems));
        mappings.insert(tool.clone(), mapping);
    }
    mappings
}

/// Reports a part that refers to something besides the input.
fn check_part(part: MappingPart<'_>, problems: &mut Vec<PrepareError>) {
    let other = match part {
        MappingPart::Reference(reference) => match &reference.value.root {
            ReferenceRoot::Input => None,
            _ => Some(format!("`{}`", reference.value)),
        },
        MappingPart::Expression(expression) => {
            let uses = expression.value.uses();
            let steps = uses
                .steps
                .iter()
                .chain(&uses.guarded)
                .map(|step| format!("`results.{step}`"));
            let mut others = steps.chain(uses.variables.iter().map(|name| format!("`{name}`")));
            others.next()
        }
    };
    if let Some(other) = other {
        let problem = PrepareError::at(part.at(), format!("there is no {other} in a route"));
        problems.push(problem.with_hint("refer to the arguments of the route: `$input.NAME`"));
    }
}
