//! Workflows: the executor that makes the calls of their steps, and what is known about the tools that they call.

use std::sync::Arc;

use tool_core::{Clock, Descriptor, Flows, Overrides, Reentry, Tool};
use tool_flow::{MemoryFlows, StepRetry, StepTool, WorkflowExecutor, WorkflowProblem, check_workflow};
use tool_runtime::{RetrySettings, TokioClock};

use crate::{Toolplane, calls::reentry::LateToolplane};

/// Storage of the workflows that wait, and clock of the one in memory.
#[derive(Default)]
pub(crate) struct FlowSetup {
    pub(crate) flows: Option<Arc<dyn Flows>>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

/// Creates the executor of workflows, which calls tools of this toolplane.
pub(crate) fn executor(plane: &Arc<LateToolplane>, setup: &FlowSetup) -> WorkflowExecutor {
    let reentry: Arc<dyn Reentry> = plane.clone();
    let in_memory = || {
        let clock = setup.clock.clone();
        let clock = clock.unwrap_or_else(|| Arc::new(TokioClock::new()));
        Arc::new(MemoryFlows::new(clock)) as Arc<dyn Flows>
    };
    let flows = setup.flows.clone().unwrap_or_else(in_memory);
    WorkflowExecutor::new(reentry, Arc::new(overrides), flows)
}

/// Returns the settings of the call of a step with `retry`, which replace the tool's own.
fn overrides(retry: StepRetry) -> Overrides {
    let usual = RetrySettings::default();
    let settings = usual
        .with_max_attempts(retry.max_attempts)
        .with_initial_delay(retry.initial_delay.unwrap_or(usual.initial_delay))
        .with_max_delay(retry.max_delay.unwrap_or(usual.max_delay));
    Overrides::default().with(settings)
}

/// Tells whether a tool is visible to the author of a workflow.
pub(crate) type IsVisible<'a> = &'a dyn Fn(&Arc<Tool>) -> bool;

impl Toolplane {
    /// Checks all workflows against the tools that they call, as far as their definitions are known: starts no server. Returns
    /// each problem with the name of its workflow. Problems that prevent the use of a workflow are in [`Toolplane::refused`].
    #[must_use]
    pub fn workflow_problems(&self) -> Vec<(Arc<str>, WorkflowProblem)> {
        let snapshot = self.0.registry.snapshot();
        let mut problems = Vec::new();
        for tool in snapshot.tools() {
            let found = self.check_steps(tool.descriptor(), None);
            let found = found.into_iter();
            problems.extend(found.map(|problem| (tool.name().clone(), problem)));
        }
        problems
    }

    /// Checks a workflow against the tools that it calls. Anything else has no problems. With `is_visible`, tools that are not
    /// visible do not exist for it, nor do those of servers whose lists are unknown.
    pub(crate) fn check_steps(
        &self,
        descriptor: &Descriptor,
        is_visible: Option<IsVisible<'_>>,
    ) -> Vec<WorkflowProblem> {
        let Some(settings) = WorkflowExecutor::settings(descriptor) else {
            return Vec::new();
        };
        let tools = |name: &str| self.step_tool(name, is_visible);
        check_workflow(settings, &descriptor.input_schema, &tools)
    }

    /// Returns what is known about a tool that a step calls.
    fn step_tool(&self, name: &str, is_visible: Option<IsVisible<'_>>) -> StepTool {
        let (name, _) = name.split_once('@').unwrap_or((name, ""));
        let snapshot = self.0.registry.snapshot();
        let by_spelling = || {
            let full = self.0.registry.expand_name(name);
            let mut found = full.iter().filter_map(|full| snapshot.get(full));
            found.next().filter(|_| found.next().is_none())
        };
        let found = snapshot.get(name).or_else(by_spelling);
        let shows = |tool: &Arc<Tool>| is_visible.is_none_or(|is_visible| is_visible(tool));
        match found.filter(|tool| shows(tool)) {
            Some(tool) => {
                let descriptor = tool.descriptor();
                StepTool::known(descriptor.input_schema.clone(), descriptor.output_schema.clone())
            }
            None if is_visible.is_some() || self.0.registry.unlisted_sources().is_empty() => {
                let visible = snapshot.tools().iter().filter(|tool| shows(tool));
                StepTool::Missing(visible.map(|tool| tool.name().to_string()).collect())
            }
            None => StepTool::Unknown,
        }
    }
}
