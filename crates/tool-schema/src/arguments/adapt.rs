//! Coercion and sanitizing of arguments.
//!
//! The walk follows the value, and in each place the subschemas that apply to it. It is not a validator; its result is
//! validated afterwards. So it changes nothing where a schema is ambiguous, and a wrong change leads to a refusal.

use raw_json::{JsonKind, JsonLimits, RawJson};
use serde_json::{Map, Value};
use tool_check::{AdaptedArguments, ArgumentHandling, Change, ChangeKind};

use crate::document::{Document, ItemSchemas, MAX_IN_PLACE, is_a, list, pointer_step, wants};

/// Maximum number of subschemas that are visited.
const MAX_STEPS: u64 = 100_000;
/// Maximum length of a sanitized string whose schema sets no limit, in characters.
const MAX_TEXT: usize = 10_000;

/// Changes arguments as far as this handling allows. Returns `None` if there is no change.
pub(crate) fn adapt(
    schema: &Value,
    arguments: &RawJson,
    handling: ArgumentHandling,
) -> Option<AdaptedArguments> {
    let sanitize = match handling {
        ArgumentHandling::Coerce => false,
        ArgumentHandling::Sanitize => true,
        _ => return None,
    };
    let mut walk = Walk {
        document: Document::new(schema, MAX_STEPS),
        sanitize,
        path: String::new(),
        changes: Vec::new(),
    };
    let arguments = walk.value(schema, arguments, 0, true)?;
    Some(AdaptedArguments::new(arguments, walk.changes))
}

struct Walk<'a> {
    document: Document<'a>,
    sanitize: bool,
    /// Current place of the walk, as a JSON Pointer.
    path: String,
    changes: Vec<Change>,
}

impl<'a> Walk<'a> {
    /// Adapts a value to a subschema. Returns `None` if it stays. `alone` is `true` if no other subschema applies to the same
    /// members, so that a member which this one does not name is unknown.
    fn value(&mut self, schema: &'a Value, value: &RawJson, in_place: usize, alone: bool) -> Option<RawJson> {
        if !self.document.take_step() || in_place > MAX_IN_PLACE {
            return None;
        }
        let keywords = schema.as_object()?;
        let alone = alone && n_naming_members(keywords) <= 1;
        let mut changed = None;
        if let Some(target) = self.document.referred(keywords) {
            changed = self.value(target, value, in_place + 1, alone);
        }
        for part in list(keywords, "allOf") {
            let present = changed.as_ref().unwrap_or(value);
            let next = self.value(part, present, in_place + 1, false);
            changed = next.or(changed);
        }
        for keyword in ["anyOf", "oneOf"] {
            let present = changed.as_ref().unwrap_or(value).clone();
            if let Some(branch) = self.branch(list(keywords, keyword), &present) {
                let next = self.value(branch, &present, in_place + 1, false);
                changed = next.or(changed);
            }
        }
        let present = changed.as_ref().unwrap_or(value);
        if let Some(converted) = self.converted(keywords, present) {
            self.note(
                ChangeKind::Coerced,
                format!(
                    "{} to {}",
                    kind_name(present.kind()),
                    type_name(&converted, keywords)
                ),
            );
            changed = Some(converted);
        }
        let present = changed.as_ref().unwrap_or(value).clone();
        let next = match present.kind() {
            JsonKind::Object => self.object(keywords, &present, alone),
            JsonKind::Array => self.array(keywords, &present),
            JsonKind::String if self.sanitize => self.text(keywords, &present),
            JsonKind::Number if self.sanitize => self.clamped(keywords, &present),
            _ => None,
        };
        next.or(changed)
    }

