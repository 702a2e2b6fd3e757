use std::{fmt::Write, fs, path::Path};

use tool_core::Pattern;
use toolplane::manifest::{LoadOptions, Loaded, ServerTransport, load};

fn fixture(name: &str) -> Loaded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    load(&LoadOptions::new().path(path))
        .unwrap_or_else(|problems| panic!("{name}\n{}", problems.render(false)))
}

/// Returns a readable summary of a configuration.
fn summary(loaded: &Loaded) -> String {
    let mut text = String::new();
    for server in &loaded.configuration.servers {
        let _ = write!(text, "server {} ", server.name);
        match &server.transport {
            ServerTransport::Stdio {
                command,
                args,
                env,
                cwd,
                ..
            } => {
                let args: Vec<_> = args.iter().map(|arg| arg.literal().unwrap_or("?")).collect();
                let env: Vec<_> = env.keys().collect();
                let _ = write!(text, "{} {args:?} env {env:?}", command.literal().unwrap());
                if let Some(cwd) = cwd {
                    let name = Path::new(cwd.literal().unwrap()).file_name().unwrap();
                    let _ = write!(text, " cwd ../{}", name.display());
                }
            }
            ServerTransport::Refused { reason } => {
                let _ = write!(text, "refused: {reason}");
            }
            ServerTransport::Http { url, headers, .. } => {
                let headers: Vec<_> = headers.keys().collect();
                let _ = write!(text, "{} headers {headers:?}", url.literal().unwrap());
            }
        }
        if let Some(include) = &server.include {
            let _ = write!(
                text,
                " include {:?}",
                include.iter().map(Pattern::as_str).collect::<Vec<_>>()
            );
        }
        if server.disabled {
            text.push_str(" disabled");
        }
        text.push('\n');
    }
    for tool in &loaded.configuration.tools {
        let _ = writeln!(text, "tool {} {:?} {:?}", tool.name, tool.version, tool.timeout);
        // The order of a map is that of the program's `serde_json`.
        let config = raw_json::canonical(&tool.executor.config.clone().into());
        let _ = writeln!(text, "  {} {config}", tool.executor.kind);
        let _ = writeln!(text, "  in  {}", tool.input_schema.as_str());
        if let Some(schema) = &tool.output_schema {
            let _ = writeln!(text, "  out {}", schema.as_str());
        }
    }
    for problem in &loaded.diagnostics {
        let place = problem.location.as_ref().map_or(0, |place| place.line);
        let _ = writeln!(text, "{:?} line {place}: {}", problem.severity, problem.message);
    }
    text
}

#[test]
fn every_fixture_loads() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.extend(["email_enricher/seed-004-python.json", "vscode/mcp.json"].map(str::to_owned));
    names.sort();
    assert!(names.len() > 15, "{names:?}");
    let mut text = String::new();
    for name in names {
        let _ = writeln!(text, "== {name}\n{}", summary(&fixture(&name)));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn metadata_of_the_seed() {
    let loaded = fixture("seed-003-metadata.yaml");
    insta::assert_debug_snapshot!(loaded.configuration.tools[0].metadata);
}
