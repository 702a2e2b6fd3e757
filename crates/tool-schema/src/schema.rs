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
    arguments::{Defaults, UnusableDefault, adapt},
    budget::{MAX_DEPTH, MAX_TEXT, Metered, MeteredNode, Price, SchemaCost, estimate_cost, with_budget},
    dialect::draft_of,
    fast_check::FastCheck,
    mismatch::{explain, too_complex, unexplained},
};

/// Compiled JSON Schema of draft 4 to 2020-12.
///
/// # Time
/// A check whose cost is bounded by the sizes of schema and value runs at full speed. Any other one, such as a schema that
/// refers to itself or a very large value, counts its steps and stops at a limit that grows with the value: some
/// milliseconds for an ordinary value, some hundred for one of many megabytes. A value whose check is stopped is refused.
///
/// # Examples
///
/// ```
/// use raw_json::RawJson;
/// use serde_json::json;
/// use tool_core::CheckJson;
/// use tool_schema::Schema;
///
/// let schema = Schema::compile(&RawJson::from(json!({"type": "object", "required": ["city"]})))?;
/// let error = schema.check(&json!({})).unwrap_err();
/// assert_eq!(error.to_string(), "missing required property `city`");
/// # Ok::<(), tool_schema::SchemaError>(())
/// ```
pub struct Schema {
    raw: RawJson,
    value: Value,
    draft: Draft,
    backtracks: bool,
    cost: SchemaCost,
    warnings: Vec<SchemaWarning>,
    fast: Validator,
    /// Check on the text alone; `None` if the schema uses other keywords.
    fast_check: Option<FastCheck>,
    // Built on first use. Only a large value or an error needs the validator that counts its steps.
    counted: OnceLock<Validator<Metered>>,
    /// Defaults, found on first use; `None` if the schema has no default.
    defaults: OnceLock<Option<Defaults>>,
}

/// Remark for the author of a schema that is usable nonetheless.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaWarning {
    /// The schema names an unknown draft, and is read as 2020-12.
    #[error("unknown `$schema` `{0}`, read as draft 2020-12")]
    UnknownDialect(String),
    /// The schema has a key twice; the last one counts.
    #[error("{0}; the last one counts")]
    DuplicateKey(String),
    /// A pattern needs look-around or back-references, so it is matched by backtracking, up to a limit.
    #[error("a pattern needs look-around or back-references and is matched by backtracking, up to a limit")]
    Backtracking,
}

/// Maximum cost of a check that runs uncounted: about ten milliseconds.
const UNCOUNTED: u64 = 1_000_000;
/// Base budget of a counted check, in steps.
const STEPS: u64 = 200_000;
/// Additional budget for each value.
const STEPS_PER_VALUE: u64 = 100;
/// Maximum budget: some hundred milliseconds.
const MAX_STEPS: u64 = 20_000_000;
/// Budget for finding all mismatches of a value that does not fit.
const STEPS_TO_EXPLAIN: u64 = 20_000;
/// Budget for finding the first mismatch, if that budget did not suffice.
const STEPS_TO_FIND: u64 = 400_000;
/// Maximum cost of compiling each subschema of a schema alone, in subschemas.
const MAX_COST_OF_PARTS: u64 = 20_000;
/// Maximum nesting of subschemas and values together, so that no check exhausts a thread's stack.
const MAX_NESTING: u64 = 1_024;
/// Maximum size of a pattern's automaton, in bytes.
const PATTERN_SIZE: usize = 1 << 20;
/// Maximum number of backtracking steps of a pattern that needs look-around.
const BACKTRACKS: usize = 10_000;

