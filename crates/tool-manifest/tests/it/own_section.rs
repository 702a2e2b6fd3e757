//! A section with a key that no layer has: places, spellings and schema of one scalar among the keys of layers.

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Overrides, Setting};
use tool_manifest::{LoadOptions, Syntax, config_schema, load};
use tool_settings::{ByteSize, Field, Section, SectionContext, SectionKeys, Sections, ToolSettings};

/// Maximum size of an attachment, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MaxAttachment(usize);

impl Setting for MaxAttachment {}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Keys {
    /// Maximum size of an attachment.
    max_attachment_size: Field<ByteSize>,
}

fn read(cx: SectionContext<'_>, keys: Keys, overrides: &mut Overrides) {
    if let Some((at, ByteSize(bytes))) = keys.max_attachment_size.located() {
        if bytes == 0 {
            cx.error(at, "no attachment fits into 0 bytes", "leave it out");
        }
        overrides.set(MaxAttachment(bytes));
    }
}

fn sections() -> Sections {
    let of_tool =
        |cx: SectionContext<'_>, keys: Keys, tool: &mut ToolSettings| read(cx, keys, &mut tool.overrides);
    let section = Section::new()
        .for_tools(SectionKeys::new(of_tool).spelling("maxAttachmentSize", "max_attachment_size"))
        .for_defaults(SectionKeys::new(read).in_group(1));
    Sections::new(vec![section])
}

fn options(text: &str) -> LoadOptions {
    LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text)
}

const TOOL: &str = "tools:\n  a:\n    description: x\n    executor: {kind: mock, result: 1}\n";

#[test]
fn it_is_read_at_each_of_its_levels() {
    let text = format!("defaults: {{max_attachment_size: 1MiB}}\n{TOOL}    maxAttachmentSize: 64KiB\n");
    let configuration = load(&options(&text), &sections()).unwrap().configuration;
    let defaults = &configuration.defaults.overrides;
    assert_eq!(defaults.get(), Some(&MaxAttachment(1 << 20)));
    assert_eq!(
        configuration.tools[0].overrides.get(),
        Some(&MaxAttachment(64 << 10))
    );
}

#[test]
fn problems_have_their_places() {
    for (line, expected, hint) in [
        (
            "max_attachment_size: 0",
            "toolplane.yaml:5:26: no attachment fits into 0 bytes",
            "leave it out",
        ),
        (
            "max_attachment_size: many",
            "toolplane.yaml:5:26: `many` is no number of bytes",
            "`16MiB`",
        ),
        (
            "max_attachmen_size: 1",
            "toolplane.yaml:5:5: unknown key `max_attachmen_size`",
            "did you mean",
        ),
        (
            "max_attachment_size: 1\n    maxAttachmentSize: 2",
            "`max_attachment_size` is given twice, in two spellings",
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
    let at_server = "servers: {s: {command: x, max_attachment_size: 1}}";
    let problems = load(&options(at_server), &sections()).unwrap_err();
    assert!(
        problems.to_string().contains("unknown key `max_attachment_size`"),
        "{problems}"
    );
}

#[test]
fn the_schema_has_its_key_and_its_spelling() {
    let schema: serde_json::Value = config_schema(&[], &sections()).to().unwrap();
    let properties = |name: &str| schema["$defs"][name]["properties"].clone();
    let tool = properties("Tool");
    assert_eq!(
        tool["max_attachment_size"]["description"],
        "Maximum size of an attachment."
    );
    assert_eq!(tool["maxAttachmentSize"]["deprecated"], true);
    assert!(properties("Defaults")["max_attachment_size"].is_object());
    assert!(properties("Server")["max_attachment_size"].is_null());
    assert!(tool["$tool"].is_null(), "anchors are no keys");
}
