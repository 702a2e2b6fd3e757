//! Checks of a workflow by itself: references, dependencies, cycles, and steps that may have no result.

use std::{collections::BTreeSet, sync::Arc};

use tool_core::PrepareError;
use tool_mapping::{Mapping, MappingPart, ReferenceRoot};
use tool_settings::suggest;

use crate::definition::{Action, Definition, Scope, Step};

/// Finds the dependencies of all steps, and reports every problem with them.
pub(crate) fn resolve(definition: &mut Definition, problems: &mut Vec<PrepareError>) {
    let names = names(&definition.steps);
    let mut check = StructureCheck {
        names: &names,
        problems,
    };
    let dependencies = check.scope(&definition.steps, &Surroundings::default());
    apply(&mut definition.steps, dependencies);
    check.order(&definition.steps);
    if let Some(output) = &definition.output {
        check.output(output, &definition.steps);
    }
}

/// Dependencies of the steps of a scope, and those of the scopes inside of each step.
struct ScopeDependencies(Vec<(Vec<usize>, Vec<Self>)>);

fn apply(scope: &mut Scope, dependencies: ScopeDependencies) {
    for (step, (own, inner)) in scope.steps.iter_mut().zip(dependencies.0) {
        step.dependencies = own;
        let scopes: [Option<&mut Scope>; 2] = match &mut step.action {
            Action::Call(_) => [None, None],
            Action::Parallel(scope) | Action::ForEach { body: scope, .. } => [Some(scope), None],
            Action::Conditional { then, otherwise, .. } => [Some(then), Some(otherwise)],
        };
        for (scope, inner) in scopes.into_iter().flatten().zip(inner) {
            apply(scope, inner);
        }
    }
}

/// Name of a step, and the names of the steps around it, outermost first.
type NamedStep = (Arc<str>, Vec<Arc<str>>);

fn names(scope: &Scope) -> Vec<NamedStep> {
    fn walk(scope: &Scope, around: &[Arc<str>], names: &mut Vec<NamedStep>) {
        for step in &scope.steps {
            names.push((step.name.clone(), around.to_vec()));
            let around: Vec<_> = around.iter().cloned().chain([step.name.clone()]).collect();
            for scope in step.action.scopes() {
                walk(scope, &around, names);
            }
        }
    }
    let mut names = Vec::new();
    walk(scope, &[], &mut names);
    names
}

/// Surroundings of a scope.
#[derive(Default, Clone)]
struct Surroundings<'a> {
    /// Steps around the scope, outermost first.
    steps: Vec<&'a Step>,
    /// Steps beside those, whose results the scope may use.
    visible: Vec<&'a Step>,
    /// Variables of the loops around it.
    variables: Vec<&'a str>,
}

/// Use of a step's result.
struct Use<'a> {
    at: &'a str,
    step: &'a str,
    /// `true` if it is only asked whether there is one.
    is_guarded: bool,
}

struct StructureCheck<'a, 'p> {
    names: &'a [NamedStep],
    problems: &'p mut Vec<PrepareError>,
}

impl StructureCheck<'_, '_> {
    /// Checks the references of a scope and returns the dependencies of its steps.
    fn scope(&mut self, scope: &Scope, around: &Surroundings<'_>) -> ScopeDependencies {
        let dependencies = scope.steps.iter().map(|step| {
            let mut own = BTreeSet::new();
            self.own_parts(step, scope, around, &mut own);
            let mut inner = around.clone();
            inner.steps.push(step);
            inner
                .visible
                .extend(scope.steps.iter().filter(|other| other.name != step.name));
            if let Action::ForEach { variable, .. } = &step.action {
                inner.variables.extend([&**variable, "index"]);
            }
            let scopes = step.action.scopes().map(|scope| self.scope(scope, &inner));
            let scopes: Vec<_> = scopes.collect();
            // A step waits for whatever the steps inside of it use.
            for inside in step.action.scopes() {
                inside.visit(&mut |inside| {
                    visit_parts(inside, &mut |part| {
                        let used = uses(part).into_iter();
                        let indexes = used.filter_map(|used| index_of(scope, used.step));
                        own.extend(indexes.filter(|index| scope.steps[*index].name != step.name));
                    });
                });
            }
            (own.into_iter().collect(), scopes)
        });
        ScopeDependencies(dependencies.collect())
    }

