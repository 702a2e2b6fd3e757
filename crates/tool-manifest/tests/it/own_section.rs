//! A section that only this test knows: one scalar key among those of layers.

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Overrides, Setting};
use tool_manifest::{LoadOptions, Syntax, config_schema, load};
use tool_settings::{ByteSize, Field, Section, SectionContext, SectionKeys, Sections, ToolSettings};

/// Maximum size of the arguments of a call, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MaxArguments(usize);

impl Setting for MaxArguments {}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Keys {
    /// Maximum size of the arguments of a call.
    max_arguments_bytes: Field<ByteSize>,
}

fn read(cx: SectionContext<'_>, keys: Keys, overrides: &mut Overrides) {
    if let Some((at, ByteSize(bytes))) = keys.max_arguments_bytes.located() {
        if bytes == 0 {
            cx.error(at, "no arguments fit into 0 bytes", "leave it out");
        }
        overrides.set(MaxArguments(bytes));
    }
}

fn sections() -> Sections {
    let of_tool =
        |cx: SectionContext<'_>, keys: Keys, tool: &mut ToolSettings| read(cx, keys, &mut tool.overrides);
    let section = Section::new()
        .for_tools(SectionKeys::new(of_tool).spelling("maxArgumentsBytes", "max_arguments_bytes"))
        .for_defaults(SectionKeys::new(read).in_group(1));
    Sections::new(vec![section])
}

fn options(text: &str) -> LoadOptions {
    LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text)
}

const TOOL: &str = "tools:\n  a:\n    description: x\n    executor: {kind: mock, result: 1}\n";

#[test]
fn it_is_read_at_each_of_its_levels() {
    let text = format!("defaults: {{max_arguments_bytes: 1MiB}}\n{TOOL}    maxArgumentsBytes: 64KiB\n");
    let configuration = load(&options(&text), &sections()).unwrap().configuration;
    let defaults = &configuration.defaults.overrides;
    assert_eq!(defaults.get(), Some(&MaxArguments(1 << 20)));
    assert_eq!(
        configuration.tools[0].overrides.get(),
        Some(&MaxArguments(64 << 10))
    );
}

#[test]
fn problems_have_their_places() {
    for (line, expected, hint) in [
        (
            "max_arguments_bytes: 0",
            "toolplane.yaml:5:26: no arguments fit into 0 bytes",
            "leave it out",
        ),
        (
            "max_arguments_bytes: many",
            "toolplane.yaml:5:26: `many` is no number of bytes",
            "`16MiB`",
        ),
        (
            "max_argument_bytes: 1",
            "toolplane.yaml:5:5: unknown key `max_argument_bytes`",
            "did you mean",
        ),
        (
            "max_arguments_bytes: 1\n    maxArgumentsBytes: 2",
            "`max_arguments_bytes` is given twice, in two spellings",
            "",
        ),
    ] {
        let problems = load(&options(&format!("{TOOL}    {line}\n")), &sections()).unwrap_err();
        let problem = problems.iter().next().unwrap();
        assert!(problem.to_string().contains(expected), "{problem}");
        assert!(
            problem.hint.as_deref().unwrap_or_default().contains(hint),
            "{problem:?}"
        );
    }
    let at_server = "servers: {s: {command: x, max_arguments_bytes: 1}}";
    let problems = load(&options(at_server), &sections()).unwrap_err();
    assert!(
        problems.to_string().contains("unknown key `max_arguments_bytes`"),
        "{problems}"
    );
}

#[test]
fn the_schema_has_its_key_and_its_spelling() {
    let schema: serde_json::Value = config_schema(&[], &sections()).to().unwrap();
    let properties = |name: &str| schema["$defs"][name]["properties"].clone();
    let tool = properties("Tool");
    assert_eq!(
        tool["max_arguments_bytes"]["description"],
        "Maximum size of the arguments of a call."
    );
    assert_eq!(tool["maxArgumentsBytes"]["deprecated"], true);
    assert!(properties("Defaults")["max_arguments_bytes"].is_object());
    assert!(properties("Server")["max_arguments_bytes"].is_null());
    assert!(tool["$tool"].is_null(), "anchors are no keys");
}
