//! Expressions in CEL, the Common Expression Language (<https://cel.dev>), under a budget.
//!
//! An expression cannot be interrupted, so its cost is bounded before it is evaluated: by its size and the depth of its loops,
//! which are known once it is compiled, and by the sizes of the values that it uses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, LazyLock},
    thread,
};

use cel::{
    Context, Env, Program, Value as CelValue,
    common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators},
    objects::Key,
};
use raw_json::RawJson;
use serde_json::{Map, Number, Value};
use tool_settings::suggest;

use super::{
    reference::{INPUT, RESULTS, ReferenceRoot},
    scope::MappingValues,
};

/// Compiled expression, and the values that it uses.
pub struct Expression {
    source: String,
    program: Program,
    uses: ExpressionUses,
    size: ExpressionSize,
}

/// Values that an expression uses.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ExpressionUses {
    /// `true` if it uses the input.
    pub input: bool,
    /// Steps whose results it uses.
    pub steps: BTreeSet<Arc<str>>,
    /// Steps for whose results it asks with `has(results.step)`. They may have none.
    pub guarded: BTreeSet<Arc<str>>,
    /// Variables of loops.
    pub variables: BTreeSet<Arc<str>>,
}

/// Size of an expression, from which its cost follows.
#[derive(Debug, Default, Clone, Copy)]
struct ExpressionSize {
    nodes: u64,
    /// Maximum depth of loops within loops.
    depth: u32,
    /// Maximum depth of operators within operators.
    nesting: u32,
    /// Number of operators that join texts or lists.
    joins: u64,
}

/// Sizes of the values that an expression uses.
#[derive(Debug, Default, Clone, Copy)]
struct ValueSizes {
    /// Maximum number of items of a list, or members of an object.
    items: u64,
    /// Maximum length of a text, in bytes.
    text: u64,
}

/// Maximum length of an expression, in bytes.
const MAX_SOURCE: usize = 4096;
/// Maximum depth of loops within loops.
const MAX_DEPTH: u32 = 3;
/// Maximum depth of operators within operators.
const MAX_NESTING: u32 = 64;
/// Maximum depth of operators within operators that is evaluated on the caller's stack. An evaluation recurses as deep, and takes
/// up to 40 KiB for each level in a build without optimization.
const MAX_INLINE_NESTING: u32 = 12;
/// Stack for the evaluation of deeper expressions, in bytes.
const EVALUATION_STACK: usize = 8 << 20;
/// Stack of the parser, in bytes: enough for an expression of the maximum length that is nothing but one kind of operator.
const PARSER_STACK: usize = 64 << 20;
/// Maximum cost of an evaluation: evaluated operators, and one for every 256 bytes of text that one may touch.
const MAX_COST: u64 = 10_000_000;
/// Names of types, which are values in CEL.
const TYPES: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "uint",
];
/// Functions that an expression may call, besides operators and macros.
const FUNCTIONS: [&str; 12] = [
    "bool",
    "bytes",
    "contains",
    "double",
    "dyn",
    "endsWith",
    "int",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
];