    /// Checks what a step itself refers to, and adds the steps of its scope that it waits for.
    fn own_parts(
        &mut self,
        step: &Step,
        scope: &Scope,
        around: &Surroundings<'_>,
        own: &mut BTreeSet<usize>,
    ) {
        for (at, name) in &step.depends_on {
            match index_of(scope, name) {
                Some(index) if scope.steps[index].name != step.name => {
                    own.insert(index);
                }
                Some(_) => self.problem(at, format!("the step `{name}` depends on itself"), ""),
                None => self.unknown_step(at, name, around),
            }
        }
        let is_optional = step.optional || around.steps.iter().any(|step| step.optional);
        visit_parts(step, &mut |part| {
            let guarded = guarded(part);
            for used in uses(part) {
                let target = index_of(scope, used.step);
                own.extend(target.filter(|index| scope.steps[*index].name != step.name));
                let visible = around.visible.iter().copied();
                let found = target.map(|index| &scope.steps[index]);
                let found = found.or_else(|| visible.rev().find(|step| *step.name == *used.step));
                match found {
                    Some(found) if found.name == step.name => {
                        let message = format!("the step `{}` uses its own result", step.name);
                        self.problem(used.at, message, "");
                    }
                    Some(found) => {
                        let is_safe = used.is_guarded || is_optional || guarded.contains(&found.name);
                        self.may_have_none(used.at, found, is_safe);
                    }
                    None => self.unknown_step(used.at, used.step, around),
                }
            }
            self.variables(part, around);
        });
    }

    /// Reports variables that no loop around the step has.
    fn variables(&mut self, part: MappingPart<'_>, around: &Surroundings<'_>) {
        let names: Vec<&str> = match part {
            MappingPart::Reference(reference) => match &reference.value.root {
                ReferenceRoot::Variable(name) => vec![name],
                _ => Vec::new(),
            },
            MappingPart::Expression(expression) => {
                let variables = expression.value.uses().variables.iter();
                variables.map(|name| &**name).collect()
            }
        };
        for name in names {
            if around.variables.contains(&name) {
                continue;
            }
            let known: Vec<&str> = ["input", "results"]
                .into_iter()
                .chain(around.variables.iter().copied())
                .collect();
            let hint = match part {
                MappingPart::Reference(_) => format!(
                    "there are {}; begin with `$$` if the text itself begins with `$`",
                    suggest::list(&known)
                ),
                MappingPart::Expression(_) => format!("there are {}", suggest::list(&known)),
            };
            let message = format!("there is no value `{}` here", suggest::shown(name));
            self.problem(part.at(), message, &hint);
        }
    }

    /// Reports the use of a result that may be missing.
    fn may_have_none(&mut self, at: &str, step: &Step, is_safe: bool) {
        let reason = match &step.action {
            _ if step.optional => "is optional, so that it may have none",
            Action::Conditional { otherwise, .. } if otherwise.steps.is_empty() => {
                "has no `else`, so that it may have none"
            }
            _ => return,
        };
        if !is_safe {
            let name = &step.name;
            let hint = format!(
                "make this step `optional` as well, or write `{{$cel: \"has(results.{name}) ? results.{name} : ..\"}}`"
            );
            self.problem(
                at,
                format!("the result of `{name}` is used, and it {reason}"),
                &hint,
            );
        }
    }

    fn unknown_step(&mut self, at: &str, name: &str, around: &Surroundings<'_>) {
        let is_around = around.steps.iter().any(|step| *step.name == *name);
        let inside = self.names.iter().find(|(known, _)| **known == *name);
        let (message, hint) = match inside {
            _ if is_around => (
                format!("the step is inside `{name}`, which has no result before this one"),
                String::new(),
            ),
            Some((_, outer)) if !outer.is_empty() => {
                let outer = &outer[outer.len() - 1];
                (
                    format!(
                        "the step `{name}` is inside `{outer}`, and only the result of `{outer}` is there"
                    ),
                    format!("use `$results.{outer}`"),
                )
            }
            _ => {
                let known: Vec<&str> = self.names.iter().map(|(name, _)| &**name).collect();
                (
                    format!("there is no step `{}` here", suggest::shown(name)),
                    suggest::value(name, &known),
                )
            }
        };
        self.problem(at, message, &hint);
    }

