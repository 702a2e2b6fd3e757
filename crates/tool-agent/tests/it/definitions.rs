//! Definitions of tools, and what formats cannot express.

use tool_agent::{
    DefinitionOptions, ModelToolChoice, NoteKind, ProviderFormat, ToolDefinitions, ToolSpec,
    serde_json::{Value, json},
};

use crate::{definitions, json as raw, value};

fn of(format: ProviderFormat, schema: &Value, strict: bool) -> ToolDefinitions {
    let tool = ToolSpec::new("find", "Finds.", raw(&schema.to_string()));
    ToolDefinitions::new(format, &[tool], DefinitionOptions::default().with_strict(strict))
}

fn notes(definitions: &ToolDefinitions) -> Vec<String> {
    definitions.notes().iter().map(ToString::to_string).collect()
}

#[test]
fn definitions_have_the_shape_of_their_provider() {
    let schema =
        json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    let tools = |format| value(of(format, &schema, false).tools());
    assert_eq!(
        tools(ProviderFormat::OpenAiChat),
        json!([{"type": "function", "function": {"name": "find", "description": "Finds.", "parameters": schema}}])
    );
    assert_eq!(
        tools(ProviderFormat::OpenAiResponses),
        json!([{"type": "function", "name": "find", "description": "Finds.", "parameters": schema, "strict": false}])
    );
    assert_eq!(
        tools(ProviderFormat::Anthropic),
        json!([{"name": "find", "description": "Finds.", "input_schema": schema}])
    );
    assert_eq!(
        tools(ProviderFormat::Gemini),
        json!([{"functionDeclarations": [
            {"name": "find", "description": "Finds.", "parametersJsonSchema": schema},
        ]}])
    );
    assert_eq!(tools(ProviderFormat::Ollama), tools(ProviderFormat::OpenAiChat));
    for &format in ProviderFormat::ALL {
        let definitions = of(format, &schema, false);
        assert!(definitions.notes().is_empty(), "{format:?}");
        let read = ToolDefinitions::read(format, definitions.tools()).expect("they are read");
        assert_eq!(
            read,
            [ToolSpec::new("find", "Finds.", raw(&schema.to_string()))],
            "{format:?}"
        );
        assert_eq!(ProviderFormat::named(format.as_str()), Some(format));
    }
}

#[test]
fn a_schema_that_needs_no_change_keeps_its_text() {
    let text = r#"{"type":"object","properties":{"n":{"type":"number","maximum":1e400,"x":12345678901234567890123}}}"#;
    let tool = ToolSpec::new("find", "Finds.", raw(text));
    let made = ToolDefinitions::new(ProviderFormat::Anthropic, &[tool], DefinitionOptions::default());
    assert!(
        made.tools().as_str().contains("12345678901234567890123"),
        "{}",
        made.tools().as_str()
    );
}

#[test]
fn what_a_dialect_cannot_express_is_told() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "string", "minLength": 1, "pattern": "^x"},
            "b": {"type": "array", "items": {"type": "number", "multipleOf": 2}},
        },
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        "dependentRequired": {"a": ["b"]},
    });
    let anthropic = of(ProviderFormat::Anthropic, &schema, false);
    assert_eq!(
        notes(&anthropic),
        ["`find` at `/anyOf`: removed: `anyOf` at the root of a schema"]
    );
    let mut kept = schema.clone();
    kept.as_object_mut().expect("an object").remove("anyOf");
    assert_eq!(value(anthropic.tools())[0]["input_schema"], kept);
    let gemini = of(ProviderFormat::Gemini, &schema, false);
    assert_eq!(
        notes(&gemini),
        [
            "`find` at `/dependentRequired`: removed: `dependentRequired`",
            "`find` at `/properties/a/minLength`: removed: `minLength`",
            "`find` at `/properties/a/pattern`: removed: `pattern`",
            "`find` at `/properties/b/items/multipleOf`: removed: `multipleOf`",
        ]
    );
    let ollama = of(ProviderFormat::Ollama, &schema, false);
    let ignored: Vec<_> = ollama
        .notes()
        .iter()
        .map(|note| (note.kind, note.pointer.as_str()))
        .collect();
    assert_eq!(
        ignored,
        [
            (NoteKind::Ignored, "/anyOf"),
            (NoteKind::Ignored, "/dependentRequired"),
            (NoteKind::Ignored, "/properties/a/minLength"),
            (NoteKind::Ignored, "/properties/a/pattern"),
        ]
    );
    assert_eq!(value(ollama.tools())[0]["function"]["parameters"], schema);
}