static ENVIRONMENT: LazyLock<Arc<Env>> =
    LazyLock::new(|| Arc::new(Env::stdlib().with_optional_support(false)));

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// Says what is wrong, as a fragment, with the place of a syntax error.
    pub fn compile(source: &str) -> Result<Self, String> {
        if source.len() > MAX_SOURCE {
            return Err(format!(
                "the expression has {} bytes; {MAX_SOURCE} are allowed",
                source.len()
            ));
        }
        // The parser recurses as deep as operators nest, before anything can tell how deep that is.
        on_stack(PARSER_STACK, || Self::parse(source))
    }

    fn parse(source: &str) -> Result<Self, String> {
        let program = ENVIRONMENT.compile(source).map_err(|errors| {
            let first = errors.errors.first();
            let (line, column) = first.map_or((1, 1), |error| error.pos);
            let message = first.map_or_else(String::new, |error| error.msg.clone());
            // The parser lists all tokens that it would take.
            let message = message.split(" expecting ").next().unwrap_or_default();
            let message: String = message.trim().chars().take(120).collect();
            format!("the expression is not valid CEL: line {line}, column {column}: {message}")
        })?;
        let mut walk = Walk::default();
        walk.expression(program.expression());
        let Walk {
            uses, size, problem, ..
        } = walk;
        if let Some(problem) = problem {
            return Err(problem);
        }
        if size.nesting > MAX_NESTING {
            return Err(format!(
                "the operators of the expression are nested {} deep; {MAX_NESTING} are allowed",
                size.nesting
            ));
        }
        if size.depth > MAX_DEPTH {
            return Err(format!(
                "the expression has loops at a depth of {}; {MAX_DEPTH} are allowed",
                size.depth
            ));
        }
        Ok(Self {
            source: source.to_owned(),
            program,
            uses,
            size,
        })
    }

    /// Returns the values that the expression uses.
    #[must_use]
    pub fn uses(&self) -> &ExpressionUses {
        &self.uses
    }

    /// Returns the text of the expression.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// Says why it has no value, or would cost too much: a sentence fragment.
    pub fn evaluate(&self, values: &MappingValues<'_>) -> Result<RawJson, String> {
        let value = self.value(values)?;
        let value = to_json(&value).ok_or_else(|| self.error("its value is no JSON"))?;
        Ok(RawJson::from(value))
    }

    /// Evaluates a condition.
    ///
    /// # Errors
    /// As [`Expression::evaluate`], or if the value is neither `true` nor `false`.
    pub fn is_true(&self, values: &MappingValues<'_>) -> Result<bool, String> {
        match self.value(values)? {
            CelValue::Bool(value) => Ok(value),
            other => Err(self.error(format_args!(
                "a condition is `true` or `false`, and its value is {}",
                kind_of(&other)
            ))),
        }
    }

    fn value_here(&self, values: &MappingValues<'_>) -> Result<CelValue, String> {
        let mut sizes = ValueSizes::default();
        let mut context = Context::with_env(ENVIRONMENT.clone());
        let mut bind = |name: &str, value: CelValue| context.add_variable_from_value(name, value);
        if self.uses.input {
            bind(INPUT, to_cel(values.input, &mut sizes));
        }
        if !self.uses.steps.is_empty() || !self.uses.guarded.is_empty() {
            let steps = self.uses.steps.union(&self.uses.guarded);
            let known = steps.filter_map(|step| Some((step, values.results.get(step)?)));
            let results = known.map(|(step, result)| (key(step), to_cel(&result, &mut sizes)));
            let results = results.collect();
            bind(RESULTS, map(results));
        }
        for name in &self.uses.variables {
            let value = values.root(&ReferenceRoot::Variable(name.clone()));
            let value = value.map_err(|problem| self.error(format_args!("`{name}` {problem}")))?;
            bind(name, to_cel(&value, &mut sizes));
        }
        let cost = self.size.cost(sizes);
        if cost > MAX_COST {
            return Err(self.error(format_args!(
                "it may take {cost} steps on these values; {MAX_COST} are allowed"
            )));
        }
        self.program.execute(&context).map_err(|error| {
            // Its text may contain values, which are the caller's own.
            self.error(excerpt(&error.to_string()))
        })
    }

    /// Evaluates the expression, a deep one on a stack of its own.
    fn value(&self, values: &MappingValues<'_>) -> Result<CelValue, String> {
        if self.size.nesting <= MAX_INLINE_NESTING {
            return self.value_here(values);
        }
        on_stack(EVALUATION_STACK, || self.value_here(values))
    }

    fn error(&self, problem: impl fmt::Display) -> String {
        format!("`{}`: {problem}", excerpt(&self.source))
    }
}

impl ExpressionSize {
    /// Returns an upper bound of the cost of an evaluation with values of these sizes.
    fn cost(self, values: ValueSizes) -> u64 {
        // A loop runs over a list of the values or of the expression, or over several of them that were joined.
        let joined = self.joins + 1;
        let items = values.items.max(self.nodes).saturating_mul(joined);
        let text = values.text.max(MAX_SOURCE as u64).saturating_mul(joined);
        let evaluated = self.nodes.saturating_mul(items.saturating_pow(self.depth));
        evaluated.saturating_mul(1 + text / 256)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}

/// Runs a function on a thread with a stack of this size, in bytes.
fn on_stack<R: Send>(n_bytes: usize, run: impl FnOnce() -> Result<R, String> + Send) -> Result<R, String> {
    thread::scope(|scope| {
        let running = thread::Builder::new()
            .stack_size(n_bytes)
            .spawn_scoped(scope, run);
        let running = running.map_err(|error| format!("there is no thread for an expression: {error}"))?;
        let panicked = |_| Err("the engine of expressions fails on it".to_owned());
        running.join().unwrap_or_else(panicked)
    })
}

/// Returns the beginning of a text, in one line.
fn excerpt(text: &str) -> String {
    let line = |c: char| if c.is_control() { ' ' } else { c };
    let mut excerpt: String = text.chars().take(80).map(line).collect();
    if excerpt.len() < text.len() {
        excerpt.push('…');
    }
    excerpt
}

/// Walk through an expression.
#[derive(Default)]
struct Walk<'a> {
    uses: ExpressionUses,
    size: ExpressionSize,
    depth: u32,
    nesting: u32,
    /// Variables of the expression's own loops.
    own: Vec<&'a str>,
    problem: Option<String>,
}

