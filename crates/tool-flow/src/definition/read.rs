//! Reading of a workflow's settings.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use tool_core::PrepareError;
use tool_mapping::{Expression, Mapping, Placed};
use tool_settings::{PlacedValue, SettingFields, kind_of, pointer, suggest};

use super::{
    Action, DEFAULT_CALLS, DEFAULT_ITEMS, DEFAULT_WINDOW, Definition, MAX_CALLS, MAX_DEPTH, MAX_ITEMS,
    MAX_STEPS, OnError, RESERVED, Scope, Step, StepRetry, ToolCall,
};

/// Maximum number of concurrent calls that a workflow may ask for.
const MAX_WINDOW: u32 = 100;
/// Maximum number of attempts of a step.
const MAX_ATTEMPTS: u32 = 100;

/// Keys of a step that say what it does. A step has exactly one of them.
const ACTIONS: [&[&str]; 4] = [
    &["tool"],
    &["parallel", "tools"],
    &["if", "condition"],
    &["for_each", "forEach"],
];

/// Keys of the arguments of a call.
const INPUT_KEYS: [&str; 4] = ["input", "inputMapping", "input_mapping", "arguments"];

/// Reader of one workflow.
struct Reader {
    problems: Vec<PrepareError>,
    /// Places of the names of steps.
    names: HashMap<String, String>,
    n_steps: usize,
}

impl Definition {
    /// Reads the settings of a workflow.
    ///
    /// # Errors
    /// Every problem in them.
    pub(crate) fn read(settings: &Value) -> Result<Self, Vec<PrepareError>> {
        let mut reader = Reader {
            problems: Vec::new(),
            names: HashMap::new(),
            n_steps: 0,
        };
        let definition = reader.definition(settings);
        let mut problems = reader.problems;
        if let Some(mut definition) = definition {
            crate::check::structure::resolve(&mut definition, &mut problems);
            if problems.is_empty() {
                return Ok(definition);
            }
        }
        Err(problems)
    }
}

impl Reader {
    fn definition(&mut self, settings: &Value) -> Option<Definition> {
        let problems = &mut self.problems;
        let mut fields = SettingFields::of(settings, "", problems);
        let output = fields.get(&["output"]);
        let output = output.map(|(at, value)| Mapping::read(value, &at, problems));
        let on_error = fields.text(&["on_error", "onError", "errorHandling"], problems);
        let on_error = on_error.map_or(OnError::default(), |(at, word)| match word {
            "fail" | "fail-fast" => OnError::Fail,
            "continue" | "continue-on-error" => OnError::Continue,
            other => {
                let problem = PrepareError::at(at, format!("unknown value `{}`", suggest::shown(other)));
                problems.push(problem.with_hint(suggest::value(other, &["fail", "continue"])));
                OnError::default()
            }
        });
        let window = fields.count("window", MAX_WINDOW, problems);
        let max_calls = fields.count("max_calls", MAX_CALLS, problems);
        let steps = fields.get(&["steps"]);
        fields.finish(problems);
        if !settings.is_object() {
            return None;
        }
        let Some((at, steps)) = steps else {
            problems.push(
                PrepareError::at("", "the workflow has no `steps`")
                    .with_hint("write `steps: [{name: .., tool: .., input: {..}}]`"),
            );
            return None;
        };
        let steps = self.steps(steps, &at, 0);
        Some(Definition {
            steps,
            output,
            on_error,
            window: window.map_or(DEFAULT_WINDOW, |window| window as usize),
            max_calls: max_calls.unwrap_or(DEFAULT_CALLS),
        })
    }