    fn object(&mut self, keywords: &'a Map<String, Value>, value: &RawJson, alone: bool) -> Option<RawJson> {
        let properties = keywords.get("properties").and_then(Value::as_object);
        let others = keywords.get("additionalProperties");
        let is_closed = properties.is_some()
            && alone
            && !keywords.contains_key("patternProperties")
            && matches!(others, None | Some(Value::Bool(false)));
        let required: Vec<&str> = list(keywords, "required")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let mut dropped = Vec::new();
        let mut replaced = Vec::new();
        for (key, member) in value.members() {
            let length = self.enter(&key);
            let known = properties.and_then(|properties| properties.get(&*key));
            match known.or_else(|| others.filter(|others| others.is_object())) {
                Some(schema)
                    if member.kind() == JsonKind::Null
                        && !required.contains(&&*key)
                        && !self.document.admits(schema, JsonKind::Null, &member, 0) =>
                {
                    self.note(ChangeKind::Dropped, "null for what may be absent".to_owned());
                    dropped.push(key.into_owned());
                }
                Some(schema) => {
                    if let Some(member) = self.value(schema, &member, 0, true) {
                        replaced.push((key.into_owned(), member));
                    }
                }
                None if self.sanitize && is_closed => {
                    self.note(ChangeKind::Dropped, "unknown".to_owned());
                    dropped.push(key.into_owned());
                }
                None => {}
            }
            self.path.truncate(length);
        }
        if dropped.is_empty() && replaced.is_empty() {
            return None;
        }
        let dropped: Vec<&str> = dropped.iter().map(String::as_str).collect();
        let replaced: Vec<(&str, RawJson)> = replaced
            .iter()
            .map(|(key, member)| (key.as_str(), member.clone()))
            .collect();
        value.without_members(&dropped).ok()?.with_members(&replaced).ok()
    }

    fn array(&mut self, keywords: &'a Map<String, Value>, value: &RawJson) -> Option<RawJson> {
        ItemSchemas::from_keywords(keywords)?.rewrite(value, |index, schema, item| {
            let length = self.enter(&index.to_string());
            let next = self.value(schema, item, 0, true);
            self.path.truncate(length);
            next
        })
    }

    /// Removes deceptive characters from a string, and cuts it to the length that its schema allows.
    fn text(&mut self, keywords: &Map<String, Value>, value: &RawJson) -> Option<RawJson> {
        let old = value.string()?;
        let mut new: String = old.chars().filter(|next| !deceives(*next)).collect();
        if new.len() != old.len() {
            self.note(ChangeKind::Cleaned, "control characters taken out".to_owned());
        }
        let most = keywords.get("maxLength").and_then(Value::as_u64);
        let most = most.map_or(MAX_TEXT, |most| usize::try_from(most).unwrap_or(usize::MAX));
        if let Some((at, _)) = new.char_indices().nth(most) {
            let length = new.chars().count();
            self.note(
                ChangeKind::Truncated,
                format!("from {length} to {most} characters"),
            );
            new.truncate(at);
        }
        (new != old).then(|| RawJson::from(&*new))
    }

    /// Clamps a number to the bounds of its schema.
    fn clamped(&mut self, keywords: &Map<String, Value>, value: &RawJson) -> Option<RawJson> {
        let number: f64 = value.to().ok()?;
        let beyond = |least: &Value, sign: f64| {
            let least = least.as_f64()?;
            (number * sign < least * sign).then_some(())
        };
        for (keyword, exclusive, sign, word) in [
            ("minimum", "exclusiveMinimum", 1.0, "the least"),
            ("maximum", "exclusiveMaximum", -1.0, "the most"),
        ] {
            if let Some(bound) = keywords.get(keyword)
                && beyond(bound, sign).is_some()
            {
                self.note(ChangeKind::Clamped, format!("to {word}, {bound}"));
                return Some(RawJson::from(bound));
            }
            // An exclusive bound has a nearest number only among integers.
            if let Some(bound) = keywords.get(exclusive)
                && wants(keywords).contains(&"integer")
                && let (Some(whole), true) = (
                    bound.as_i64(),
                    bound.as_f64().is_some_and(|at| number * sign <= at * sign),
                )
                && let Some(bound) = whole.checked_add(if sign > 0.0 { 1 } else { -1 })
            {
                self.note(ChangeKind::Clamped, format!("to {word}, {bound}"));
                return Some(RawJson::from(&Value::from(bound)));
            }
        }
        None
    }