impl<'a> Walk<'a> {
    fn expression(&mut self, expression: &'a IdedExpr) {
        self.size.nodes += 1;
        self.nesting += 1;
        self.size.nesting = self.size.nesting.max(self.nesting);
        self.parts(expression);
        self.nesting -= 1;
    }

    fn parts(&mut self, expression: &'a IdedExpr) {
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => {
                self.expression(&comprehension.iter_range);
                self.expression(&comprehension.accu_init);
                let n_own = self.own.len();
                self.own.push(&comprehension.iter_var);
                self.own.extend(comprehension.iter_var2.as_deref());
                self.own.push(&comprehension.accu_var);
                self.depth += 1;
                self.size.depth = self.size.depth.max(self.depth);
                self.expression(&comprehension.loop_cond);
                self.expression(&comprehension.loop_step);
                self.depth -= 1;
                self.expression(&comprehension.result);
                self.own.truncate(n_own);
            }
            Expr::Ident(name) => self.variable(name),
            Expr::List(list) => list.elements.iter().for_each(|item| self.expression(item)),
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.expression(&entry.key);
                        self.expression(&entry.value);
                    }
                }
            }
            Expr::Select(select) if self.is_results(&select.operand) => {
                self.step(&select.field, select.test);
            }
            Expr::Select(select) => self.expression(&select.operand),
            Expr::Struct(_) => self.refuse("messages are not available; write a map".to_owned()),
        }
    }

    fn call(&mut self, call: &'a CallExpr) {
        if let (operators::INDEX, [of, index]) = (call.func_name.as_str(), call.args.as_slice())
            && self.is_results(of)
        {
            match &index.expr {
                Expr::Literal(LiteralValue::String(step)) => self.step(step.inner(), false),
                _ => self.refuse(UNNAMED_STEP.to_owned()),
            }
            return;
        }
        if call.func_name == operators::ADD {
            self.size.joins += 1;
        }
        let is_operator = call.func_name.contains(['_', '@', '!'])
            && !call.func_name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !is_operator && !FUNCTIONS.contains(&call.func_name.as_str()) {
            self.refuse(format!(
                "there is no function `{}`; there are {}",
                suggest::shown(&call.func_name),
                suggest::list(&FUNCTIONS)
            ));
        }
        for part in call.target.as_deref().into_iter().chain(&call.args) {
            self.expression(part);
        }
    }

    fn variable(&mut self, name: &'a str) {
        if self.own.contains(&name) || TYPES.contains(&name) {
            return;
        }
        match name {
            INPUT => self.uses.input = true,
            RESULTS => self.refuse(UNNAMED_STEP.to_owned()),
            _ => {
                self.uses.variables.insert(name.into());
            }
        }
    }

    fn is_results(&self, expression: &IdedExpr) -> bool {
        matches!(&expression.expr, Expr::Ident(name) if name == RESULTS) && !self.own.contains(&RESULTS)
    }

    fn step(&mut self, step: &str, is_test: bool) {
        let steps = if is_test {
            &mut self.uses.guarded
        } else {
            &mut self.uses.steps
        };
        steps.insert(step.into());
    }

    fn refuse(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }
}

/// Problem with an expression that uses all results at once.
const UNNAMED_STEP: &str = "`results` is used without the name of a step, as in `results.search`";

/// Converts a value. Whole numbers are integers, as in JSON Schema.
fn to_cel(value: &RawJson, sizes: &mut ValueSizes) -> CelValue {
    let value: Value = value.to().unwrap_or_default();
    tree_to_cel(&value, sizes)
}

