use std::{collections::HashSet, sync::Arc, time::Duration};

use raw_json::RawJson;
use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Overrides, Setting};
use tool_settings::{
    ConfigProblem, ConfiguredTool, DeferredCheck, Field, NodeId, Period, Raw, Section, SectionContext,
    SectionKeys, ToolSettings, suggest,
};

use crate::{CacheSettings, FallbackLayer, cache::may_be_shared};

/// A step of a fallback ladder, which runs if a call of a tool fails. The first step with a result ends the ladder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureStep {
    /// Calls another tool with the same arguments, as a call of that tool in its own right.
    Fallback(Arc<str>),
    /// Returns the result in the tool's cache, if it is no older than this.
    Stale(Duration),
    /// Returns this value.
    Default(RawJson),
}

/// Steps of a fallback ladder, in the order in which they are tried. Without a ladder, the call fails.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FallbackLadder(pub Arc<[FailureStep]>);

impl FallbackLadder {
    /// Returns the maximum age of a stale result that a step may return; `None` if there is no such step.
    #[must_use]
    pub fn longest_stale(&self) -> Option<Duration> {
        let ages = self.0.iter().filter_map(|step| match step {
            FailureStep::Stale(age) => Some(*age),
            _ => None,
        });
        ages.max()
    }

    /// Returns the ladder for a tool's list of fallbacks, with one step for each. Returns `None` if the tool lists
    /// none, or if the list comes from a server that describes its own tools.
    fn listed(tool: &Descriptor) -> Option<Self> {
        let fallbacks = &tool.metadata.fallbacks;
        let is_listed = tool.origin.declarations_count() && !fallbacks.is_empty();
        let steps = fallbacks
            .iter()
            .map(|name| FailureStep::Fallback(name.as_str().into()));
        is_listed.then(|| Self(steps.collect()))
    }
}

impl From<Vec<FailureStep>> for FallbackLadder {
    fn from(steps: Vec<FailureStep>) -> Self {
        Self(steps.into())
    }
}

impl Setting for FallbackLadder {
    /// Uses the tool's own list of fallbacks as its ladder.
    fn settled(&self, tool: &Descriptor) -> Option<Self> {
        let is_own = tool.origin.declarations_count() && tool.overrides.get::<Self>().is_some();
        let listed = Self::listed(tool).filter(|_| !is_own);
        let ladder = listed.unwrap_or_else(|| self.clone());
        (!ladder.0.is_empty()).then_some(ladder)
    }
}

