use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    io,
};

use minijinja::{
    Environment, Error, ErrorKind as EngineError, Output, State, UndefinedBehavior, filters,
    value::{Object, Rest, Serde, Value, ValueKind},
};
use raw_json::RawJson;
use tool_core::{ErrorKind, PrepareError, ToolError};

use crate::translate::translate;

/// Maximum length of a template, in bytes.
const MAX_TEMPLATE: usize = 256 << 10;
/// Maximum length of a result, in bytes.
const MAX_OUTPUT: usize = 1 << 20;
/// Maximum cost of a rendering: 50,000 instructions, and a result of the largest size. An instruction costs 1; a byte
/// costs 1/64 each time that it is read or written, and 16/64 when it is serialized as JSON.
const FUEL: u64 = 50_000 + 20 * MAX_OUTPUT as u64 / 64;
const NAME: &str = "template";

/// Template of a result, ready to be rendered.
pub(crate) struct Template {
    engine: Environment<'static>,
    /// Names of the arguments in the template.
    arguments: BTreeSet<String>,
}

impl Template {
    /// Compiles a template.
    pub(crate) fn compile(text: &str) -> Result<Self, PrepareError> {
        let fail = |message: String| PrepareError::at("/template", message);
        if text.len() > MAX_TEMPLATE {
            return Err(fail(format!("the template is longer than {MAX_TEMPLATE} bytes")));
        }
        let translated = translate(text).map_err(|error| fail(error.to_string()))?;
        let mut engine = engine();
        engine
            .add_template_owned(NAME, translated.source)
            .map_err(|error| fail(describe(&error)))?;
        let arguments = engine
            .get_template(NAME)
            .map_err(|error| fail(describe(&error)))?
            .undeclared_variables(false)
            .into_iter()
            .filter(|name| !name.starts_with('_') && name != "range")
            .collect();
        Ok(Self { engine, arguments })
    }

    /// Renders the template with a call's arguments.
    pub(crate) fn render(&self, arguments: &serde_json::Value) -> Result<RawJson, ToolError> {
        let mut output = LimitedWriter::default();
        let template = self
            .engine
            .get_template(NAME)
            .map_err(|error| self.failure(&error, arguments))?;
        let rendered = template.render_captured_to(context(arguments), &mut output);
        if output.is_full {
            return Err(ToolError::new(
                ErrorKind::ResultTooLarge,
                format!("the mock's template produces more than {MAX_OUTPUT} bytes"),
            ));
        }
        rendered.map_err(|error| self.failure(&error, arguments))?;
        RawJson::parse(output.text).map_err(|error| {
            ToolError::new(ErrorKind::Protocol, "the mock's template does not produce JSON")
                .with_source(error)
        })
    }

    fn failure(&self, error: &Error, arguments: &serde_json::Value) -> ToolError {
        if error.kind() == EngineError::UndefinedError {
            let missing = self
                .arguments
                .iter()
                .find(|name| arguments.get(name.as_str()).is_none());
            let what = match (error.detail(), missing) {
                (Some(detail), _) if detail.contains('`') => detail.to_owned(),
                (_, Some(name)) => format!("the argument `{name}` is missing"),
                _ => "an argument is missing".to_owned(),
            };
            // The schema allows the argument to be absent, or validation would have refused the call: the template is at
            // fault.
            return ToolError::new(
                ErrorKind::Protocol,
                format!("the mock's template cannot be rendered: {what}"),
            );
        }
        ToolError::new(
            ErrorKind::Protocol,
            format!("the mock's template fails: {}", describe(error)),
        )
    }
}

/// Returns the engine's message without its framing.
fn describe(error: &Error) -> String {
    let what = error
        .detail()
        .map_or_else(|| error.kind().to_string(), ToOwned::to_owned);
    match error.line() {
        Some(line) => format!("{what} (line {line})"),
        None => what,
    }
}

/// Returns the variables of the template: the arguments by name, and all of them as `_arguments`.
fn context(arguments: &serde_json::Value) -> Value {
    let all = Value::from(Serde(arguments));
    let mut members: BTreeMap<String, Value> = BTreeMap::new();
    if let Some(object) = arguments.as_object() {
        members.extend(
            object
                .keys()
                .filter(|key| !key.starts_with('_'))
                .filter_map(|key| Some((key.clone(), all.get_attr(key).ok()?))),
        );
    }
    members.insert("_arguments".to_owned(), all);
    Value::from(members)
}