#[test]
fn ollama_is_told_of_no_schema_that_it_cannot_read() {
    let schema = json!({
        "type": "object",
        "properties": {
            "any": true,
            "none": false,
            "inner": {"type": "object", "properties": {"x": true}, "required": ["x"]},
            "one": {"anyOf": [true, {"type": "number", "minimum": 0}]},
            "list": {"type": "array", "items": true},
        },
    });
    let ollama = of(ProviderFormat::Ollama, &schema, false);
    assert_eq!(
        value(ollama.tools())[0]["function"]["parameters"]["properties"],
        json!({
            "any": {},
            "none": {"not": {}},
            "inner": {"type": "object", "properties": {"x": {}}, "required": ["x"]},
            "one": {"anyOf": [{}, {"type": "number", "minimum": 0}]},
            "list": {"type": "array", "items": true},
        })
    );
    let mut notes = notes(&ollama);
    notes.sort();
    assert_eq!(
        notes,
        [
            "`find` at `/properties/inner/required`: ignored by the provider: `required`",
            "`find` at `/properties/none/not`: ignored by the provider: `not`",
            "`find` at `/properties/one/anyOf/1/minimum`: ignored by the provider: `minimum`",
        ]
    );
}

#[test]
fn the_root_of_a_schema_is_an_object() {
    for &format in ProviderFormat::ALL {
        for (kind, n_notes) in [
            (json!("object"), 0),
            (json!(["object", "null"]), 0),
            (json!("string"), 1),
        ] {
            let made = of(format, &json!({"type": kind, "properties": {}}), false);
            let read = ToolDefinitions::read(format, made.tools()).expect("they are read");
            assert_eq!(
                value(&read[0].input_schema)["type"],
                "object",
                "{format:?}: {kind}"
            );
            assert_eq!(made.notes().len(), n_notes, "{format:?}: {kind}");
        }
    }
}

#[test]
fn strict_mode_closes_objects_and_requires_everything() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "limit": {"type": "integer", "default": 10, "minimum": 1},
            "maybe": {"type": ["string", "null"]},
            "order": {"enum": ["new", "old"], "type": "string"},
            "query": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "where": {"$ref": "#/$defs/place"},
        },
        "required": ["query"],
        "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
    });
    let strict = of(ProviderFormat::OpenAiChat, &schema, true);
    assert_eq!(
        value(strict.tools())[0]["function"],
        json!({
            "name": "find",
            "description": "Finds.",
            "strict": true,
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string"},
                    "limit": {"type": ["integer", "null"], "minimum": 1},
                    "order": {"enum": ["new", "old", null], "type": ["string", "null"]},
                    "where": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
                    "tags": {"type": ["array", "null"], "items": {"type": "string"}},
                    "maybe": {"type": ["string", "null"]},
                },
                "required": ["limit", "maybe", "order", "query", "tags", "where"],
                "additionalProperties": false,
                "$defs": {"place": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}},
                    "required": ["city"],
                    "additionalProperties": false,
                }},
            },
        })
    );
    let kinds: Vec<_> = strict.notes().iter().map(|note| note.kind).collect();
    assert!(!kinds.contains(&NoteKind::NotStrict), "{:?}", notes(&strict));
    assert!(notes(&strict).contains(&"`find` at `/properties/limit/default`: removed: `default`".to_owned()));
}

#[test]
fn a_schema_that_strict_mode_cannot_express_stays_as_it_is() {
    for (schema, at, reason) in [
        (
            json!({"type": "object", "additionalProperties": true}),
            "",
            "an object with any properties",
        ),
        (
            json!({"type": "object", "properties": {"a": {}}}),
            "/properties/a",
            "a schema that takes anything",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object"}}}),
            "/properties/a",
            "an object with any properties",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            "/properties/a",
            "a list of anything",
        ),
        (
            json!({"type": "object", "properties": {"a": {"allOf": [{"type": "string"}]}}}),
            "/properties/a/allOf",
            "`allOf`",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}),
            "/required",
            "`b` is required and not described",
        ),
    ] {
        let made = of(ProviderFormat::OpenAiResponses, &schema, true);
        let tool = &value(made.tools())[0];
        assert_eq!(tool["strict"], false, "{schema}");
        let [note] = made.notes() else {
            panic!("{schema}: {:?}", notes(&made))
        };
        assert_eq!(
            (note.kind, &*note.pointer, &*note.message),
            (NoteKind::NotStrict, at, reason)
        );
    }
    for (format, note) in [
        (
            ProviderFormat::Gemini,
            "`find`: not strict: the provider has no strict mode",
        ),
        (
            ProviderFormat::Anthropic,
            "`find`: not strict: strict mode of this provider is not used",
        ),
    ] {
        assert_eq!(notes(&of(format, &json!({"type": "object"}), true)), [note]);
    }
}

#[test]
fn a_tool_choice_is_written_and_read() {
    for &format in ProviderFormat::ALL {
        let made = definitions(format, &["files.read"]);
        for choice in [
            ModelToolChoice::Auto,
            ModelToolChoice::None,
            ModelToolChoice::Required,
            ModelToolChoice::Tool("files.read".into()),
        ] {
            let Some((_, written)) = choice.to_provider(format, made.names()) else {
                assert_eq!(format, ProviderFormat::Ollama);
                continue;
            };
            let read = ModelToolChoice::from_provider(format, &written, made.names()).expect("it is read");
            assert_eq!(read, choice, "{format:?}: {}", written.as_str());
        }
        let unknown = ModelToolChoice::Tool("other".into());
        assert_eq!(unknown.to_provider(format, made.names()), None);
    }
}
