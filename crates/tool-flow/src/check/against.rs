use std::collections::HashMap;

use raw_json::RawJson;
use serde_json::Value;
use tool_core::PrepareError;
use tool_mapping::{Mapping, MappingPart, PathSegment, Placed, ReferenceRoot, ValueReference};
use tool_settings::suggest;

use super::{
    structure::visit_parts,
    types::{PartOf, Types, part_of},
};
use crate::definition::{Action, Definition, Scope, Step, ToolCall};

/// Knowledge about a tool that a step of a workflow calls.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum StepTool {
    /// There is one, with these schemas of arguments and results.
    Known {
        /// Schema of its arguments.
        input: RawJson,
        /// Schema of its results.
        output: Option<RawJson>,
    },
    /// There is none. The names are those of tools that there are.
    Missing(Vec<String>),
    /// It may be a tool of a server whose list is not known yet.
    Unknown,
}

impl StepTool {
    /// Creates what is known about a tool with these schemas.
    #[must_use]
    pub fn known(input: RawJson, output: Option<RawJson>) -> Self {
        Self::Known { input, output }
    }
}

/// Problem that a workflow has with the tools that it calls.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkflowProblem {
    /// The problem, with its place in the settings of the executor.
    pub problem: PrepareError,
    /// `true` if the workflow may work all the same.
    pub is_warning: bool,
}

/// Checks a workflow against the tools that it calls: that there are such tools, that their required arguments are given, and
/// that references exist and have types that fit, as far as the schemas tell. `settings` are those of the executor. Problems that
/// [`prepare`](tool_core::Executor::prepare) reports are not repeated.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use tool_flow::{RawJson, StepTool, check_workflow};
///
/// let settings = json!({"steps": [{"tool": "serch"}]});
/// let tools = |_: &str| StepTool::Missing(vec!["search".to_owned()]);
/// let problems = check_workflow(&settings, &RawJson::object(), &tools);
/// assert_eq!(problems[0].problem.message, "there is no tool `serch`");
/// assert_eq!(problems[0].problem.hint.as_deref(), Some("did you mean `search`?"));
/// ```
#[must_use]
pub fn check_workflow(
    settings: &Value,
    input_schema: &RawJson,
    tools: &dyn Fn(&str) -> StepTool,
) -> Vec<WorkflowProblem> {
    let Ok(definition) = Definition::read(settings) else {
        return Vec::new();
    };
    let mut check = ToolCheck {
        input: input_schema.to().unwrap_or_default(),
        tools,
        known: HashMap::new(),
        outputs: HashMap::new(),
        problems: Vec::new(),
    };
    definition.steps.visit(&mut |step| check.look_up(step));
    check.scope(&definition.steps, &[]);
    if let Some(output) = &definition.output {
        output.visit(&mut |part| check.part(part, &[]));
    }
    check.problems
}

struct ToolCheck<'a> {
    input: Value,
    tools: &'a dyn Fn(&str) -> StepTool,
    /// Schemas of the arguments of tools.
    known: HashMap<String, Option<Value>>,
    /// Schemas of the results of steps that are calls.
    outputs: HashMap<String, Value>,
    problems: Vec<WorkflowProblem>,
}

/// A variable of a loop, and the schema of its values.
type Variable<'a> = (&'a str, Option<Value>);

