//! From a server's list of tools to descriptors.

use std::{collections::HashSet, sync::Arc};

use raw_json::{Kind, RawJson};
use serde_json::json;
use tool_core::{Descriptor, ExecutorSpec, Feature, Metadata, Origin, Rejected, Trust};

use crate::{McpExecutor, ServerSettings};

/// Makes descriptors of the tools on a server's list. A tool that cannot be used is left out with the reason, and
/// the rest is taken.
pub(crate) fn describe(
    settings: &ServerSettings,
    tools: &[RawJson],
) -> (Vec<Arc<Descriptor>>, Vec<Rejected>) {
    let mut names = HashSet::new();
    let (mut descriptors, mut rejected) = (Vec::with_capacity(tools.len()), Vec::new());
    for tool in tools {
        match descriptor(settings, tool) {
            Ok(None) => {}
            Ok(Some(descriptor)) if names.insert(descriptor.name.clone()) => {
                descriptors.push(Arc::new(descriptor));
            }
            Ok(Some(descriptor)) => rejected.push(Rejected {
                feature: Feature::Tool,
                name: descriptor.name.to_string(),
                reason: "another tool of the server has this name".to_owned(),
            }),
            Err(reject) => rejected.push(reject),
        }
    }
    (descriptors, rejected)
}

/// The descriptor of one tool; nothing if the configuration leaves the tool out.
fn descriptor(settings: &ServerSettings, tool: &RawJson) -> Result<Option<Descriptor>, Rejected> {
    let text = |key: &str| tool.get(key).and_then(|value| value.string());
    let Some(own) = text("name").filter(|name| !name.is_empty()) else {
        let reason = "it has no name".to_owned();
        return Err(Rejected {
            feature: Feature::Tool,
            name: format!("{}?", settings.prefix),
            reason,
        });
    };
    if !settings.takes(&own) {
        return Ok(None);
    }
    let name = settings.outward(&own);
    let Some(input_schema) = tool
        .get("inputSchema")
        .filter(|schema| schema.kind() == Kind::Object)
    else {
        return Err(Rejected {
            feature: Feature::Tool,
            name,
            reason: "its `inputSchema` is no object".to_owned(),
        });
    };
    Ok(Some(Descriptor {
        feature: Feature::Tool,
        name: name.into(),
        uri: None,
        title: text("title"),
        description: text("description").unwrap_or_default(),
        version: None,
        input_schema,
        output_schema: tool
            .get("outputSchema")
            .filter(|schema| schema.kind() == Kind::Object),
        executor: ExecutorSpec {
            kind: McpExecutor::KIND.to_owned(),
            config: json!({"server": settings.name, "tool": own}),
        },
        timeout: settings.timeout,
        metadata: Metadata::default(),
        definition: Some(tool.clone()),
        origin: Origin {
            place: format!("the server `{}`", settings.name),
            trust: Trust::Upstream,
        },
    }))
}
