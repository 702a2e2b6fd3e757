//! Types of the SDKs from npm, which check nothing when a program runs: TypeScript checks what we write, and what tests of turns read.

use std::{collections::BTreeMap, fs};

use tool_agent::{
    DefinitionOptions, ModelToolChoice, NoteKind, ProviderFormat, ToolDefinitions,
    serde_json::{Value, json},
};
use tool_testkit::Peers;

use super::bodies::{bodies, specs};
use crate::{calls::response, streams::events, value};

/// Returns the TypeScript program that checks values of a format, one a line. It declares the types `Request`, `Response` and `Event`.
fn declarations(format: ProviderFormat) -> &'static str {
    match format {
        ProviderFormat::OpenAiChat => include_str!("../fixtures/types/openai.ts"),
        ProviderFormat::OpenAiResponses => include_str!("../fixtures/types/openai-responses.ts"),
        ProviderFormat::Anthropic => include_str!("../fixtures/types/anthropic.ts"),
        ProviderFormat::Gemini => include_str!("../fixtures/types/gemini.ts"),
        _ => include_str!("../fixtures/types/ollama.ts"),
    }
}

/// Values for TypeScript to check.
#[derive(Default)]
struct Program {
    files: BTreeMap<String, String>,
    /// Descriptions of the values, by file and line.
    values: BTreeMap<(String, usize), String>,
}

impl Program {
    /// Adds a value that must have a type.
    fn add(&mut self, format: ProviderFormat, kind: &str, name: &str, value: &Value) {
        let file = format!("{}.ts", format.as_str());
        let text = self
            .files
            .entry(file.clone())
            .or_insert_with(|| declarations(format).to_owned());
        let line = text.lines().count() + 1;
        // U+2028 ends a line of TypeScript.
        let value = value.to_string().replace('\u{2028}', r"\u2028");
        text.push_str(&format!("export const value{line}: {kind} = {value};\n"));
        self.values
            .insert((file, line), format!("{} {kind}: {name}", format.as_str()));
    }

    /// Returns the errors of the compiler, by file and line; `None` if it is not installed.
    fn check(&self) -> Option<BTreeMap<(String, usize), String>> {
        let (command, folder) = match Peers::from_env().and_then(|peers| peers.typescript()) {
            Ok(found) => found,
            Err(skip) => {
                skip.report();
                return None;
            }
        };
        let folder = tempfile::tempdir_in(folder).expect("the folder is writable");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("the folder is writable");
        };
        write("package.json", r#"{"type": "module"}"#);
        write("json.ts", include_str!("../fixtures/types/json.ts"));
        for (name, text) in &self.files {
            write(name, text);
        }
        write("tsconfig.json", &settings(self.files.keys()).to_string());
        let mut command = command.to_command();
        command.current_dir(folder.path());
        let output = command
            .args(["--pretty", "false", "--project", "tsconfig.json"])
            .output()
            .expect("node runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = read_errors(&text);
        assert_eq!(output.status.success(), errors.is_empty(), "{output:?}");
        Some(errors)
    }
}

fn settings<'a>(files: impl Iterator<Item = &'a String>) -> Value {
    let options = json!({
        "strict": true,
        "noEmit": true,
        "target": "es2022",
        "module": "nodenext",
        "types": ["node"],
        // Their own declarations are not what is checked.
        "skipLibCheck": true,
    });
    json!({"compilerOptions": options, "files": files.collect::<Vec<_>>()})
}

/// Reads lines like `file.ts(3,7): error TS2322: ...`. What is indented belongs to the line before.
fn read_errors(text: &str) -> BTreeMap<(String, usize), String> {
    let mut errors = BTreeMap::<_, String>::new();
    let mut last = None;
    for line in text.lines() {
        let place = line.split_once("): error ").and_then(|(place, _)| {
            let (file, place) = place.split_once('(')?;
            let (line, _) = place.split_once(',')?;
            Some((file.to_owned(), line.parse().ok()?))
        });
        match (place, &last) {
            (None, Some(last)) if line.starts_with(' ') => errors.entry(Clone::clone(last)).or_default(),
            (None, _) => panic!("the compiler failed: {text}"),
            (Some(place), _) => {
                last = Some(place.clone());
                errors.entry(place).or_default()
            }
        }
        .push_str(&format!("{line}\n"));
    }
    errors
}

/// Removes from the tools of Ollama what notes tell to be ignored: its types do not have it.
fn without_ignored(body: &mut Value) {
    let made = ToolDefinitions::new(ProviderFormat::Ollama, &specs(), DefinitionOptions::default());
    let tools = body.get_mut("tools").and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten() {
        let name = tool["function"]["name"].as_str().expect("a text").to_owned();
        let notes = made.notes().iter().filter(|note| *note.tool == *name);
        for note in notes.filter(|note| note.kind == NoteKind::Ignored) {
            let (parent, key) = note.pointer.rsplit_once('/').expect("it is no root");
            let parent = tool.pointer_mut(&format!("/function/parameters{parent}"));
            let parent = parent.and_then(Value::as_object_mut).expect("it is there");
            assert!(parent.remove(key).is_some(), "{}", note.pointer);
        }
    }
}

