//! JSON Schema of the settings, for editors and the reference.
#![expect(
    dead_code,
    reason = "these types describe the settings, which `definition` reads"
)]

use raw_json::RawJson;
use schemars::{JsonSchema, schema_for};
use serde_json::Value;

/// Returns the JSON Schema of the settings.
pub(crate) fn config_schema() -> RawJson {
    RawJson::from(schema_for!(Workflow).to_value())
}

/// Settings of a workflow.
#[derive(JsonSchema)]
struct Workflow {
    /// Steps. A step begins once the steps that it refers to and those of its `depends_on` have ended; steps that wait for
    /// nothing begin together.
    steps: Vec<Step>,
    /// Result of the workflow: JSON with references and expressions, as `input` of a step. By default, the result of the last
    /// step.
    output: Option<Value>,
    /// `fail`, the default: the workflow fails as its step did. `continue`: steps that do not need the failed one go on, and the
    /// result is marked as partial.
    on_error: Option<String>,
    /// Maximum number of concurrent calls. Default: 5.
    window: Option<u32>,
    /// Maximum number of calls, those of inner workflows included. Default: 1000.
    max_calls: Option<u32>,
}

/// Step of a workflow. It has one of `tool`, `parallel`, `if` and `for_each`.
#[derive(JsonSchema)]
struct Step {
    /// Name, by which other steps refer to its result: `$results.NAME`. By default, that of its tool.
    name: Option<String>,
    /// Another way to say what the step does, by the word for it: `call`, `parallel`, `conditional` or `for_each`.
    r#type: Option<String>,
    /// Tool to call. Another workflow is a tool as well.
    tool: Option<String>,
    /// Arguments of the tool: JSON in which a text such as `$input.topic`, `$results.search.urls[0]` or `$item` is a reference,
    /// `{$cel: ".."}` an expression, and `{$literal: ..}` a value as it is. A text that begins with `$$` begins with one `$`. By
    /// default, the arguments of the workflow.
    input: Option<Value>,
    /// Steps whose results are one object, by their names.
    parallel: Option<Vec<Self>>,
    /// Tools that all get the `input` of the step: a short form of `parallel`.
    tools: Option<Vec<String>>,
    /// Condition in CEL, such as `results.search.count > 3`.
    r#if: Option<String>,
    /// Step, list of steps, or name of a tool, for a condition that is true. The result is that of the last step.
    then: Option<Value>,
    /// Steps for a condition that is false, in the form of `then`. Without it, the step then has no result.
    r#else: Option<Value>,
    /// List whose items are worked on one by one: a reference or an expression.
    for_each: Option<Value>,
    /// Name of the variable of the item. Default: `item`. `index` is the number of the item, from 0.
    r#as: Option<String>,
    /// Step, list of steps, or name of a tool, for each item. The result of the step is the list of the results of the last of
    /// them.
    r#do: Option<Value>,
    /// Maximum number of items. Default: 100.
    max_items: Option<u32>,
    /// Maximum number of concurrent items. Default: 5.
    window: Option<u32>,
    /// Steps that end before this one begins. If one of them fails, this one fails as well.
    depends_on: Option<Vec<String>>,
    /// Lets the workflow go on if the step fails. It then has no result.
    optional: Option<bool>,
    /// Tool to call if the step fails: its name, or `{tool, input}`. Not after a failure of which it is unknown what it has done.
    fallback: Option<Value>,
    /// Time limit of the step, attempts and pauses included.
    timeout: Option<String>,
    /// Retries of the call, in place of the tool's own.
    retry: Option<Retry>,
    /// Declares that the call may be made again although it may have had its effect.
    repeatable: Option<bool>,
}

/// Retries of a step: see `retry` of tools.
#[derive(JsonSchema)]
struct Retry {
    /// Maximum number of attempts, the first included. Default: 3.
    max_attempts: Option<u32>,
    /// Maximum pause before the second attempt.
    initial_delay: Option<String>,
    /// Upper bound of all pauses.
    max_delay: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::Definition;

    /// Returns the keys in the messages about an unknown key at this place.
    fn unknown(settings: &Value) -> Vec<String> {
        let problems = Definition::read(settings).err().unwrap_or_default();
        let unknown = problems
            .into_iter()
            .filter(|problem| problem.message.starts_with("unknown setting"));
        unknown.map(|problem| problem.message).collect()
    }

    #[test]
    fn every_key_of_the_schema_is_read() {
        let schema: Value = config_schema().to().expect("it is JSON");
        let keys = |schema: &Value| -> Vec<String> {
            let properties = schema["properties"].as_object().expect("it has some");
            properties.keys().cloned().collect()
        };
        for key in keys(&schema) {
            assert!(
                unknown(&json!({ key.as_str(): 1, "steps": [{"tool": "a"}] })).is_empty(),
                "{key}"
            );
        }
        for key in keys(&schema["$defs"]["Step"]) {
            assert!(
                unknown(&json!({"steps": [{ key.as_str(): 1 }]})).is_empty(),
                "{key}"
            );
        }
        for key in keys(&schema["$defs"]["Retry"]) {
            let settings = json!({"steps": [{"tool": "a", "retry": { key.as_str(): 1 }}]});
            assert!(unknown(&settings).is_empty(), "{key}");
        }
        assert_eq!(unknown(&json!({"stepz": 1})), ["unknown setting `stepz`"]);
    }
}