impl FallbackLayer {
    /// The section `on_failure`. A tool's `fallbacks` are another spelling of a ladder.
    #[must_use]
    pub fn section() -> Section {
        Section::new()
            .for_tools(SectionKeys::new(read_tool))
            .for_servers(SectionKeys::new(|cx, keys: ServerKeys, overrides| {
                read(cx, keys.on_failure, overrides);
            }))
            .for_defaults(
                SectionKeys::new(|cx, keys: DefaultKeys, overrides| {
                    read(cx, keys.on_failure, overrides);
                })
                .in_group(2),
            )
            .always(FallbackLadder::default())
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ToolKeys {
    /// Fallback steps for a failed call, tried in the order of the list: call another tool, return a stale result, or
    /// return a default value. Overrides `defaults`.
    on_failure: LadderField,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ServerKeys {
    /// Fallback steps for failed calls of the server's tools. Only `stale` is allowed for many tools. Overrides
    /// `defaults`.
    on_failure: LadderField,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DefaultKeys {
    /// Fallback steps for failed calls. Only `stale` is allowed for many tools. Servers and tools can override it.
    /// Default: no steps, the call fails.
    on_failure: LadderField,
}

type LadderField = Field<Vec<Field<StepBody>>>;

/// One fallback step for a failed call: `fallback`, `stale` or `default`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "FailureStep", extend("minProperties" = 1, "maxProperties" = 1))]
struct StepBody {
    /// Name of the tool to call instead, with the same arguments. The name is the one that agents see.
    fallback: Field<String>,
    /// Maximum age of the cached result to return, such as `1h`.
    stale: Field<Period>,
    /// Default value to return as the result.
    default: Raw,
}

/// Reads the ladder of a tool. Its other spelling is a list of fallbacks, which stays a part of the tool's metadata.
fn read_tool(cx: SectionContext<'_>, keys: ToolKeys, tool: &mut ToolSettings) {
    let listed = tool.fallbacks.as_ref().into_iter().flatten();
    let listed: Vec<(NodeId, &str)> = listed
        .filter_map(|field| Some((field.given()?, field.as_ref()?.as_str())))
        .collect();
    let Some(bodies) = keys.on_failure.get() else {
        check_names(cx, &tool.name, &listed);
        let steps = listed.into_iter();
        let steps = steps.map(|(at, name)| (at, FailureStep::Fallback(name.into())));
        let steps: Vec<_> = steps.collect();
        if !steps.is_empty() {
            tool.checks
                .push(DeferredCheck::new(move |tool| check_steps(tool, &steps)));
        }
        return;
    };
    if let Some(second) = tool.fallbacks.given() {
        cx.key_error(
            second,
            "`fallbacks` and `on_failure` say the same thing",
            "write the tools as steps: `on_failure: [fallback: ..]`",
        );
    }
    let read: Vec<_> = bodies.into_iter().filter_map(|body| step(cx, body)).collect();
    let names: Vec<_> = read
        .iter()
        .filter_map(|(at, step)| match step {
            FailureStep::Fallback(name) => Some((*at, &**name)),
            _ => None,
        })
        .collect();
    check_names(cx, &tool.name, &names);
    check_order(cx, &read);
    let steps: Arc<[FailureStep]> = read.iter().map(|(_, step)| step.clone()).collect();
    tool.overrides.set(FallbackLadder(steps));
    tool.checks
        .push(DeferredCheck::new(move |tool| check_steps(tool, &read)));
}

/// Reads the ladder of many tools, which must not contain steps that fit only one tool.
fn read(cx: SectionContext<'_>, on_failure: LadderField, overrides: &mut Overrides) {
    let Some(bodies) = on_failure.get() else { return };
    let steps = bodies.into_iter().filter_map(|body| step(cx, body));
    let steps = steps.filter(|(at, step)| {
        let is_stale = matches!(step, FailureStep::Stale(_));
        if !is_stale {
            cx.error(
                *at,
                "this cannot be for many tools: only `stale` can",
                "write it in the `on_failure` of the tool that it is for",
            );
        }
        is_stale
    });
    overrides.set(FallbackLadder(steps.map(|(_, step)| step).collect()));
}

/// Reads one step, with the place of its value. Returns `None`, and reports it, if the step is not usable.
fn step(cx: SectionContext<'_>, field: Field<StepBody>) -> Option<(NodeId, FailureStep)> {
    let (at, body) = field.located()?;
    let is_wrong = body.fallback.is_wrong() || body.stale.is_wrong();
    let mut found = Vec::new();
    if let Some((at, name)) = body.fallback.located() {
        found.push((at, FailureStep::Fallback(name.into())));
    }
    if let Some((at, Period(age))) = body.stale.located() {
        if age.is_zero() {
            let hint = "say how old it may be, such as `stale: 1h`";
            cx.error(at, "no kept answer is as young as this", hint);
        }
        found.push((at, FailureStep::Stale(age)));
    }
    if let Some(at) = body.default.0
        && let Some(value) = cx.json(at)
    {
        found.push((at, FailureStep::Default(value)));
    }
    match found.len() {
        1 => found.pop(),
        0 if is_wrong => None,
        0 => {
            let hint = "write `fallback: ..`, `stale: ..` or `default: ..`";
            cx.error(at, "this step says nothing", hint);
            None
        }
        _ => {
            let hint = "write a step of the list for each";
            cx.error(at, "this is more than one step", hint);
            None
        }
    }
}

/// Reports fallbacks that have no effect.
fn check_names(cx: SectionContext<'_>, own: &str, names: &[(NodeId, &str)]) {
    let mut seen = HashSet::new();
    for (at, name) in names {
        if *name == own {
            cx.error(
                *at,
                "a tool is no help when it has failed itself",
                "name another tool",
            );
        } else if !seen.insert(*name) {
            cx.error(*at, "this tool is tried already", "remove it here");
        }
    }
}

/// Reports a step that comes after a `default`.
fn check_order(cx: SectionContext<'_>, steps: &[(NodeId, FailureStep)]) {
    let is_default = |(_, step): &&(NodeId, FailureStep)| matches!(step, FailureStep::Default(_));
    let n_behind = steps.iter().rev().take_while(|step| !is_default(step)).count();
    if n_behind > 0 && n_behind < steps.len() {
        let (first, _) = steps[steps.len() - n_behind];
        cx.error(
            first,
            "this step is never taken: the `default` before it is always there",
            "put the `default` last",
        );
    }
}

/// Checks the targets of a tool's steps.
fn check_steps(tool: &dyn ConfiguredTool, steps: &[(NodeId, FailureStep)]) {
    for (at, step) in steps {
        let problem = match step {
            FailureStep::Fallback(name) if !tool.may_exist(name) => Some((
                true,
                format!("no tool is called `{}` here", suggest::shown(name)),
                match suggest::nearest(name, &tool.names()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "this step is passed over unless a program adds it".to_owned(),
                },
            )),
            FailureStep::Stale(_) if !may_be_kept(tool) => Some((
                false,
                "no answer of this tool is kept that could be given".to_owned(),
                "add `cache: {}` to the tool, or remove the step".to_owned(),
            )),
            FailureStep::Default(value) => tool.output_mismatch(value).map(|why| {
                (
                    false,
                    format!("this does not fit the output schema of the tool: {why}"),
                    "clients that know the schema would not take it".to_owned(),
                )
            }),
            _ => None,
        };
        if let Some((is_warning, message, hint)) = problem {
            tool.report(ConfigProblem::new(*at, message, hint).with_warning(is_warning));
        }
    }
}

/// Returns `true` if results of a tool may be cached: by its own settings, or by those of whichever server runs it.
fn may_be_kept(tool: &dyn ConfiguredTool) -> bool {
    let is_on = |overrides: &Overrides| {
        overrides
            .get::<CacheSettings>()
            .is_some_and(|cache| !cache.disabled)
    };
    let descriptor = tool.descriptor();
    if descriptor.overrides.get::<CacheSettings>().is_some() {
        return is_on(&descriptor.overrides);
    }
    may_be_shared(descriptor) && (is_on(tool.defaults()) || tool.servers().into_iter().any(is_on))
}
