use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use jsonschema::{Draft, PatternOptions, Retrieve, ValidationOptions, Validator, json::Json};
use raw_json::{JsonErrorKind, JsonLimits, RawJson};
use serde_json::Value;
use tool_core::{AdaptedArguments, ArgumentHandling, CheckError, CheckJson, Mismatch};

use crate::{
    SchemaError, SchemaErrorKind,
    adapt::adapt,
    defaults::{Defaults, UnusableDefault},
    dialect::draft_of,
    explain::{explain, too_complex, unexplained},
    meter::with_budget,
    metered::{Metered, MeteredNode},
    shape::Shape,
    survey::{MAX_DEPTH, MAX_TEXT, Survey, survey},
};

/// A compiled schema.
///
/// # Time
/// A check whose cost is bounded by the sizes of schema and value runs at full speed. Any other one, such as a
/// schema that refers to itself or a very large value, is counted step by step and stopped at a limit that grows
/// with the value: some milliseconds for an ordinary value, some hundred for one of many megabytes. A value whose
/// check is stopped is refused.
pub struct Schema {
    raw: RawJson,
    value: Value,
    draft: Draft,
    backtracks: bool,
    survey: Survey,
    warnings: Vec<SchemaWarning>,
    fast: Validator,
    /// What can be told without a tree, if that is all that the schema asks for.
    shape: Option<Shape>,
    // Most schemas never need the counted twin: only a large value or an error asks for it.
    counted: OnceLock<Validator<Metered>>,
    /// `None` if the schema has no default. Found when they are first asked for.
    defaults: OnceLock<Option<Defaults>>,
}

/// Something about a schema that its author should know, though it can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaWarning {
    /// The schema names a draft that is not known here; it is read as 2020-12.
    #[error("unknown `$schema` `{0}`, read as draft 2020-12")]
    UnknownDialect(String),
    /// The schema has a key twice; the last one counts.
    #[error("{0}; the last one counts")]
    DuplicateKey(String),
    /// A pattern needs look-around or back-references, so matching it goes by trial and stops at a limit.
    #[error("a pattern needs look-around or back-references and is matched by trial, up to a limit")]
    Backtracking,
}

/// What a check may cost at most to run uncounted: about ten milliseconds.
const UNCOUNTED: u64 = 1_000_000;
/// The budget of a counted check: so many steps, and so many more for each value.
const STEPS: u64 = 200_000;
const STEPS_PER_VALUE: u64 = 100;
/// The largest budget: some hundred milliseconds.
const MAX_STEPS: u64 = 20_000_000;
/// The budget for finding all that is wrong, once it is known that something is.
const STEPS_TO_EXPLAIN: u64 = 20_000;
/// The budget for finding the first problem, where that one did not suffice.
const STEPS_TO_FIND: u64 = 400_000;
/// Maximum cost of compiling each subschema of a schema alone, in subschemas.
const MAX_COST_OF_PARTS: u64 = 20_000;
/// How deep subschemas and values together may be nested, so that no check exhausts a thread's stack.
const MAX_NESTING: u64 = 1_024;
/// How large the automaton of a pattern may be, in bytes.
const PATTERN_SIZE: usize = 1 << 20;
/// How often matching a pattern that needs look-around may go back.
const BACKTRACKS: usize = 10_000;

impl Schema {
    /// Compiles a schema within budgets: [`MAX_TEXT`], [`MAX_DEPTH`], [`crate::MAX_SUBSCHEMAS`] and
    /// [`crate::MAX_EXPANSION`]. Nothing is fetched: references lead into the schema itself or to the drafts' own
    /// schemas.
    ///
    /// # Errors
    /// When the schema is not usable: see [`SchemaErrorKind`].
    pub fn compile(raw: &RawJson) -> Result<Self, SchemaError> {
        let mut warnings = Vec::new();
        let mut value = read(raw, &mut warnings)?;
        let survey = survey(&value)?;
        let draft = draft_of(&value).unwrap_or_else(|| {
            warnings.push(SchemaWarning::UnknownDialect(match &value["$schema"] {
                Value::String(uri) => uri.chars().take(200).collect(),
                other => other.to_string().chars().take(200).collect(),
            }));
            Draft::Draft202012
        });
        if let Some(members) = value.as_object_mut() {
            // The draft is settled; the library would look an unknown one up.
            members.shift_remove("$schema");
        }
        let shape = Shape::of(&value);
        let mut backtracks = false;
        let fast = match options(draft, backtracks, jsonschema::options()).build(&value) {
            Ok(validator) => validator,
            Err(_) => {
                // Only a pattern beyond the linear engine is mended by the other one.
                backtracks = true;
                let validator = options(draft, backtracks, jsonschema::options())
                    .build(&value)
                    .map_err(|error| invalid(&error))?;
                warnings.push(SchemaWarning::Backtracking);
                validator
            }
        };
        Ok(Self {
            raw: raw.clone(),
            value,
            draft,
            backtracks,
            survey,
            warnings,
            fast,
            shape,
            counted: OnceLock::new(),
            defaults: OnceLock::new(),
        })
    }

