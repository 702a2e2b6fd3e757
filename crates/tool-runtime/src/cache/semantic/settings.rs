use std::{collections::HashSet, sync::Arc};

use raw_json::RawJson;
use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, Setting};
use tool_settings::{ConfigProblem, ConfiguredTool, Field, NodeId, SectionContext, suggest};

use super::super::settings::may_be_shared;

/// Settings of the semantic cache of one tool: a call may be answered with the cached result of an earlier call whose arguments mean
/// the same in other words. Without [`CacheSettings`](crate::CacheSettings) of the tool, they have no effect.
///
/// Two calls mean the same if all arguments except `fields` are equal, the vectors of each field have at least the cosine
/// `threshold`, and the texts have the same words apart from those that say nothing. Texts of more than 500 bytes must be equal.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SemanticCacheSettings {
    /// Names of the arguments that are compared by meaning. All others must be equal.
    pub fields: Arc<[String]>,
    /// Minimum cosine of the vectors of two texts, from 0 to 1.
    pub threshold: f32,
}

impl SemanticCacheSettings {
    /// Default of the minimum cosine: lower ones gain almost no hits, since the words must agree as well.
    pub const DEFAULT_THRESHOLD: f32 = 0.85;

    /// Creates settings for these arguments.
    #[must_use]
    pub fn new<S: Into<String>>(fields: impl IntoIterator<Item = S>) -> Self {
        Self {
            fields: fields.into_iter().map(Into::into).collect(),
            threshold: Self::DEFAULT_THRESHOLD,
        }
    }

    /// Sets the minimum cosine of two texts.
    #[must_use]
    pub fn with_threshold(mut self, threshold: f32) -> Self {
        self.threshold = threshold;
        self
    }
}

impl PartialEq for SemanticCacheSettings {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields && self.threshold.to_bits() == other.threshold.to_bits()
    }
}

impl Eq for SemanticCacheSettings {}

impl Setting for SemanticCacheSettings {
    fn settled(&self, tool: &Descriptor) -> Option<Self> {
        (!self.fields.is_empty() && may_be_shared(tool)).then(|| self.clone())
    }
}

/// Semantic cache: a call is also answered with the cached result of an earlier call whose texts mean the same in other words. Needs
/// `search.embeddings`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "SemanticCache")]
pub(in super::super) struct SemanticBody {
    /// Names of the text arguments that are compared by meaning, such as `[query]`. All other arguments must be equal.
    fields: Field<Vec<Field<String>>>,
    /// Minimum cosine of the vectors of two texts, from 0 to 1. Default: 0.85.
    threshold: Field<f64>,
}

/// Settings with the places of their fields in the configuration.
pub(in super::super) struct LocatedSemantics {
    pub(in super::super) settings: SemanticCacheSettings,
    at: NodeId,
    places: Vec<(NodeId, String)>,
}

/// Reads the settings of a tool. Returns `None`, and reports it, if they cannot be used.
pub(in super::super) fn read(
    cx: SectionContext<'_>,
    at: NodeId,
    body: SemanticBody,
) -> Option<LocatedSemantics> {
    let is_wrong = body.fields.is_wrong();
    let fields = body.fields.get().unwrap_or_default().into_iter();
    let places: Vec<_> = fields.filter_map(Field::located).collect();
    if places.is_empty() && !is_wrong {
        cx.key_error(
            at,
            "the semantic cache names no argument",
            "name those that are compared by meaning, such as `fields: [query]`",
        );
    }
    let mut seen = HashSet::new();
    for (at, name) in &places {
        if !seen.insert(name) {
            cx.error(*at, "this argument is named twice", "remove it here");
        }
    }
    let mut threshold = f64::from(SemanticCacheSettings::DEFAULT_THRESHOLD);
    if let Some((at, given)) = body.threshold.located() {
        threshold = given;
        if !(given > 0.0 && given <= 1.0) {
            cx.error(
                at,
                "the threshold is a cosine above 0 and up to 1",
                "write `threshold: 0.9` for calls that are more alike than the default",
            );
        }
    }
    #[expect(clippy::cast_possible_truncation, reason = "a cosine needs few digits")]
    let threshold = threshold as f32;
    let names = places.iter().map(|(_, name)| name.clone());
    let settings = SemanticCacheSettings::new(names).with_threshold(threshold);
    (!places.is_empty()).then_some(LocatedSemantics { settings, at, places })
}

impl LocatedSemantics {
    /// Reports arguments that the tool does not have or that are no texts, and that nothing embeds texts.
    pub(in super::super) fn check(&self, tool: &dyn ConfiguredTool) {
        if !tool.embeds_texts() {
            let message = "nothing embeds texts, so this does nothing";
            let hint = "set `search.embeddings`, unless a program sets an embedder";
            tool.report(
                ConfigProblem::new(self.at, message, hint)
                    .on_key()
                    .with_warning(true),
            );
        }
        let Some(properties) = tool.descriptor().input_schema.get("properties") else {
            return;
        };
        let names: Vec<_> = properties.members().map(|(name, _)| name.into_owned()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (at, name) in &self.places {
            let problem = match properties.get(name) {
                None => Some((
                    format!("the tool has no argument `{}`", suggest::shown(name)),
                    match suggest::nearest(name, &names) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("it has {}", suggest::list(&names)),
                    },
                )),
                Some(schema) if !may_be_text(&schema) => Some((
                    format!("the argument `{name}` is no text"),
                    "remove it: it must be equal then".to_owned(),
                )),
                Some(_) => None,
            };
            if let Some((message, hint)) = problem {
                tool.report(ConfigProblem::new(*at, message, hint));
            }
        }
    }
}

/// Returns `false` if the `type` of a schema excludes texts.
fn may_be_text(schema: &RawJson) -> bool {
    let Some(kind) = schema.get("type") else {
        return true;
    };
    match kind.string() {
        Some(kind) => kind == "string",
        None => kind
            .items()
            .any(|kind| kind.string().as_deref() == Some("string")),
    }
}