    /// Reads a list of steps, or a single one.
    fn steps(&mut self, value: &Value, at: &str, depth: usize) -> Scope {
        let mut scope = Scope::default();
        if depth == MAX_DEPTH {
            self.problem(at, format!("steps are nested deeper than {MAX_DEPTH} levels"));
            return scope;
        }
        match value {
            Value::Array(items) if items.is_empty() => self.problem(at, "there are no steps"),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    scope
                        .steps
                        .extend(self.step(item, &format!("{at}/{index}"), depth));
                }
            }
            single => scope.steps.extend(self.step(single, at, depth)),
        }
        scope
    }

    fn step(&mut self, value: &Value, at: &str, depth: usize) -> Option<Step> {
        self.n_steps += 1;
        if self.n_steps > MAX_STEPS {
            if self.n_steps == MAX_STEPS + 1 {
                self.problem(at, format!("there are more than {MAX_STEPS} steps"));
            }
            return None;
        }
        if let Value::String(tool) = value {
            // A branch that is the name of a tool, which gets the input of the workflow.
            let name = self.name(None, tool, at);
            return Some(plain_step(name, at, Action::Call(ToolCall::whole(tool, at))));
        }
        let problems = &mut self.problems;
        let mut fields = SettingFields::of(value, at, problems);
        let name = fields.text(&["name", "id"], problems);
        let optional = fields.flag("optional", problems);
        let timeout = fields.period("timeout", problems);
        let fallback = fields.get(&["fallback"]);
        let fallback = fallback.and_then(|(at, value)| tool_call(value, &at, problems));
        let depends_on = fields.get(&["depends_on", "dependsOn", "dependencies"]);
        let depends_on = depends_on.map_or_else(Vec::new, |(at, value)| texts(value, &at, problems));
        let kind = fields.text(&["type"], problems);
        let (mut retry, mut repeatable) = (None, false);
        let action = match self.only_action(value, at)? {
            "tool" => {
                let problems = &mut self.problems;
                repeatable = fields.flag("repeatable", problems);
                retry = fields.get(&["retry"]);
                self.call(&mut fields)
            }
            "parallel" => self.parallel(&mut fields, depth),
            "if" => self.conditional(&mut fields, at, depth),
            _ => self.for_each(&mut fields, at, depth),
        };
        let problems = &mut self.problems;
        let retry = retry.and_then(|(at, value)| step_retry(value, &at, problems));
        fields.finish(problems);
        let action = action?;
        if let Some((at, written)) = kind {
            self.check_kind(&at, written, &action);
        }
        let named_after = match &action {
            Action::Call(call) => call.tool.to_string(),
            other => other.word().to_owned(),
        };
        let name = self.name(name, &named_after, at);
        Some(Step {
            optional,
            repeatable,
            timeout,
            retry,
            fallback,
            depends_on,
            ..plain_step(name, at, action)
        })
    }

    /// Returns the usual name of the one key that says what a step does.
    fn only_action(&mut self, step: &Value, at: &str) -> Option<&'static str> {
        let is_there = |keys: &&&[&str]| {
            let mut keys = keys.iter();
            keys.any(|key| step.get(*key).is_some_and(|value| !value.is_null()))
        };
        let given: Vec<&str> = ACTIONS.iter().filter(is_there).map(|keys| keys[0]).collect();
        let problem = match given.as_slice() {
            [only] => return Some(only),
            [] if !step.is_object() => return None,
            [] => "the step does nothing".to_owned(),
            [first, second, ..] => format!("the step has both `{first}` and `{second}`"),
        };
        let hint = "a step has one of `tool`, `parallel`, `if` and `for_each`";
        self.problems.push(PrepareError::at(at, problem).with_hint(hint));
        None
    }

    fn call(&mut self, fields: &mut SettingFields<'_>) -> Option<Action> {
        let tool = fields.text(&["tool"], &mut self.problems);
        let input = fields.get(&INPUT_KEYS);
        let (at, tool) = tool?;
        let mut call = ToolCall::whole(tool, &at);
        call.set_input(input, &mut self.problems);
        Some(Action::Call(call))
    }

    fn parallel(&mut self, fields: &mut SettingFields<'_>, depth: usize) -> Option<Action> {
        if let Some((at, steps)) = fields.get(&["parallel"]) {
            return Some(Action::Parallel(self.steps(steps, &at, depth + 1)));
        }
        let tools = fields.get(&["tools"]);
        let input = fields.get(&INPUT_KEYS);
        let (at, tools) = tools?;
        Some(Action::Parallel(self.parallel_tools(tools, &at, input.as_ref())))
    }

    fn conditional(&mut self, fields: &mut SettingFields<'_>, at: &str, depth: usize) -> Option<Action> {
        let condition = fields.text(&["if", "condition"], &mut self.problems);
        let then = fields.get(&["then", "trueBranch"]);
        let otherwise = fields.get(&["else", "falseBranch"]);
        let then = then.map(|(at, steps)| self.steps(steps, &at, depth + 1));
        let otherwise = otherwise.map(|(at, steps)| self.steps(steps, &at, depth + 1));
        if then.is_none() {
            self.problem(at, "the step has `if` and no `then`");
        }
        let (condition_at, condition) = condition?;
        let condition =
            Expression::compile(condition).map_err(|problem| self.problem(&condition_at, problem));
        Some(Action::Conditional {
            condition: Placed {
                value: condition.ok()?,
                at: condition_at,
            },
            then: then?,
            otherwise: otherwise.unwrap_or_default(),
        })
    }

    fn for_each(&mut self, fields: &mut SettingFields<'_>, at: &str, depth: usize) -> Option<Action> {
        let items = fields.get(&["for_each", "forEach"]);
        let variable = fields.text(&["as"], &mut self.problems);
        let body = fields.get(&["do"]);
        let max_items = fields.count("max_items", MAX_ITEMS, &mut self.problems);
        let window = fields.count("window", MAX_WINDOW, &mut self.problems);
        let body = body.map(|(at, steps)| self.steps(steps, &at, depth + 1));
        if body.is_none() {
            self.problem(at, "the step has `for_each` and no `do`");
        }
        let variable = match variable {
            Some((at, name)) => self.variable(&at, name)?,
            None => "item".into(),
        };
        let (items_at, items) = items?;
        Some(Action::ForEach {
            items: Mapping::read(items, &items_at, &mut self.problems),
            at: items_at,
            variable,
            body: body?,
            max_items: max_items.map_or(DEFAULT_ITEMS, |most| most as usize),
            window: window.map_or(DEFAULT_WINDOW, |window| window as usize),
        })
    }

    /// Reads a list of tools that all get the same input.
    fn parallel_tools(&mut self, tools: &Value, at: &str, input: Option<&PlacedValue<'_>>) -> Scope {
        let mut scope = Scope::default();
        for (at, tool) in texts(tools, at, &mut self.problems) {
            let mut call = ToolCall::whole(&tool, &at);
            call.set_input(input.cloned(), &mut self.problems);
            let name = self.name(None, &tool, &at);
            scope.steps.push(plain_step(name, &at, Action::Call(call)));
        }
        if scope.steps.is_empty() {
            self.problem(at, "there are no tools");
        }
        scope
    }

    fn check_kind(&mut self, at: &str, written: &str, action: &Action) {
        let expected = match action {
            Action::Call(_) => ["call", "tool", "simple"],
            other => [other.word(); 3],
        };
        if !expected.contains(&written) {
            self.problem(
                at,
                format!(
                    "the step has the `type` `{}`, and its keys are those of `{}`",
                    suggest::shown(written),
                    expected[0]
                ),
            );
        }
    }

    /// Returns the name of a step: its own, or one after what it does.
    fn name(&mut self, own: Option<(String, &str)>, after: &str, at: &str) -> Arc<str> {
        let Some((at, own)) = own else {
            let base: String = after
                .chars()
                .map(|c| if is_name_part(c) { c } else { '_' })
                .collect();
            let mut name = base.clone();
            let mut number = 2;
            while self.names.contains_key(&name) {
                name = format!("{base}_{number}");
                number += 1;
            }
            self.names.insert(name.clone(), at.to_owned());
            return name.into();
        };
        if own.is_empty() || own.len() > 64 || !own.chars().all(is_name_part) {
            let problem = PrepareError::at(&at, format!("`{}` is no name of a step", suggest::shown(own)));
            let hint = "use up to 64 letters, digits, `_` and `-`";
            self.problems.push(problem.with_hint(hint));
        } else if let Some(first) = self.names.insert(own.to_owned(), at.clone()) {
            self.problem(&at, format!("another step, at `{first}`, has the name `{own}`"));
        }
        own.into()
    }

    fn variable(&mut self, at: &str, name: &str) -> Option<Arc<str>> {
        let fits = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if fits && !RESERVED.contains(&name) {
            return Some(name.into());
        }
        let problem = PrepareError::at(at, format!("`{}` is no name of a variable", suggest::shown(name)));
        let hint = format!(
            "use letters, digits and `_`, but not {}",
            suggest::list(&RESERVED)
        );
        self.problems.push(problem.with_hint(hint));
        None
    }

    fn problem(&mut self, at: impl Into<String>, message: impl Into<String>) {
        self.problems.push(PrepareError::at(at, message));
    }
}