impl Schema {
    /// Compiles a schema within budgets: [`MAX_TEXT`], [`MAX_DEPTH`], [`crate::MAX_SUBSCHEMAS`] and
    /// [`crate::MAX_EXPANSION`]. Nothing is fetched: references lead into the schema itself or to the drafts' own
    /// schemas.
    ///
    /// # Errors
    /// Returns an error if the schema is not usable: see [`SchemaErrorKind`].
    pub fn compile(raw: &RawJson) -> Result<Self, SchemaError> {
        let mut warnings = Vec::new();
        let mut value = read(raw, &mut warnings)?;
        let cost = estimate_cost(&value)?;
        let draft = draft_of(&value).unwrap_or_else(|| {
            warnings.push(SchemaWarning::UnknownDialect(match &value["$schema"] {
                Value::String(uri) => uri.chars().take(200).collect(),
                other => other.to_string().chars().take(200).collect(),
            }));
            Draft::Draft202012
        });
        if let Some(members) = value.as_object_mut() {
            // The draft is decided; the library would try to look up an unknown one.
            members.retain(|keyword, _| keyword != "$schema");
        }
        let fast_check = FastCheck::from_schema(&value);
        let mut backtracks = false;
        let fast = match options(draft, backtracks, jsonschema::options()).build(&value) {
            Ok(validator) => validator,
            Err(_) => {
                // The backtracking engine helps only if a pattern exceeds the linear one.
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
            cost,
            warnings,
            fast,
            fast_check,
            counted: OnceLock::new(),
            defaults: OnceLock::new(),
        })
    }

    /// Returns the schema with its original bytes.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// Returns remarks for the author of the schema.
    #[must_use]
    pub fn warnings(&self) -> &[SchemaWarning] {
        &self.warnings
    }

    /// Returns the defaults that are never filled in, since they do not fit their own subschemas.
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
        let is_small = self.cost.cost_of_parts <= MAX_COST_OF_PARTS;
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

    /// Returns the validator that counts its steps.
    fn counted(&self) -> &Validator<Metered> {
        self.counted.get_or_init(|| {
            options(self.draft, self.backtracks, jsonschema::options_for::<Metered>())
                .build(&self.value)
                .expect("the same schema has been compiled before")
        })
    }

    /// Returns whether a value fits, or `None` if the check exceeds its budget.
    fn verdict(&self, value: &Value) -> Option<bool> {
        if !self.cost.unbounded && self.costs_little(value) {
            return Some(self.fast.is_valid(value));
        }
        let mut size = Size::default();
        size.add(value, 1, MAX_STEPS / STEPS_PER_VALUE);
        if size.depth.saturating_mul(self.cost.in_place_depth) > MAX_NESTING && self.cost.unbounded {
            return None;
        }
        let budget = (STEPS + STEPS_PER_VALUE * size.n_values).min(MAX_STEPS);
        let (fits, lasted) = with_budget(budget, self.price(), || {
            self.counted().is_valid(MeteredNode(value))
        });
        lasted.then_some(fits)
    }

    /// Returns `true` if a check of this value is cheap in any case.
    fn costs_little(&self, value: &Value) -> bool {
        let most = UNCOUNTED / self.cost.weight;
        let mut size = Size {
            byte_price: self.cost.price.byte,
            ..Size::default()
        };
        size.add(value, 1, most);
        let again = if self.cost.unique_items { size.n_values } else { 1 };
        size.n_values.saturating_add(size.text).saturating_mul(again) <= most && !self.backtracks
    }

    fn price(&self) -> Price {
        let mut price = self.cost.price;
        if self.backtracks {
            // Backtracking visits a byte several times before it is given up.
            price.byte += 16;
        }
        price
    }

    /// Returns the mismatches of a value that does not fit.
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
            // The first mismatch may come after thousands of values that fit.
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
        self.fast_check
            .as_ref()
            .is_some_and(|check| check.surely_fits(text))
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
                // The check stopped there, so the depth of the rest still has to be checked.
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

/// Returns a JSON Pointer as a URI fragment (RFC 6901, section 6), as the validator library expects it.
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
    // The library's message may quote the schema, at any length.
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

/// Size of a value.
#[derive(Default)]
struct Size {
    n_values: u64,
    depth: u64,
    /// Cost of its text for matching patterns.
    text: u64,
    byte_price: u64,
}

impl Size {
    /// Adds a value and everything in it, until the size exceeds `most`.
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