fn tree_to_cel(value: &Value, sizes: &mut ValueSizes) -> CelValue {
    let mut grow = |size: &dyn Fn(&mut ValueSizes) -> &mut u64, length: usize| {
        let size = size(sizes);
        *size = (*size).max(length as u64);
    };
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(value) => CelValue::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => CelValue::Int(number),
            (None, Some(number)) => CelValue::UInt(number),
            (None, None) => CelValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => {
            grow(&|sizes| &mut sizes.text, text.len());
            CelValue::String(Arc::new(text.clone()))
        }
        Value::Array(items) => {
            grow(&|sizes| &mut sizes.items, items.len());
            let items = items.iter().map(|item| tree_to_cel(item, sizes));
            CelValue::List(Arc::new(items.collect()))
        }
        Value::Object(members) => {
            grow(&|sizes| &mut sizes.items, members.len());
            let members = members.iter();
            map(members
                .map(|(name, value)| (key(name), tree_to_cel(value, sizes)))
                .collect())
        }
    }
}

fn key(name: &str) -> Key {
    Key::String(Arc::new(name.to_owned()))
}

fn map(members: std::collections::HashMap<Key, CelValue>) -> CelValue {
    CelValue::Map(cel::objects::Map {
        map: Arc::new(members),
    })
}

/// Converts a value to JSON. Returns `None` for values that JSON does not have, such as a type or a number that is not finite.
fn to_json(value: &CelValue) -> Option<Value> {
    Some(match value {
        CelValue::Null => Value::Null,
        CelValue::Bool(value) => Value::from(*value),
        CelValue::Int(value) => Value::from(*value),
        CelValue::UInt(value) => Value::from(*value),
        CelValue::Float(value) => Value::Number(Number::from_f64(*value)?),
        CelValue::String(value) => Value::from(value.as_str()),
        CelValue::List(items) => Value::Array(items.iter().map(to_json).collect::<Option<_>>()?),
        CelValue::Map(members) => {
            // Sorted, since a map of CEL has no order.
            let mut sorted = BTreeMap::new();
            for (key, value) in members.map.iter() {
                let key = match key {
                    Key::String(key) => key.to_string(),
                    Key::Int(key) => key.to_string(),
                    Key::Uint(key) => key.to_string(),
                    Key::Bool(key) => key.to_string(),
                };
                sorted.insert(key, to_json(value)?);
            }
            Value::Object(sorted.into_iter().collect::<Map<_, _>>())
        }
        _ => return None,
    })
}