    /// Reports steps that wait for each other.
    fn order(&mut self, scope: &Scope) {
        if let Some(cycle) = cycle(scope) {
            let names: Vec<_> = cycle
                .iter()
                .map(|index| format!("`{}`", scope.steps[*index].name))
                .collect();
            let first = &scope.steps[cycle[0]];
            let message = match names.as_slice() {
                [one] => format!("the step {one} waits for itself"),
                names => format!("the steps {} wait for each other", names.join(", ")),
            };
            self.problem(&first.at, message, "");
        }
        for step in &scope.steps {
            for scope in step.action.scopes() {
                self.order(scope);
            }
        }
    }

    /// Checks the output of the workflow, which sees the results of the outermost steps.
    fn output(&mut self, output: &Mapping, steps: &Scope) {
        output.visit(&mut |part| {
            let guarded = guarded(part);
            for used in uses(part) {
                match index_of(steps, used.step) {
                    Some(index) => {
                        let step = &steps.steps[index];
                        let is_safe = used.is_guarded || guarded.contains(&step.name);
                        self.may_have_none(used.at, step, is_safe);
                    }
                    None => self.unknown_step(used.at, used.step, &Surroundings::default()),
                }
            }
            self.variables(part, &Surroundings::default());
        });
    }

    fn problem(&mut self, at: &str, message: impl Into<String>, hint: &str) {
        let problem = PrepareError::at(at, message);
        self.problems.push(match hint {
            "" => problem,
            hint => problem.with_hint(hint),
        });
    }
}

fn index_of(scope: &Scope, name: &str) -> Option<usize> {
    scope.steps.iter().position(|step| *step.name == *name)
}

/// Calls a function for each reference and expression of a step itself, without those of the steps inside of it.
pub(crate) fn visit_parts<'a>(step: &'a Step, visit: &mut dyn FnMut(MappingPart<'a>)) {
    for call in step.calls() {
        if let Some(input) = &call.input {
            input.visit(visit);
        }
    }
    match &step.action {
        Action::Conditional { condition, .. } => visit(MappingPart::Expression(condition)),
        Action::ForEach { items, .. } => items.visit(visit),
        Action::Call(_) | Action::Parallel(_) => {}
    }
}

/// Returns the steps whose results a part uses.
fn uses(part: MappingPart<'_>) -> Vec<Use<'_>> {
    match part {
        MappingPart::Reference(reference) => match &reference.value.root {
            ReferenceRoot::Result(step) => vec![Use {
                at: &reference.at,
                step,
                is_guarded: false,
            }],
            _ => Vec::new(),
        },
        MappingPart::Expression(expression) => {
            let uses = expression.value.uses();
            let of = |step, is_guarded| Use {
                at: &expression.at,
                step,
                is_guarded,
            };
            let used = uses.steps.iter().map(|step| of(&**step, false));
            used.chain(uses.guarded.iter().map(|step| of(&**step, true)))
                .collect()
        }
    }
}

/// Returns the steps whose results an expression asks for before it uses them.
fn guarded(part: MappingPart<'_>) -> BTreeSet<Arc<str>> {
    match part {
        MappingPart::Reference(_) => BTreeSet::new(),
        MappingPart::Expression(expression) => expression.value.uses().guarded.clone(),
    }
}

/// Returns the indexes of steps that wait for each other, if there are any, in the order in which they wait.
fn cycle(scope: &Scope) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    fn visit(scope: &Scope, at: usize, marks: &mut [Mark], path: &mut Vec<usize>) -> bool {
        match marks[at] {
            Mark::Done => return false,
            Mark::Open => {
                let start = path.iter().position(|index| *index == at).unwrap_or_default();
                path.drain(..start);
                return true;
            }
            Mark::New => {}
        }
        marks[at] = Mark::Open;
        path.push(at);
        for &next in &scope.steps[at].dependencies {
            if visit(scope, next, marks, path) {
                return true;
            }
        }
        path.pop();
        marks[at] = Mark::Done;
        false
    }
    let mut marks = vec![Mark::New; scope.steps.len()];
    let mut path = Vec::new();
    (0..scope.steps.len())
        .any(|at| visit(scope, at, &mut marks, &mut path))
        .then_some(path)
}
