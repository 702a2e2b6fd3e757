//! Chaos files: faults to inject on purpose.

use std::{path::Path, sync::Arc, time::Duration};

use raw_json::RawJson;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Deserialize;
use serde_json::Value;
use tool_core::Pattern;
use tool_settings::{Field, NodeId, Percent, Period, Sections};

use crate::{
    Diagnostic, Diagnostics, Syntax,
    diagnostics::report::Report,
    document::{json, lists::items, node::Kind, place::Cx, source::SourceFile, toml, yaml},
    loading::load,
    tools::metadata::texts,
};

/// Faults to inject on purpose, as a chaos file describes them.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ChaosSpec {
    /// Seed of all chance.
    pub seed: u64,
    /// Rules; the first one that fits a tool counts.
    pub rules: Vec<ChaosRuleSpec>,
}

/// Faults and delays of some tools.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChaosRuleSpec {
    /// Tools that the rule is for; all if empty.
    pub tools: Vec<Pattern>,
    /// Share of attempts that fail, from 0 to 1.
    pub failure_rate: f64,
    /// Faults that attempts fail with; the usual ones if absent.
    pub faults: Option<Vec<ChaosFault>>,
    /// Share of attempts that are delayed, from 0 to 1, and the longest delay.
    pub latency: Option<(f64, Duration)>,
}

/// A fault of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChaosFault {
    /// The request is sent, and it is known at once that no answer came. The tool does not run.
    Timeout,
    /// The request is sent, and no answer ever comes: the attempt ends by its own time limit. The tool does not run.
    Hang,
    /// The upstream cannot be reached, and nothing is sent.
    Network,
    /// The upstream refuses the credentials.
    Auth,
    /// The upstream asks to wait for a second.
    RateLimit,
    /// The upstream answers that it is at fault itself.
    ServerError,
    /// The tool runs, and its answer is lost.
    UnknownOutcome,
    /// The tool runs, and half of its answer is lost.
    Partial,
}

/// Faults on purpose, for `toolplane serve --chaos FILE`: to see what becomes of calls before the world does it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Chaos", extend("required" = ["rules"]))]
struct ChaosBody {
    /// The JSON Schema of this file, for editors.
    #[serde(rename = "$schema")]
    schema: Field<String>,
    /// Seed of all chance; 0 by default. The fate of the n-th attempt of a tool depends on the seed, the tool's name
    /// and n alone.
    seed: Field<u64>,
    /// Rules; the first one that fits a tool counts.
    rules: Field<Vec<Field<RuleBody>>>,
}

/// Faults and delays of some tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Rule")]
struct RuleBody {
    /// Tools, by the names that agents see, and resources, by their server's prefix and their URI; `*` stands for any
    /// characters. All by default.
    tools: Field<Vec<Field<String>>>,
    /// The share of attempts that fail, such as `20%`; none if it is not given.
    failure_rate: Field<Percent>,
    /// Faults that attempts fail with, each as likely; one that is listed twice is twice as likely. `timeout`,
    /// `network`, `auth`, `rate_limit` and `server_error` by default.
    errors: Field<Vec<Field<ChaosFault>>>,
    /// Delays of attempts; none by default.
    latency: Field<LatencyBody>,
}

/// Delays of attempts, before anything is sent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Latency")]
struct LatencyBody {
    /// The share of attempts that are delayed; 30% if it is not given.
    rate: Field<Percent>,
    /// The longest delay, each shorter one being as likely; 5s if it is not given.
    max: Field<Period>,
}

/// Loads a chaos file, which is YAML or JSON.
///
/// ```
/// use tool_manifest::{Syntax, read_chaos};
///
/// let text = "seed: 42\nrules: [{tools: [weather], failure_rate: 20%, latency: {max: 2s}}]\n";
/// let chaos = read_chaos("chaos.yaml", Syntax::Yaml, text)?;
/// assert_eq!((chaos.seed, chaos.rules.len()), (42, 1));
/// # Ok::<(), tool_manifest::Diagnostics>(())
/// ```
///
/// # Errors
/// Every problem that was found, each with its line.
pub fn load_chaos(path: &Path) -> Result<ChaosSpec, Diagnostics> {
    let source = load::open(path).map_err(|problem| Diagnostics::new(vec![problem]))?;
    read(source)
}

