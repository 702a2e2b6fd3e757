//! Conversion of the definitions of 100 tools into each format, with schemas as real servers have them.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tool_agent::{DefinitionOptions, ProviderFormat, RawJson, ToolDefinitions, ToolSpec, serde_json::json};

fn tools() -> Vec<ToolSpec> {
    let tools = (0..100).map(|number| {
        let schema = json!({
            "type": "object",
            "properties": {
                "owner": {"type": "string", "description": "Owner of the repository"},
                "repo": {"type": "string", "description": "Name of the repository"},
                "state": {"type": "string", "enum": ["open", "closed", "all"], "default": "open"},
                "labels": {"type": "array", "items": {"type": "string"}, "description": "Labels to filter by"},
                "since": {"type": "string", "format": "date-time"},
                "page": {"type": "integer", "minimum": 1, "description": "Page, from 1"},
                "per_page": {"type": "integer", "minimum": 1, "maximum": 100},
            },
            "required": ["owner", "repo"],
        });
        let name = format!("github.list_issues_{number}");
        ToolSpec::new(name, "Lists the issues of a repository, newest first.", RawJson::from(schema))
    });
    tools.collect()
}

fn formats(c: &mut Criterion) {
    let tools = tools();
    for &format in ProviderFormat::ALL {
        for strict in [false, true] {
            let has_strict = matches!(format, ProviderFormat::OpenAiChat);
            if strict && !has_strict {
                continue;
            }
            let options = DefinitionOptions::default().with_strict(strict);
            let name = format!(
                "formats/{}{}",
                format.as_str(),
                if strict { ", strict" } else { "" }
            );
            c.bench_function(&name, |b| {
                b.iter(|| black_box(ToolDefinitions::new(format, &tools, options)));
            });
        }
    }
}

criterion_group!(benches, formats);
criterion_main!(benches);
