use std::fmt::Write as _;

use serde_json::Value;
use tool_core::PrepareError;

use crate::definition::{Action, Definition, Scope, Step};

/// Language of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphFormat {
    /// A flowchart of Mermaid (<https://mermaid.js.org>).
    Mermaid,
    /// A digraph of Graphviz, in DOT.
    Dot,
}

/// Writes the graph of a workflow: its steps, and which of them waits for which. `settings` are those of the executor.
///
/// # Errors
/// Every problem in the settings.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use tool_flow::{GraphFormat, workflow_graph};
///
/// let settings = json!({"steps": [
///     {"name": "search", "tool": "web_search", "input": {"query": "$input.topic"}},
///     {"name": "read", "tool": "fetch", "input": {"urls": "$results.search.urls"}},
/// ]});
/// let graph = workflow_graph(&settings, GraphFormat::Mermaid)?;
/// assert!(graph.contains("s0 --> s1"));
/// # Ok::<(), Vec<tool_core::PrepareError>>(())
/// ```
pub fn workflow_graph(settings: &Value, format: GraphFormat) -> Result<String, Vec<PrepareError>> {
    let definition = Definition::read(settings)?;
    let mut graph = Graph {
        format,
        text: String::new(),
        edges: String::new(),
        n_nodes: 0,
        depth: 1,
    };
    match format {
        GraphFormat::Mermaid => graph.line("flowchart TD"),
        GraphFormat::Dot => {
            graph.line("digraph workflow {");
            graph.depth = 1;
            graph.inner_line("node [shape=box];");
            graph.inner_line("compound=true;");
        }
    }
    graph.scope(&definition.steps);
    let edges = std::mem::take(&mut graph.edges);
    graph.text.push_str(&edges);
    if format == GraphFormat::Dot {
        graph.line("}");
    }
    Ok(graph.text)
}

struct Graph {
    format: GraphFormat,
    text: String,
    edges: String,
    n_nodes: usize,
    depth: usize,
}

impl Graph {
    fn scope(&mut self, scope: &Scope) -> Vec<usize> {
        let nodes: Vec<usize> = scope.steps.iter().map(|step| self.step(step)).collect();
        for (step, node) in scope.steps.iter().zip(&nodes) {
            for dependency in &step.dependencies {
                self.edge(nodes[*dependency], *node, "");
            }
        }
        nodes
    }

    /// Writes a step and returns its number.
    fn step(&mut self, step: &Step) -> usize {
        let node = self.n_nodes;
        self.n_nodes += 1;
        let mut label = step.name.to_string();
        match &step.action {
            Action::Call(call) if *call.tool != *step.name => {
                let _ = write!(label, ": {}", call.tool);
            }
            Action::Call(_) => {}
            Action::Parallel(_) => label.push_str(" (parallel)"),
            Action::Conditional { condition, .. } => {
                let _ = write!(label, " (if {})", condition.value.source());
            }
            Action::ForEach { variable, .. } => {
                let _ = write!(label, " (for each {variable})");
            }
        }
        if step.optional {
            label.push_str(" (optional)");
        }
        if let Some(fallback) = &step.fallback {
            let _ = write!(label, " (else {})", fallback.tool);
        }
        let label = self.quoted(&label);
        self.inner_line(&match self.format {
            GraphFormat::Mermaid => format!("s{node}[{label}]"),
            GraphFormat::Dot => format!("s{node} [label={label}];"),
        });
        let words = match &step.action {
            Action::Conditional { .. } => ["then", "else"],
            _ => ["", ""],
        };
        for (scope, word) in step.action.scopes().zip(words) {
            for (inner, index) in self.scope(scope).into_iter().zip(0..) {
                let is_first = scope.steps[index as usize].dependencies.is_empty();
                if is_first {
                    self.edge(node, inner, if word.is_empty() { " " } else { word });
                }
            }
        }
        node
    }

    /// Writes an edge. One with a label leads into a step.
    fn edge(&mut self, from: usize, to: usize, label: &str) {
        let edge = match (self.format, label.trim()) {
            (GraphFormat::Mermaid, "") if label.is_empty() => format!("s{from} --> s{to}"),
            (GraphFormat::Mermaid, "") => format!("s{from} -.-> s{to}"),
            (GraphFormat::Mermaid, word) => format!("s{from} -. {word} .-> s{to}"),
            (GraphFormat::Dot, "") if label.is_empty() => format!("s{from} -> s{to};"),
            (GraphFormat::Dot, "") => format!("s{from} -> s{to} [style=dashed];"),
            (GraphFormat::Dot, word) => format!("s{from} -> s{to} [style=dashed, label=\"{word}\"];"),
        };
        let _ = writeln!(self.edges, "    {edge}");
    }

    fn quoted(&self, label: &str) -> String {
        let label = label.replace(char::is_control, " ");
        match self.format {
            // Mermaid knows no escape in a text but entities.
            GraphFormat::Mermaid => format!(
                "\"{}\"",
                label
                    .replace('&', "&amp;")
                    .replace('"', "&quot;")
                    .replace('<', "&lt;")
            ),
            GraphFormat::Dot => format!("\"{}\"", label.replace('\\', "\\\\").replace('"', "\\\"")),
        }
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn inner_line(&mut self, text: &str) {
        self.text.push_str(&"    ".repeat(self.depth));
        self.line(text);
    }
}