fn kind_of(value: &CelValue) -> &'static str {
    match value {
        CelValue::Null => "null",
        CelValue::Bool(_) => "a boolean",
        CelValue::Int(_) | CelValue::UInt(_) | CelValue::Float(_) => "a number",
        CelValue::String(_) => "a text",
        CelValue::List(_) => "a list",
        CelValue::Map(_) => "a map",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scope::Results;

    fn evaluate(source: &str) -> Result<Value, String> {
        let input = RawJson::from(
            json!({"n": 3, "big": u64::MAX, "half": 0.5, "words": ["a", "b", "a"], "none": null}),
        );
        let results = Results::default();
        results.put("search".into(), RawJson::from(json!({"urls": ["x", "y"]})));
        let variables = [(Arc::from("item"), RawJson::from(json!({"id": 7})))];
        let values = MappingValues {
            input: &input,
            results: &results,
            variables: &variables,
            missing_is_null: false,
        };
        let value = Expression::compile(source)?.evaluate(&values)?;
        Ok(value.to().expect("it is JSON"))
    }

    #[test]
    fn expressions_are_evaluated() {
        for (source, value) in [
            ("input.n + 1 == 4", json!(true)),
            ("input.big", json!(u64::MAX)),
            ("input.half * 2.0", json!(1.0)),
            ("size(results.search.urls)", json!(2)),
            ("results['search'].urls[1]", json!("y")),
            ("has(results.other) ? results.other : []", json!([])),
            (
                "input.words.filter(w, w == 'a').map(w, w + '!')",
                json!(["a!", "a!"]),
            ),
            (
                "input.words.exists(w, input.words.exists(v, v == w))",
                json!(true),
            ),
            ("{'id': item.id, 'b': input.none}", json!({"b": null, "id": 7})),
            ("type(input.n) == int", json!(true)),
            ("'n is ' + string(input.n)", json!("n is 3")),
        ] {
            assert_eq!(evaluate(source).as_ref(), Ok(&value), "{source}");
        }
    }

    #[test]
    fn problems_are_told_with_the_expression() {
        for (source, problem) in [
            ("input.n +", "the expression is not valid CEL: line 1, column"),
            ("results", UNNAMED_STEP),
            ("results[input.n]", UNNAMED_STEP),
            ("results.map(r, r)", UNNAMED_STEP),
            (
                "input.words.join(',')",
                "there is no function `join`; there are `bool`",
            ),
            ("matches(input.words[0], 'a')", "there is no function `matches`"),
            ("input.missing", "`input.missing`: No such key: missing"),
            (
                "other",
                "`other`: `other` is not there: no loop has the variable `other`",
            ),
            ("1.0 / 0.0", "`1.0 / 0.0`: its value is no JSON"),
            (
                "[1].map(a, [1].map(b, [1].map(c, [1].map(d, d))))",
                "the expression has loops at a depth of 4; 3 are allowed",
            ),
        ] {
            let error = evaluate(source).unwrap_err();
            assert!(error.starts_with(problem), "{source}: {error}");
        }
        let long = format!("'{}'", "a".repeat(MAX_SOURCE));
        assert_eq!(
            Expression::compile(&long).unwrap_err(),
            "the expression has 4098 bytes; 4096 are allowed"
        );
    }

    #[test]
    fn an_expression_is_refused_on_values_that_are_too_large() {
        let items: Vec<u32> = (0..400).collect();
        let input = RawJson::from(json!({ "items": items }));
        let values = MappingValues {
            input: &input,
            results: &Results::default(),
            variables: &[],
            missing_is_null: false,
        };
        let evaluate = |source: &str| {
            Expression::compile(source)
                .expect("it is valid")
                .evaluate(&values)
        };
        assert!(evaluate("input.items.map(a, a + 1)").is_ok());
        let cubic = "input.items.all(a, input.items.all(b, input.items.all(c, a + b + c > 0)))";
        let error = evaluate(cubic).unwrap_err();
        assert!(
            error.contains("steps on these values; 10000000 are allowed"),
            "{error}"
        );
    }

    /// The stack of a worker of tokio has 2 MiB.
    #[test]
    fn a_deep_expression_is_refused_or_evaluated_on_half_a_worker_s_stack() {
        let worker = std::thread::Builder::new().stack_size(1 << 20);
        let run = worker.spawn(|| {
            for (open, middle, close) in [
                ("", "1", "+1"),
                ("", "input", ".a"),
                ("", "input", "[0]"),
                ("(", "1", ")"),
                ("[", "1", "]"),
                ("{1:", "1", "}"),
                ("!", "true", ""),
                ("-", "1", ""),
                ("size(", "[]", ")"),
                ("", "true", " && true"),
                ("", "true", "?true:true"),
                ("", "[1]", ".map(a,a)"),
                ("[1].map(a,", "1", ")"),
            ] {
                for length in [MAX_SOURCE, 512, 128, 80, 60, 40] {
                    let n = (length - middle.len().min(length)) / (open.len() + close.len());
                    let source = format!("{}{middle}{}", open.repeat(n), close.repeat(n));
                    let _ = evaluate(&source);
                }
            }
        });
        run.expect("a thread").join().expect("it does not panic");
        let sum = |n: usize| format!("1{}", "+1".repeat(n));
        assert_eq!(evaluate(&sum(60)), Ok(json!(61)));
        assert_eq!(
            evaluate(&sum(2000)),
            Err("the operators of the expression are nested 2001 deep; 64 are allowed".to_owned())
        );
    }

    #[test]
    fn conditions_are_true_or_false() {
        let (input, results) = (RawJson::object(), Results::default());
        let values = MappingValues {
            input: &input,
            results: &results,
            variables: &[],
            missing_is_null: false,
        };
        let condition = |source: &str| Expression::compile(source).expect("it is valid").is_true(&values);
        assert_eq!(condition("1 < 2"), Ok(true));
        assert_eq!(condition("!true"), Ok(false));
        assert_eq!(
            condition("'yes'"),
            Err("`'yes'`: a condition is `true` or `false`, and its value is a text".to_owned())
        );
    }
}