    /// The schema as it was written.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// What its author should know about it.
    #[must_use]
    pub fn warnings(&self) -> &[SchemaWarning] {
        &self.warnings
    }

    /// The defaults of the schema that are never filled in, since they do not fit their own subschemas.
    #[must_use]
    pub fn unusable_defaults(&self) -> &[UnusableDefault] {
        self.defaults().map_or(&[], Defaults::unusable)
    }

    fn defaults(&self) -> Option<&Defaults> {
        let found = self.defaults.get_or_init(|| {
            memchr::memmem::find(self.raw.as_str().as_bytes(), b"default")?;
            Some(self.find_defaults())
        });
        found.as_ref()
    }

    fn find_defaults(&self) -> Defaults {
        let is_small = self.survey.cost_of_parts <= MAX_COST_OF_PARTS;
        let options = || options(self.draft, self.backtracks, jsonschema::options_for::<Metered>());
        let validators = is_small.then(|| options().build_map(&self.value).ok()).flatten();
        Defaults::find(&self.value, |pointer, default| {
            let Some(validators) = &validators else {
                return Some("the schema is too large to check it".to_owned());
            };
            let Some(validator) = validators.get(&fragment(pointer)) else {
                return Some("it cannot be checked".to_owned());
            };
            let (mismatch, lasted) = with_budget(STEPS, self.price(), || {
                let error = validator.validate(MeteredNode(default)).err()?;
                let root = self.value.pointer(pointer).unwrap_or(&self.value);
                Some(explain(std::iter::once(error), default, root))
            });
            match mismatch {
                _ if !lasted => Some("it takes too long to check".to_owned()),
                Some(mismatch) => {
                    Some(mismatch.map_or_else(|| "it does not fit".to_owned(), |it| it.to_string()))
                }
                None => None,
            }
        })
    }

    /// The twin that counts its steps.
    fn counted(&self) -> &Validator<Metered> {
        self.counted.get_or_init(|| {
            options(self.draft, self.backtracks, jsonschema::options_for::<Metered>())
                .build(&self.value)
                .expect("the same schema has been compiled before")
        })
    }

    /// Whether a value fits; nothing if that would take too long to tell.
    fn verdict(&self, value: &Value) -> Option<bool> {
        if !self.survey.unbounded && self.costs_little(value) {
            return Some(self.fast.is_valid(value));
        }
        let mut size = Size::default();
        size.add(value, 1, MAX_STEPS / STEPS_PER_VALUE);
        if size.depth.saturating_mul(self.survey.in_place_depth) > MAX_NESTING && self.survey.unbounded {
            return None;
        }
        let budget = (STEPS + STEPS_PER_VALUE * size.n_values).min(MAX_STEPS);
        let (fits, lasted) = with_budget(budget, self.price(), || {
            self.counted().is_valid(MeteredNode(value))
        });
        lasted.then_some(fits)
    }

    /// Whether no check of this value against this schema can take long.
    fn costs_little(&self, value: &Value) -> bool {
        let most = UNCOUNTED / self.survey.weight;
        let mut size = Size {
            byte_price: self.survey.price.byte,
            ..Size::default()
        };
        size.add(value, 1, most);
        let again = if self.survey.unique_items {
            size.n_values
        } else {
            1
        };
        size.n_values.saturating_add(size.text).saturating_mul(again) <= most && !self.backtracks
    }

    fn price(&self) -> crate::meter::Price {
        let mut price = self.survey.price;
        if self.backtracks {
            // Each match may go back so often before it is given up.
            price.byte += 16;
        }
        price
    }

    /// What is wrong with a value that does not fit.
    fn mismatch(&self, value: &Value) -> Mismatch {
        let (mismatch, lasted) = with_budget(STEPS_TO_EXPLAIN, self.price(), || {
            let errors = self.counted().iter_errors(MeteredNode(value));
            explain(errors, value, &self.value)
        });
        match mismatch {
            Some(mut mismatch) => {
                mismatch.truncated |= !lasted;
                mismatch
            }
            // The first problem may lie behind thousands of values that are right.
            None => with_budget(STEPS_TO_FIND, self.price(), || {
                let error = self.counted().validate(MeteredNode(value)).err();
                explain(error.into_iter(), value, &self.value)
            })
            .0
            .map_or_else(
                || unexplained(value),
                |mismatch| Mismatch {
                    truncated: true,
                    ..mismatch
                },
            ),
        }
    }
}