/// Returns places of a body and wrong values for them. The body has tools, a choice of one tool, and results of calls.
fn wrong_values(format: ProviderFormat) -> Vec<(&'static str, Value)> {
    match format {
        ProviderFormat::OpenAiChat => vec![
            ("/tools/0/type", json!("tool")),
            ("/tools/0/function/name", json!(5)),
            ("/tools/0/function/strict", json!("yes")),
            ("/tools/0/function/input_schema", json!({})),
            ("/tool_choice", json!("any")),
            ("/tool_choice/function/name", json!(null)),
            ("/messages/1/tool_calls/0/function/arguments", json!({})),
            ("/messages/2/tool_call_id", json!(2)),
            ("/messages/2/content", json!({"result": 1})),
            ("/max_completion_tokens", json!("500")),
        ],
        ProviderFormat::OpenAiResponses => vec![
            ("/tools/0/strict", json!("yes")),
            ("/tools/0/function", json!({"name": "nested"})),
            ("/tools/0/parameters", json!(true)),
            ("/tool_choice/type", json!("tool")),
            ("/input/1/summary", json!("none")),
            ("/input/5/output", json!({"result": 1})),
            ("/input/5/call_id", json!(2)),
            ("/store", json!("no")),
        ],
        ProviderFormat::Anthropic => vec![
            ("/tools/0/name", json!(5)),
            ("/tools/0/parameters", json!({})),
            ("/tools/0/input_schema/type", json!("string")),
            ("/tool_choice/type", json!("function")),
            ("/messages/1/content/2/id", json!(5)),
            ("/messages/2/role", json!("tool")),
            ("/messages/2/content/0/tool_use_id", json!(null)),
            ("/messages/2/content/0/is_error", json!("yes")),
            ("/messages/2/content/0/content/0/type", json!("input_text")),
            ("/max_tokens", json!("500")),
        ],
        ProviderFormat::Gemini => vec![
            ("/tools/0/functionDeclarations/0/name", json!(5)),
            ("/tools/0/functionDeclarations/0/input_schema", json!({})),
            ("/tools/0/function_declarations", json!([])),
            ("/toolConfig/functionCallingConfig/mode", json!("REQUIRED")),
            (
                "/toolConfig/functionCallingConfig/allowedFunctionNames",
                json!("files.read"),
            ),
            ("/contents/1/parts/2/functionCall/args", json!("{}")),
            ("/contents/2/parts/0/functionResponse/response", json!("text")),
            ("/contents/2/parts/0/functionResponse/name", json!(5)),
            ("/contents/2/parts/0/text", json!({})),
        ],
        _ => vec![
            ("/tools/0/function/name", json!(5)),
            ("/tools/0/function/strict", json!(true)),
            ("/tools/0/function/parameters/properties/n", json!(true)),
            ("/tools/0/function/parameters/properties/n/minimum", json!(0)),
            ("/tools/0/function/parameters/required", json!("n")),
            ("/messages/1/tool_calls/0/function/arguments", json!("{}")),
            ("/messages/2/tool_call_id", json!("c1")),
            ("/messages/2/content", json!([])),
            ("/options", json!({"max_tokens": 500})),
        ],
    }
}

/// Sets the member at a place, whether it is there or not.
fn set(body: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').expect("it is no root");
    let parent = body
        .pointer_mut(parent)
        .unwrap_or_else(|| panic!("{pointer} is missing"));
    match parent {
        Value::Array(items) => items[key.parse::<usize>().expect("a number")] = value,
        members => members[key] = value,
    }
}

/// Returns the body of the request after a call, with a choice of one tool.
fn body_with_results(format: ProviderFormat) -> Value {
    let made = ToolDefinitions::new(format, &specs(), DefinitionOptions::default());
    let bodies = bodies(format);
    let mut with_results = bodies.into_iter().filter(|body| body.name.contains("Tool("));
    let mut body = with_results.nth(2).expect("there is one").body;
    let choice = ModelToolChoice::Tool("files.read".into());
    if let Some((key, choice)) = choice.to_provider(format, made.names()) {
        body[key] = value(&choice);
    }
    if format == ProviderFormat::Ollama {
        without_ignored(&mut body);
    }
    body
}

#[test]
fn types_of_sdks_refuse_what_is_wrong() {
    let mut program = Program::default();
    for &format in ProviderFormat::ALL {
        let right = body_with_results(format);
        program.add(format, "Request", "unchanged", &right);
        for (pointer, value) in wrong_values(format) {
            let mut wrong = right.clone();
            set(&mut wrong, pointer, value);
            program.add(format, "Request", pointer, &wrong);
        }
    }
    let Some(errors) = program.check() else { return };
    for (place, name) in &program.values {
        let is_right = name.ends_with("unchanged");
        assert_eq!(!errors.contains_key(place), is_right, "{name}");
    }
}

/// The tests of turns say something about a provider only if it answers as they do.
#[test]
fn types_of_sdks_take_the_responses_of_tests() {
    let mut program = Program::default();
    for &format in ProviderFormat::ALL {
        let whole = response(format);
        program.add(format, "Response", "whole", &whole);
        for event in events(format, &whole, &[0.5]) {
            program.add(format, "Event", &event.to_string(), &event);
        }
        // And is refused if it is something else.
        let wrong = json!({"id": 1, "choices": 1, "output": 1, "content": 1, "candidates": 1, "message": 1});
        program.add(format, "Response", "wrong", &wrong);
        program.add(format, "Event", "wrong", &wrong);
    }
    let Some(errors) = program.check() else { return };
    for (place, name) in &program.values {
        let error = errors.get(place).cloned().unwrap_or_default();
        assert_eq!(error.is_empty(), !name.ends_with("wrong"), "{name}\n{error}");
    }
}

#[test]
fn types_of_sdks_take_what_we_write() {
    let mut program = Program::default();
    for &format in ProviderFormat::ALL {
        for mut body in bodies(format) {
            if format == ProviderFormat::Ollama {
                without_ignored(&mut body.body);
            }
            program.add(format, "Request", &body.name, &body.body);
        }
    }
    let Some(errors) = program.check() else { return };
    let errors: Vec<_> = errors
        .iter()
        .map(|(place, error)| format!("{}\n{error}", program.values.get(place).map_or("", |name| name)))
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}
