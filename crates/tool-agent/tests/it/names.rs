//! Names of tools in the alphabets of providers.

use std::{collections::HashSet, sync::Arc};

use proptest::prelude::*;
use tool_agent::{ProviderFormat, ProviderNames};

#[test]
fn names_change_as_little_as_they_must() {
    let long = "a".repeat(70);
    let tools: Vec<Arc<str>> = ["web_search", "files.read", "files/read", "x.y", &long, "wetter-ü"]
        .into_iter()
        .map(Arc::from)
        .collect();
    let names = |format| {
        let names = ProviderNames::new(format, &tools);
        let each = tools
            .iter()
            .map(|tool| names.of_tool(tool).expect("it has one").to_string());
        each.collect::<Vec<_>>()
    };
    let openai = names(ProviderFormat::OpenAiChat);
    assert_eq!(openai[0], "web_search");
    // Both would be `files_read`, so that neither is, whatever their order.
    assert!(openai[1].starts_with("files_read_") && openai[1].len() == "files_read_".len() + 8);
    assert!(openai[2].starts_with("files_read_") && openai[2] != openai[1]);
    assert_eq!(openai[3], "x_y");
    assert_eq!(openai[4].len(), 64);
    assert_eq!(openai[5], "wetter-_");
    assert_eq!(names(ProviderFormat::Gemini)[3], "x.y");
    assert_eq!(names(ProviderFormat::Anthropic)[4], long);
    assert_eq!(names(ProviderFormat::Ollama)[2], "files/read");
}

proptest! {
    /// Every name fits its provider, no two tools share one, and each leads back.
    #[test]
    fn names_lead_back(tools in prop::collection::hash_set("[a-zA-Z0-9_./ü-]{1,80}", 1..30)) {
        let tools: Vec<Arc<str>> = tools.into_iter().map(Arc::from).collect();
        for &format in ProviderFormat::ALL {
            let names = ProviderNames::new(format, &tools);
            let mut seen = HashSet::new();
            for tool in &tools {
                let name = names.of_tool(tool).expect("it has one");
                prop_assert!(seen.insert(name.clone()), "{name} twice");
                prop_assert_eq!(names.tool(name), Some(tool));
                let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                match format {
                    ProviderFormat::OpenAiChat | ProviderFormat::OpenAiResponses => {
                        prop_assert!(name.len() <= 64 && name.chars().all(is_plain));
                    }
                    ProviderFormat::Anthropic => {
                        prop_assert!(name.len() <= 128 && name.chars().all(is_plain));
                    }
                    ProviderFormat::Gemini => {
                        prop_assert!(name.len() <= 64 && !name.starts_with(|c: char| c.is_ascii_digit()));
                    }
                    _ => {}
                }
            }
        }
    }
}