impl CheckJson for Schema {
    fn surely_fits(&self, text: &RawJson) -> bool {
        self.shape.as_ref().is_some_and(|shape| shape.surely_fits(text))
    }

    fn check(&self, value: &Value) -> Result<(), CheckError> {
        match self.verdict(value) {
            Some(true) => Ok(()),
            Some(false) => Err(CheckError::Mismatch(self.mismatch(value))),
            None => Err(CheckError::Mismatch(too_complex(value))),
        }
    }

    fn adapt(&self, arguments: &RawJson, handling: ArgumentHandling) -> Option<AdaptedArguments> {
        adapt(&self.value, arguments, handling)
    }

    fn fill_defaults(&self, arguments: &RawJson) -> Option<AdaptedArguments> {
        self.defaults()?.fill(arguments)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("raw", &self.raw)
            .field("draft", &self.draft)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// Reads a schema's text within the budgets for texts.
fn read(raw: &RawJson, warnings: &mut Vec<SchemaWarning>) -> Result<Value, SchemaError> {
    if raw.len() > MAX_TEXT {
        return Err(SchemaError::new(
            SchemaErrorKind::TooLarge,
            format!(
                "the schema is too large: {} bytes, at most {MAX_TEXT} are allowed",
                raw.len()
            ),
        ));
    }
    let limits = JsonLimits {
        depth: MAX_DEPTH,
        ..JsonLimits::STRICT
    };
    if let Err(error) = raw_json::validate(raw.as_str(), limits) {
        match error.kind() {
            JsonErrorKind::DuplicateKey(_) => {
                warnings.push(SchemaWarning::DuplicateKey(error.to_string()));
                // The check stopped there; the depth of the rest is still to be looked at.
                let limits = JsonLimits {
                    depth: MAX_DEPTH,
                    ..JsonLimits::RELAY
                };
                raw_json::validate(raw.as_str(), limits).map_err(|error| unreadable(&error))?;
            }
            _ => return Err(unreadable(&error)),
        }
    }
    let value: Value = raw.to().map_err(|error| unreadable(&error))?;
    if value.is_object() || value.is_boolean() {
        Ok(value)
    } else {
        Err(SchemaError::new(
            SchemaErrorKind::NotASchema,
            "a schema must be an object or a boolean",
        ))
    }
}

/// A JSON Pointer as the library of validators writes it.
fn fragment(pointer: &str) -> String {
    format!("#{pointer}")
}

fn unreadable(error: &raw_json::JsonError) -> SchemaError {
    let kind = match error.kind() {
        JsonErrorKind::TooDeep(_) => SchemaErrorKind::TooLarge,
        _ => SchemaErrorKind::NotASchema,
    };
    SchemaError::new(kind, format!("the schema is not usable: {error}"))
}

fn invalid(error: &jsonschema::ValidationError<'_>) -> SchemaError {
    // The library's words may quote the schema; a long quotation helps nobody.
    let mut message: String = error.to_string().chars().take(300).collect();
    let pointer = error.instance_path().as_str();
    if !pointer.is_empty() {
        message = format!("`{pointer}`: {message}");
    }
    SchemaError::new(
        SchemaErrorKind::Invalid,
        format!("the schema is not valid: {message}"),
    )
    .at(pointer)
}

fn options<F: Json>(
    draft: Draft,
    backtracks: bool,
    options: ValidationOptions<'static, Arc<dyn Retrieve>, F>,
) -> ValidationOptions<'static, Arc<dyn Retrieve>, F> {
    let options = options.with_draft(draft).should_validate_formats(false).offline();
    if backtracks {
        let patterns = PatternOptions::fancy_regex();
        options.with_pattern_options(patterns.backtrack_limit(BACKTRACKS).size_limit(PATTERN_SIZE))
    } else {
        options.with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE))
    }
}

/// How large a value is.
#[derive(Default)]
struct Size {
    n_values: u64,
    depth: u64,
    /// What its text costs, where patterns are matched against it.
    text: u64,
    byte_price: u64,
}

impl Size {
    /// Adds a value and all in it, until there is more than `most`.
    fn add(&mut self, value: &Value, depth: u64, most: u64) {
        self.n_values += 1;
        self.depth = self.depth.max(depth);
        if self.n_values.saturating_add(self.text) > most {
            return;
        }
        match value {
            Value::String(text) => self.add_text(text),
            Value::Array(items) => {
                for item in items {
                    self.add(item, depth + 1, most);
                    if self.n_values.saturating_add(self.text) > most {
                        return;
                    }
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    self.add_text(name);
                    self.add(member, depth + 1, most);
                    if self.n_values.saturating_add(self.text) > most {
                        return;
                    }
                }
            }
            _ => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        let length = text.len() as u64;
        self.text = self
            .text
            .saturating_add(length.saturating_mul(self.byte_price) + length / 1024);
    }
}