/// Returns an engine that can read only arguments: no files, no environment, no other templates, and no filter whose result
/// exceeds its input by more than a constant factor.
fn engine() -> Environment<'static> {
    let mut engine = Environment::empty();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_fuel(Some(FUEL));
    engine.set_recursion_limit(32);
    engine.set_formatter(format_json);
    engine.add_function("_text", text);
    engine.add_function("_part", |base: Value, names: Rest<Value>| part(base, &names));
    engine.add_function("_seek", |base: Value, names: Rest<Value>| seek(base, &names));
    engine.add_function("range", range);
    engine.add_filter("upper", filters::upper);
    engine.add_filter("lower", filters::lower);
    engine.add_filter("title", filters::title);
    engine.add_filter("capitalize", filters::capitalize);
    engine.add_filter("trim", filters::trim);
    engine.add_filter("default", filters::default);
    engine.add_filter("length", filters::length);
    engine.add_filter("first", filters::first);
    engine.add_filter("last", filters::last);
    engine.add_filter("abs", filters::abs);
    engine.add_filter("int", filters::int);
    engine.add_filter("float", filters::float);
    engine.add_filter("round", filters::round);
    engine.add_filter("string", filters::string);
    engine.add_filter("join", join);
    engine.add_filter("times", times);
    // Auto-escaping is not needed, since every value is written as JSON.
    engine.add_filter("tojson", |value: Value| value);
    engine.add_test("defined", minijinja::tests::is_defined);
    engine.add_test("undefined", minijinja::tests::is_undefined);
    engine.add_test("none", minijinja::tests::is_none);
    engine.add_test("string", minijinja::tests::is_string);
    engine.add_test("number", minijinja::tests::is_number);
    engine.add_test("mapping", minijinja::tests::is_mapping);
    engine.add_test("sequence", minijinja::tests::is_sequence);
    engine
}

/// Text for a JSON string that the template itself opens and closes.
#[derive(Debug)]
struct InString(String);

impl Object for InString {}

/// Writes a value as JSON, whatever escaping the template asks for.
fn format_json(output: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    if value.is_undefined() {
        return Err(Error::from(EngineError::UndefinedError));
    }
    if let Some(part) = value.downcast_object_ref::<InString>() {
        return output.write_str(&part.0).map_err(Error::from);
    }
    output.write_str(&json(value)?).map_err(Error::from)
}

fn json(value: &Value) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| {
        Error::new(EngineError::BadSerialization, "a value cannot be written as JSON").with_source(error)
    })
}

/// Function `_text(value)`: returns the value as part of a JSON string. Texts are inserted directly, other values as JSON.
fn text(value: &Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(Error::from(EngineError::UndefinedError));
    }
    let content = match value.as_str() {
        Some(text) => text.to_owned(),
        None => json(value)?,
    };
    let quoted = serde_json::Value::from(content).to_string();
    Ok(Value::from_object(InString(
        quoted[1..quoted.len() - 1].to_owned(),
    )))
}

/// Function `_part(value, names..)`: returns the value under these names, or an error.
fn part(base: Value, names: &[Value]) -> Result<Value, Error> {
    look_up(base, names).ok_or_else(|| {
        let path: Vec<String> = names.iter().map(ToString::to_string).collect();
        Error::new(
            EngineError::UndefinedError,
            format!("the argument `{}` is missing", path.join(".")),
        )
    })
}

/// Function `_seek(value, names..)`: returns the value under these names, or none.
fn seek(base: Value, names: &[Value]) -> Value {
    look_up(base, names).unwrap_or_else(|| Value::from(()))
}

fn look_up(base: Value, names: &[Value]) -> Option<Value> {
    names.iter().try_fold(base, |value, name| {
        value.get_item(name).ok().filter(|found| !found.is_undefined())
    })
}

/// Function `range(n)`: returns the numbers below `n`, which is at most 1000.
fn range(n: u64) -> Result<Value, Error> {
    if n > 1_000 {
        return Err(Error::new(
            EngineError::InvalidOperation,
            "`range` goes up to 1000",
        ));
    }
    Ok((0..n).collect())
}

/// Filter `items|join(", ")`. Replaces the engine's own, which has no size limit.
fn join(items: &Value, separator: Option<String>) -> Result<String, Error> {
    let separator = separator.unwrap_or_default();
    let mut out = String::new();
    for (index, item) in items.try_iter()?.enumerate() {
        if index > 0 {
            out.push_str(&separator);
        }
        let _ = write!(out, "{item}");
        if out.len() > MAX_OUTPUT {
            return Err(Error::new(
                EngineError::InvalidOperation,
                "`join` gives too long a text",
            ));
        }
    }
    Ok(out)
}

/// Filter `number|times(factor)`. Replaces `*`, which repeats texts as well.
fn times(value: Value, factor: Value) -> Result<Value, Error> {
    let fail = || Error::new(EngineError::InvalidOperation, "`times` multiplies numbers");
    if value.kind() != ValueKind::Number || factor.kind() != ValueKind::Number {
        return Err(fail());
    }
    if value.is_integer() && factor.is_integer() {
        let product = value
            .as_i64()
            .zip(factor.as_i64())
            .and_then(|(value, factor)| value.checked_mul(factor));
        return product.map(Value::from).ok_or_else(fail);
    }
    let number = |value: Value| f64::try_from(value).map_err(|_| fail());
    Ok(Value::from(number(value)? * number(factor)?))
}

/// Writer with a size limit.
#[derive(Default)]
struct LimitedWriter {
    text: Vec<u8>,
    is_full: bool,
}

impl io::Write for &mut LimitedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.text.len() + bytes.len() > MAX_OUTPUT {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