impl ToolCall {
    /// Returns a call with the arguments of the workflow.
    fn whole(tool: &str, at: &str) -> Self {
        Self {
            tool: tool.into(),
            at: at.to_owned(),
            input: None,
            input_at: at.to_owned(),
        }
    }

    fn set_input(&mut self, input: Option<PlacedValue<'_>>, problems: &mut Vec<PrepareError>) {
        let Some((at, value)) = input else { return };
        let can_be_object = match value {
            Value::Object(_) => true,
            Value::String(text) => text.starts_with('$'),
            _ => false,
        };
        if !can_be_object {
            let problem = PrepareError::at(&at, format!("expected a map, found {}", kind_of(value)));
            problems.push(problem.with_hint("write `{parameter: value}`, or a reference such as `$input`"));
        }
        self.input = Some(Mapping::read(value, &at, problems));
        self.input_at = at;
    }
}

fn plain_step(name: Arc<str>, at: &str, action: Action) -> Step {
    Step {
        name,
        at: at.to_owned(),
        action,
        depends_on: Vec::new(),
        dependencies: Vec::new(),
        optional: false,
        fallback: None,
        timeout: None,
        retry: None,
        repeatable: false,
    }
}

/// Reads the name of a tool, or `{tool, input}`.
fn tool_call(value: &Value, at: &str, problems: &mut Vec<PrepareError>) -> Option<ToolCall> {
    if let Value::String(tool) = value {
        return Some(ToolCall::whole(tool, at));
    }
    let mut fields = SettingFields::of(value, at, problems);
    let tool = fields.text(&["tool"], problems);
    let input = fields.get(&INPUT_KEYS);
    fields.finish(problems);
    let Some((tool_at, tool)) = tool else {
        if value.is_object() {
            problems.push(PrepareError::at(at, "the name of a `tool` is missing"));
        }
        return None;
    };
    let mut call = ToolCall::whole(tool, &tool_at);
    call.set_input(input, problems);
    Some(call)
}

fn step_retry(value: &Value, at: &str, problems: &mut Vec<PrepareError>) -> Option<StepRetry> {
    let mut fields = SettingFields::of(value, at, problems);
    let max_attempts = fields.count("max_attempts", MAX_ATTEMPTS, problems);
    let initial_delay = fields.period("initial_delay", problems);
    let max_delay = fields.period("max_delay", problems);
    fields.finish(problems);
    value.is_object().then(|| StepRetry {
        max_attempts: max_attempts.unwrap_or(3),
        initial_delay,
        max_delay,
    })
}

/// Reads a list of texts, each with its place.
fn texts(value: &Value, at: &str, problems: &mut Vec<PrepareError>) -> Vec<(String, Arc<str>)> {
    let Some(items) = value.as_array() else {
        problems.push(PrepareError::at(
            at,
            format!("expected a list of names, found {}", kind_of(value)),
        ));
        return Vec::new();
    };
    let mut texts = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let at = pointer(at, &index.to_string());
        match item.as_str() {
            Some(text) => texts.push((at, text.into())),
            None => problems.push(PrepareError::at(
                at,
                format!("expected a name, found {}", kind_of(item)),
            )),
        }
    }
    texts
}

fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}