impl ToolCheck<'_> {
    /// Looks the tools of a step up, and reports those that there are not.
    fn look_up(&mut self, step: &Step) {
        for (index, call) in step.calls().enumerate() {
            let tool = (self.tools)(&call.tool);
            match &tool {
                StepTool::Known {
                    output: Some(output), ..
                } if index == 0 && step.fallback.is_none() => {
                    let output = output.to().unwrap_or_default();
                    self.outputs.insert(step.name.to_string(), output);
                }
                StepTool::Missing(names) if !self.known.contains_key(&*call.tool) => {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    let message = format!("there is no tool `{}`", suggest::shown(&call.tool));
                    let hint =
                        suggest::nearest(&call.tool, &names).map(|near| format!("did you mean `{near}`?"));
                    self.report(&call.at, message, hint, false);
                }
                _ => {}
            }
            let input = match tool {
                StepTool::Known { input, .. } => input.to().ok(),
                _ => None,
            };
            self.known.insert(call.tool.to_string(), input);
        }
    }

    fn scope(&mut self, scope: &Scope, variables: &[Variable<'_>]) {
        for step in &scope.steps {
            visit_parts(step, &mut |part| self.part(part, variables));
            for call in step.calls() {
                self.arguments(call, variables);
            }
            let mut inner = variables.to_vec();
            if let Action::ForEach {
                items, at, variable, ..
            } = &step.action
            {
                inner.push((variable, self.items(items, at, variables)));
                inner.push(("index", Some(serde_json::json!({"type": "integer"}))));
            }
            for scope in step.action.scopes() {
                self.scope(scope, &inner);
            }
        }
    }

    /// Reports a reference to something that there is not.
    fn part(&mut self, part: MappingPart<'_>, variables: &[Variable<'_>]) {
        let MappingPart::Reference(Placed { at, value: reference }) = part else {
            return;
        };
        let Some(schema) = self.schema(reference, variables) else {
            return;
        };
        let says = match &reference.root {
            ReferenceRoot::Input => "the input schema of the workflow".to_owned(),
            ReferenceRoot::Result(step) => format!("the output schema of `{step}`"),
            ReferenceRoot::Variable(name) => format!("the schema of `{name}`"),
        };
        match part_of(&schema, &reference.path) {
            PartOf::Impossible => {
                let message = format!("by {says}, there is no `{reference}`");
                self.report(at, message, None, false);
            }
            PartOf::Unlisted => {
                let message = format!("{says} does not list `{reference}`");
                self.report(at, message, None, true);
            }
            PartOf::Described(_) | PartOf::Unknown => {}
        }
    }

    /// Checks the arguments of a call against the schema of its tool.
    fn arguments(&mut self, call: &ToolCall, variables: &[Variable<'_>]) {
        let Some(Some(schema)) = self.known.get(&*call.tool).cloned() else {
            return;
        };
        let arguments: Vec<(String, Option<Types>)> = match &call.input {
            Some(Mapping::Object(members)) => {
                let members = members.iter();
                members
                    .map(|(key, value)| (key.clone(), self.types(value, variables)))
                    .collect()
            }
            Some(Mapping::Literal(literal)) => {
                let members = literal.members();
                let types = |value: &RawJson| Some(Types::of_value(&value.to().ok()?));
                members
                    .map(|(key, value)| (key.into_owned(), types(&value)))
                    .collect()
            }
            None => return self.whole_input(call, &schema),
            Some(_) => return,
        };
        for (key, types) in &arguments {
            self.argument(call, &schema, key, *types);
        }
        let given: Vec<&str> = arguments.iter().map(|(key, _)| key.as_str()).collect();
        self.required(call, &schema, &given);
    }

    /// Checks a call that gets the arguments of the workflow.
    fn whole_input(&mut self, call: &ToolCall, schema: &Value) {
        let Some(listed) = self.input.get("properties").and_then(Value::as_object).cloned() else {
            return;
        };
        for name in required(schema).filter(|name| !listed.contains_key(*name)) {
            let message = format!(
                "`{}` needs the argument `{name}`, and the input schema of the workflow does not list it",
                call.tool
            );
            let hint = "write `input: {..}`, or the step gets the arguments of the workflow".to_owned();
            self.report(&call.at, message, Some(hint), true);
        }
    }

    fn argument(&mut self, call: &ToolCall, schema: &Value, key: &str, types: Option<Types>) {
        let at = tool_settings::pointer(&call.input_at, key);
        let path = [PathSegment::Member(key.to_owned())];
        match part_of(schema, &path) {
            PartOf::Described(parameter) => {
                let allowed = Types::of_schema(parameter);
                if let Some(types) = types.filter(|types| types.excludes(allowed)) {
                    let message = format!("`{}` takes {allowed} as `{key}`, and this is {types}", call.tool);
                    self.report(&at, message, None, false);
                }
            }
            PartOf::Impossible | PartOf::Unlisted => {
                let is_warning = part_of(schema, &path) == PartOf::Unlisted;
                let known = schema.get("properties").and_then(Value::as_object);
                let known: Vec<&str> = known
                    .into_iter()
                    .flat_map(|known| known.keys())
                    .map(String::as_str)
                    .collect();
                let message = format!("`{}` has no parameter `{}`", call.tool, suggest::shown(key));
                let hint = (!known.is_empty()).then(|| suggest::value(key, &known));
                self.report(&at, message, hint, is_warning);
            }
            PartOf::Unknown => {}
        }
    }

    fn required(&mut self, call: &ToolCall, schema: &Value, given: &[&str]) {
        for missing in required(schema).filter(|name| !given.contains(name)) {
            let message = format!("`{}` needs the argument `{missing}`", call.tool);
            self.report(&call.input_at, message, None, false);
        }
    }

    /// Returns the types that a value may have; `None` if nothing is known.
    fn types(&self, value: &Mapping, variables: &[Variable<'_>]) -> Option<Types> {
        match value {
            Mapping::Literal(literal) => Some(Types::of_value(&literal.to().ok()?)),
            Mapping::Object(_) => Some(Types::of_value(&serde_json::json!({}))),
            Mapping::List(_) => Some(Types::of_value(&serde_json::json!([]))),
            Mapping::Expression(_) => None,
            Mapping::Reference(reference) => {
                let reference = &reference.value;
                let schema = self.schema(reference, variables)?;
                match part_of(&schema, &reference.path) {
                    PartOf::Described(part) => Some(Types::of_schema(part)),
                    _ => None,
                }
            }
        }
    }

    /// Returns the schema of the items of a loop's list. Reports a value that is no list.
    fn items(&mut self, items: &Mapping, at: &str, variables: &[Variable<'_>]) -> Option<Value> {
        if let Some(types) = self.types(items, variables)
            && types.excludes(Types::of_value(&serde_json::json!([])))
        {
            let message = format!("`for_each` needs a list, and this is {types}");
            self.report(at, message, None, false);
        }
        let Mapping::Reference(reference) = items else {
            return None;
        };
        let schema = self.schema(&reference.value, variables)?;
        match part_of(&schema, &reference.value.path) {
            PartOf::Described(list) => list
                .get("items")
                .filter(|items| items.get("$ref").is_none())
                .cloned(),
            _ => None,
        }
    }

    /// Returns the schema of the root of a reference.
    fn schema(&self, reference: &ValueReference, variables: &[Variable<'_>]) -> Option<Value> {
        match &reference.root {
            ReferenceRoot::Input => Some(self.input.clone()),
            ReferenceRoot::Result(step) => self.outputs.get(&**step).cloned(),
            ReferenceRoot::Variable(name) => {
                let mut inner_first = variables.iter().rev();
                let (_, schema) = inner_first.find(|(known, _)| **known == **name)?;
                schema.clone()
            }
        }
    }

    fn report(&mut self, at: &str, message: String, hint: Option<String>, is_warning: bool) {
        let problem = PrepareError::at(at, message);
        self.problems.push(WorkflowProblem {
            problem: match hint {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            },
            is_warning,
        });
    }
}

/// Returns the names of the required members of an object.
fn required(schema: &Value) -> impl Iterator<Item = &str> {
    let required = schema.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str)
}