/// Reads a chaos file from a text, whose name is for messages: see [`load_chaos`].
///
/// # Errors
/// As [`load_chaos`].
pub fn read_chaos(name: &str, syntax: Syntax, text: &str) -> Result<ChaosSpec, Diagnostics> {
    let bytes = text.as_bytes().to_vec();
    let source = SourceFile::decode(name.to_owned(), Default::default(), syntax, bytes);
    read(source.map_err(|problem| Diagnostics::new(vec![problem]))?)
}

/// Returns the JSON Schema (2020-12) of a chaos file.
#[must_use]
pub fn chaos_schema() -> RawJson {
    let generator = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let mut schema = generator.into_root_schema_for::<ChaosBody>().to_value();
    if let Value::Object(schema) = &mut schema {
        schema.insert("title".to_owned(), Value::from("toolplane chaos"));
    }
    RawJson::from(schema)
}

fn read(source: SourceFile) -> Result<ChaosSpec, Diagnostics> {
    let (source, report, sections) = (Arc::new(source), Report::default(), Sections::default());
    let documents = match source.syntax {
        Syntax::Yaml => yaml::read(&source, &report),
        Syntax::Json => json::read(&source, &report),
        Syntax::Toml => toml::read(&source, &report),
    };
    let mut chaos = None;
    for document in documents.into_iter().map(Arc::new) {
        let cx = Cx {
            document: &document,
            report: &report,
            sections: &sections,
            lenient: false,
        };
        let root = document.root();
        match (&chaos, document.kind(root)) {
            (_, Kind::Null) => {}
            (None, _) => chaos = self::chaos(cx, root),
            (Some(_), _) => cx.key_error(root, "one file says it once", "remove what follows `---`"),
        }
    }
    if chaos.is_none() && !report.has_errors() {
        report.push(Diagnostic::error("there is nothing in this file"));
    }
    report.sort_from(0);
    match chaos.filter(|_| !report.has_errors()) {
        Some(chaos) => Ok(chaos),
        None => Err(Diagnostics::new(report.into_problems())),
    }
}

fn chaos(cx: Cx<'_>, at: NodeId) -> Option<ChaosSpec> {
    let body = cx.read::<ChaosBody>(at)?;
    if body.rules.is_absent() {
        cx.key_error(at, "there are no `rules`", "write `rules: [{failure_rate: 20%}]`");
    }
    let rules = items(body.rules).filter_map(|field| Some(rule(cx, field.located()?)));
    Some(ChaosSpec {
        seed: body.seed.get().unwrap_or_default(),
        rules: rules.collect(),
    })
}

fn rule(cx: Cx<'_>, (at, body): (NodeId, RuleBody)) -> ChaosRuleSpec {
    if body.failure_rate.is_absent() && body.latency.is_absent() {
        let hint = "write `failure_rate: 20%` or `latency: {max: 2s}`; `failure_rate: 0%` for tools to be left alone";
        cx.key_error(at, "this rule does nothing", hint);
    }
    let share = |field: Field<Percent>| field.get().map(|Percent(share)| share / 100.0);
    let faults = body.errors.located().map(|(at, list)| {
        if list.is_empty() {
            cx.error(
                at,
                "something has to go wrong",
                "leave it out for the usual faults",
            );
        }
        list.into_iter().filter_map(Field::get).collect()
    });
    ChaosRuleSpec {
        tools: texts(body.tools).into_iter().map(Pattern::new).collect(),
        failure_rate: share(body.failure_rate).unwrap_or_default(),
        faults,
        latency: body.latency.get().map(|latency| {
            let max = latency
                .max
                .get()
                .map_or(Duration::from_secs(5), |Period(max)| max);
            (share(latency.rate).unwrap_or(0.3), max)
        }),
    }
}
