use std::{fmt, str::FromStr, sync::OnceLock};

use jsonschema::{Draft, Validator};
use raw_json::{JsonLimits, RawJson};
use serde_json::Value;
use tool_check::{AdaptedArguments, ArgumentHandling, CheckError, CheckJson, Mismatch};

use crate::{
    SchemaError, SchemaErrorKind,
    arguments::{Defaults, UnusableDefault, adapt},
    budget::{Metered, MeteredNode, Price, SchemaCost, Size, estimate_cost, with_budget},
    compile::{fragment, invalid, options, parse, read, upgrade},
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
/// use tool_schema::{Schema, serde_json::json};
///
/// let schema: Schema = r#"{"type": "object", "required": ["city"]}"#.parse()?;
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
    /// The schema has forms of an older draft, which are read as those of 2020-12.
    #[error(
        "forms of an older draft, a boolean `exclusiveMinimum` or a list as `items`, are read as those of draft 2020-12"
    )]
    OlderForms,
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
impl Schema {
    /// Compiles a schema, which keeps its original bytes, within budgets: [`crate::MAX_TEXT`], [`crate::MAX_DEPTH`], [`crate::MAX_SUBSCHEMAS`] and
    /// [`crate::MAX_EXPANSION`]. Nothing is fetched: references lead into the schema itself or to the drafts' own
    /// schemas.
    ///
    /// A schema that breaks the rules of its draft by forms of draft 4 is read with those of 2020-12, and has a warning:
    /// authors forget to name their draft. [`verify`](crate::verify) refuses it.
    ///
    /// # Errors
    /// Returns an error if the schema is not usable: see [`SchemaErrorKind`](crate::SchemaErrorKind).
    pub fn compile(raw: &RawJson) -> Result<Self, SchemaError> {
        let first = match Self::compile_strictly(raw) {
            Ok(schema) => return Ok(schema),
            Err(error) => error,
        };
        let mut warnings = Vec::new();
        let mut upgraded = read(raw, &mut warnings)?;
        if first.kind() != SchemaErrorKind::Invalid || !upgrade(&mut upgraded) {
            return Err(first);
        }
        if let Some(members) = upgraded.as_object_mut() {
            // The forms are those of the newest draft now.
            members.retain(|keyword, _| keyword != "$schema");
        }
        warnings.push(SchemaWarning::OlderForms);
        Self::build(raw, upgraded, warnings).map_err(|_| first)
    }

    /// Compiles a schema by the rules of its draft alone.
    pub(crate) fn compile_strictly(raw: &RawJson) -> Result<Self, SchemaError> {
        let mut warnings = Vec::new();
        let value = read(raw, &mut warnings)?;
        Self::build(raw, value, warnings)
    }

    fn build(raw: &RawJson, mut value: Value, mut warnings: Vec<SchemaWarning>) -> Result<Self, SchemaError> {
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
                    .map_err(|error| invalid(&value, draft, &error))?;
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

    /// Returns the schema as a value, without its `$schema`.
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    pub(crate) fn draft(&self) -> Draft {
        self.draft
    }

    /// Compiles a schema that is a tree, as [`compile`](Self::compile) does.
    ///
    /// # Errors
    /// Returns an error if the schema is not usable: see [`SchemaErrorKind`](crate::SchemaErrorKind).
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_schema::{Schema, serde_json::json};
    ///
    /// let schema = Schema::compile_value(&json!({"type": "integer"}))?;
    /// assert!(schema.check(&json!(1)).is_ok());
    /// # Ok::<(), tool_schema::SchemaError>(())
    /// ```
    pub fn compile_value(value: &Value) -> Result<Self, SchemaError> {
        Self::compile(&RawJson::from(value))
    }

    /// Checks a value.
    ///
    /// A tree has lost the duplicate keys of its text: see [`check_text`](Self::check_text).
    ///
    /// # Errors
    /// Returns [`CheckError::Mismatch`] if the value does not satisfy the schema, or if its check exceeds the budget.
    pub fn check(&self, value: &Value) -> Result<(), CheckError> {
        match self.verdict(value) {
            Some(true) => Ok(()),
            Some(false) => Err(self.mismatch(value).into()),
            None => Err(too_complex(value).into()),
        }
    }

    /// Checks a value that is JSON text. Refuses a duplicate key at any depth: another reader of the text could see the
    /// other value.
    ///
    /// # Errors
    /// Returns [`CheckError::Text`] with the offset if the text is not JSON, has a duplicate key or is nested deeper than
    /// 128 levels, and the errors of [`check`](Self::check).
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_schema::Schema;
    ///
    /// let schema: Schema = r#"{"properties": {"n": {"minimum": 1}}}"#.parse()?;
    /// assert!(schema.check_text(r#"{"n": 1}"#).is_ok());
    /// let error = schema.check_text(r#"{"n": 1, "n": 0}"#).unwrap_err();
    /// assert_eq!(error.to_string(), "duplicate key `n` at byte 9");
    /// # Ok::<(), tool_schema::SchemaError>(())
    /// ```
    pub fn check_text(&self, text: &str) -> Result<(), CheckError> {
        let raw = RawJson::parse_within(text.to_owned(), JsonLimits::STRICT)?;
        if self.surely_fits(&raw) {
            return Ok(());
        }
        self.check(&raw.to()?)
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
            .map_or_else(|| unexplained(value), |mismatch| mismatch.with_truncated(true)),
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
        Self::check(self, value)
    }

    fn document(&self) -> Option<&RawJson> {
        Some(&self.raw)
    }

    fn adapt(&self, arguments: &RawJson, handling: ArgumentHandling) -> Option<AdaptedArguments> {
        adapt(&self.value, arguments, handling)
    }

    fn fill_defaults(&self, arguments: &RawJson) -> Option<AdaptedArguments> {
        self.defaults()?.fill(arguments)
    }
}

impl FromStr for Schema {
    type Err = SchemaError;

    /// Compiles a schema from its text, as [`Schema::compile`] does.
    fn from_str(text: &str) -> Result<Self, SchemaError> {
        Self::compile(&parse(text)?)
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
