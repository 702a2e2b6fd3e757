//! Files of MCP clients, each in the place and form of its client's public documentation, which each test names.

mod files;
mod formats;
mod restrictions;
mod wrong_values;

use std::{fmt::Write, fs};

use tempfile::TempDir;
use tool_core::{Pattern, Template};
use toolplane::manifest::{HttpTransportSpec, LoadOptions, Loaded, ServerTransport, load};

/// Writes a file below a project and loads it, with the project as the working directory.
fn load_in(project: &TempDir, path: &str, text: &str) -> Loaded {
    let file = project.path().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    let options = LoadOptions::new().path(file).working_directory(project.path());
    load(&options).unwrap_or_else(|problems| panic!("{path}\n{}", problems.render(false)))
}

/// Returns a readable summary of the servers of a client's file, and of the remarks about it.
fn summary(path: &str, text: &str) -> String {
    let project = TempDir::new().unwrap();
    let loaded = load_in(&project, path, text);
    let mut summary = String::new();
    for server in &loaded.configuration.servers {
        let _ = write!(summary, "{}: ", server.name);
        transport(&mut summary, &server.transport);
        let list = |patterns: &[Pattern]| patterns.iter().map(|p| p.as_str().to_owned()).collect::<Vec<_>>();
        if let Some(include) = &server.include {
            let _ = write!(summary, "\n  include {:?}", list(include));
        }
        if !server.exclude.is_empty() {
            let _ = write!(summary, "\n  exclude {:?}", list(&server.exclude));
        }
        for (what, time) in [
            ("timeout", server.timeout),
            ("start timeout", server.start_timeout),
        ] {
            if let Some(time) = time {
                let _ = write!(summary, "\n  {what} {time:?}");
            }
        }
        for (what, is_so) in [
            ("disabled", server.disabled),
            ("required", server.required),
            ("sandbox", server.sandbox.is_some()),
        ] {
            if is_so {
                let _ = write!(summary, "\n  {what}");
            }
        }
        summary.push('\n');
    }
    for problem in &loaded.diagnostics {
        let place = problem.location.as_ref().map_or(0, |place| place.line);
        let _ = writeln!(
            summary,
            "{:?} line {place}: {}",
            problem.severity, problem.message
        );
    }
    let home = std::env::home_dir().unwrap();
    let summary = summary.replace(project.path().to_str().unwrap(), "[project]");
    summary.replace(home.to_str().unwrap(), "[home]")
}

fn transport(summary: &mut String, transport: &ServerTransport) {
    match transport {
        ServerTransport::Stdio {
            command,
            args,
            env,
            cwd,
            env_file,
            ..
        } => {
            let _ = write!(summary, "{}", written(command));
            for arg in args {
                let _ = write!(summary, " {}", written(arg));
            }
            for (name, value) in env {
                let _ = write!(summary, "\n  {name}={}", written(value));
            }
            for (what, path) in [("in", cwd), ("variables of", env_file)] {
                if let Some(path) = path {
                    let _ = write!(summary, "\n  {what} {}", written(path));
                }
            }
        }
        ServerTransport::Http {
            url,
            headers,
            transport,
        } => {
            let _ = write!(summary, "{}", written(url));
            if *transport != HttpTransportSpec::Either {
                let _ = write!(summary, " {transport:?}");
            }
            for (name, value) in headers {
                let _ = write!(summary, "\n  {name}: {}", written(value));
            }
        }
        ServerTransport::Refused { reason } => {
            let _ = write!(summary, "REFUSED: {reason}");
        }
    }
}

/// Writes a template with its references, and literal text in quotes.
fn written(template: &Template) -> String {
    let parts = template.parts().map(|part| match part {
        Ok(text) => text.to_owned(),
        Err(reference) => format!("<{reference}>"),
    });
    parts.collect()
}