    /// Converts a value to a type that this subschema expects, if that is possible without loss.
    fn converted(&self, keywords: &'a Map<String, Value>, value: &RawJson) -> Option<RawJson> {
        let wanted = wants(keywords);
        if wanted.is_empty() || wanted.iter().any(|wanted| is_a(value, wanted)) {
            return None;
        }
        let mut ways = wanted.iter().filter_map(|wanted| convert(value, wanted));
        ways.next().or_else(|| {
            // A single item instead of a list of such items.
            let items = keywords.get("items").filter(|_| wanted.contains(&"array"))?;
            let fits = value.kind() != JsonKind::Null
                && items.is_object()
                && self.document.admits(items, value.kind(), value, 0);
            fits.then(|| RawJson::parse(format!("[{value}]")).ok()).flatten()
        })
    }

    /// Returns the subschema that a value is meant for: the first that accepts its type and, for objects, whose constants and
    /// required members it has; else the first to whose type it can be converted.
    fn branch(&self, branches: &'a [Value], value: &RawJson) -> Option<&'a Value> {
        let kind = value.kind();
        branches
            .iter()
            .find(|branch| self.document.admits(branch, kind, value, 0))
            .or_else(|| {
                branches.iter().find(|branch| {
                    let target = self.document.resolved(branch).as_object();
                    target.is_some_and(|keywords| self.converted(keywords, value).is_some())
                })
            })
    }

    /// Enters a member or item. Returns the previous length of the path.
    fn enter(&mut self, key: &str) -> usize {
        let length = self.path.len();
        pointer_step(&mut self.path, key);
        length
    }

    fn note(&mut self, kind: ChangeKind, detail: String) {
        self.changes.push(Change::new(self.path.as_str(), kind, detail));
    }
}

/// Returns the number of keywords that may name members. With more than one, none of them alone names all members.
fn n_naming_members(keywords: &Map<String, Value>) -> usize {
    const NAMING: [&str; 9] = [
        "properties",
        "$ref",
        "$dynamicRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "dependentSchemas",
        "dependencies",
    ];
    NAMING
        .iter()
        .filter(|keyword| keywords.contains_key(**keyword))
        .count()
}

/// Converts a value to another type, if that is possible without loss.
fn convert(value: &RawJson, wanted: &str) -> Option<RawJson> {
    match (value.kind(), wanted) {
        (JsonKind::Number | JsonKind::Bool, "string") => Some(RawJson::from(value.as_str())),
        (JsonKind::String, "boolean") => {
            let text = value.string()?;
            let word = text.trim().to_ascii_lowercase();
            matches!(word.as_str(), "true" | "false").then(|| RawJson::parse(word).ok())?
        }
        // Models write values as text.
        (JsonKind::String, "integer" | "number" | "array" | "object") => {
            let inner = RawJson::parse_within(value.string()?.trim().to_owned(), JsonLimits::STRICT).ok()?;
            (inner.kind() != JsonKind::String && is_a(&inner, wanted)).then_some(inner)
        }
        _ => None,
    }
}

/// Returns `true` if a character is deceptive in the text of an argument: control characters but tab and line breaks, and
/// those that change the direction of text (Unicode Bidirectional Algorithm, UAX #9).
fn deceives(next: char) -> bool {
    (next.is_control() && !matches!(next, '\t' | '\n' | '\r'))
        || matches!(next, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

fn kind_name(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Null => "null",
        JsonKind::Bool => "boolean",
        JsonKind::Number => "number",
        JsonKind::String => "string",
        JsonKind::Array => "array",
        JsonKind::Object => "object",
    }
}

/// Returns the name of a converted value's type: `integer` only if the schema expects an integer.
fn type_name(value: &RawJson, keywords: &Map<String, Value>) -> &'static str {
    if value.kind() == JsonKind::Number && wants(keywords).contains(&"integer") {
        "integer"
    } else {
        kind_name(value.kind())
    }
}
