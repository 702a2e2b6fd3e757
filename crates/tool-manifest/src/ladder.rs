//! What is done when calls fail: the steps of a ladder, and whether they lead anywhere.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use raw_json::RawJson;
use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{CacheSettings, CheckJson, Descriptor, FailureStep, outward_name};
use tool_schema::Schema;

use crate::{
    Defaults, Diagnostic, ServerSpec,
    field::{Field, Raw},
    node::NodeId,
    place::{Cx, Place},
    schema_field, suggest,
    tool::ToolDraft,
    units::Period,
};

/// One thing that is done when a call fails: `fallback`, `stale` or `default`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "FailureStep", extend("minProperties" = 1, "maxProperties" = 1))]
pub(crate) struct StepBody {
    /// The tool that is called in its place, with the same arguments, by the name that agents see.
    fallback: Field<String>,
    /// How old the answer may be that its cache has, such as `1h`.
    stale: Field<Period>,
    /// What is given as its answer.
    default: Raw,
}

/// A ladder as a file has it.
pub(crate) type LadderField = Field<Vec<Field<StepBody>>>;

/// The steps of a tool, with the places of their values.
#[derive(Debug, Default)]
pub(crate) struct Ladder {
    pub(crate) steps: Option<Arc<[FailureStep]>>,
    pub(crate) places: Vec<NodeId>,
}

/// The ladder of a tool. Its other spelling is a list of fallbacks, which stays a part of the tool's metadata.
pub(crate) fn of_tool(
    cx: Cx<'_>,
    name: &str,
    on_failure: LadderField,
    fallbacks: &Field<Vec<Field<String>>>,
) -> Ladder {
    let listed = fallbacks.as_ref().into_iter().flatten();
    let listed: Vec<(NodeId, &str)> = listed
        .filter_map(|field| Some((field.given()?, field.as_ref()?.as_str())))
        .collect();
    let Some(bodies) = on_failure.get() else {
        check_names(cx, name, &listed);
        return Ladder {
            steps: None,
            places: listed.into_iter().map(|(at, _)| at).collect(),
        };
    };
    if let Some(second) = fallbacks.given() {
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
    check_names(cx, name, &names);
    let is_default = |(_, step): &&(NodeId, FailureStep)| matches!(step, FailureStep::Default(_));
    let n_behind = read.iter().rev().take_while(|step| !is_default(step)).count();
    if n_behind > 0 && n_behind < read.len() {
        let (first, _) = read[read.len() - n_behind];
        cx.error(
            first,
            "this step is never taken: the `default` before it is always there",
            "put the `default` last",
        );
    }
    let (places, steps): (Vec<_>, Vec<_>) = read.into_iter().unzip();
    Ladder {
        steps: Some(steps.into()),
        places,
    }
}

/// The ladder of many tools, in which there is nothing that fits one of them alone.
pub(crate) fn of_many(cx: Cx<'_>, on_failure: LadderField) -> Option<Arc<[FailureStep]>> {
    let bodies = on_failure.get()?;
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
    Some(steps.map(|(_, step)| step).collect())
}

/// One step, and the place of its value; nothing if it is not usable, which is then reported.
fn step(cx: Cx<'_>, field: Field<StepBody>) -> Option<(NodeId, FailureStep)> {
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
        && let Some(value) = schema_field::json(cx, at)
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

/// Reports fallbacks that are no help.
fn check_names(cx: Cx<'_>, own: &str, names: &[(NodeId, &str)]) {
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

/// What is wrong with a tool's ladder by what else there is: the errors, and the warnings.
pub(crate) struct Verdict {
    pub(crate) errors: Vec<Diagnostic>,
    pub(crate) warnings: Vec<Diagnostic>,
}

/// What ladders are looked at beside.
pub(crate) struct Others<'a> {
    pub(crate) names: BTreeSet<&'a str>,
    pub(crate) servers: Vec<&'a ServerSpec>,
    pub(crate) defaults: &'a Defaults,
}

/// Why a tool cannot give this, if it cannot. Nothing is said by a schema that is not usable: that is a problem of its own.
fn unfit(tool: &Descriptor, value: &RawJson) -> Option<String> {
    let schema = Schema::compile(tool.output_schema.as_ref()?).ok()?;
    let checked = value.to().map(|value| schema.check(&value));
    match checked {
        Ok(Ok(())) => None,
        Ok(Err(mismatch)) => Some(mismatch.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

impl Others<'_> {
    /// Looks where the steps of a tool lead.
    pub(crate) fn judge(&self, tool: &ToolDraft) -> Verdict {
        let mut verdict = Verdict {
            errors: Vec::new(),
            warnings: Vec::new(),
        };
        let ladder = tool.descriptor.on_failure().unwrap_or_default();
        for (step, at) in ladder.iter().zip(&tool.places.ladder) {
            let place = Place {
                at: *at,
                ..tool.places.name.clone()
            };
            let location = || Some(place.document.location(place.at));
            match step {
                FailureStep::Fallback(name) if !self.may_have(name) => {
                    let shown = suggest::shown(name);
                    let problem = Diagnostic::warning(format!("no tool is called `{shown}` here"));
                    let known: Vec<&str> = self.names.iter().copied().collect();
                    verdict.warnings.push(problem.with_location(location()).with_hint(
                        match suggest::nearest(name, &known) {
                            Some(near) => format!("did you mean `{near}`?"),
                            None => "this step is passed over unless a program adds it".to_owned(),
                        },
                    ));
                }
                FailureStep::Stale(_) if !self.may_be_kept(tool) => verdict.errors.push(
                    Diagnostic::error("no answer of this tool is kept that could be given")
                        .with_location(location())
                        .with_hint("add `cache: {}` to the tool, or remove the step"),
                ),
                FailureStep::Default(value) => {
                    let problem = unfit(&tool.descriptor, value).map(|why| {
                        Diagnostic::error(format!("this does not fit the output schema of the tool: {why}"))
                            .with_location(location())
                            .with_hint("clients that know the schema would not take it")
                    });
                    verdict.errors.extend(problem);
                }
                _ => {}
            }
        }
        verdict
    }

    /// Whether there may be a tool of this name: what a server has is not known before it is started.
    fn may_have(&self, name: &str) -> bool {
        let may_hold = |server: &&ServerSpec| {
            let prefix = server.prefix();
            let mut renamed = server.rename.values();
            // A prefix as long as a name may be is cut with the name.
            renamed.any(|new| outward_name(&format!("{prefix}{new}")) == name)
                || prefix.is_empty()
                || prefix.len() > 55
                || name.starts_with(&*outward_name(&prefix))
        };
        self.names.contains(name) || self.servers.iter().any(may_hold)
    }

    /// Whether answers of a tool may be kept: by its own settings, or by those of whichever server runs it.
    fn may_be_kept(&self, tool: &ToolDraft) -> bool {
        let is_on = |cache: &Option<CacheSettings>| cache.is_some_and(|cache| !cache.disabled);
        let descriptor = &tool.descriptor;
        let own = &descriptor.overrides.cache;
        if own.is_some() {
            return is_on(own);
        }
        let mut of_servers = self.servers.iter().map(|server| &server.overrides.cache);
        descriptor.may_be_shared() && (is_on(&self.defaults.overrides.cache) || of_servers.any(is_on))
    }
}
