//! Files, directories and what they include.

use std::{fs, path::Path};

use tempfile::TempDir;
use toolplane::manifest::{Diagnostics, LoadOptions, Loaded, Severity, load};

const MOCK: &str = "description: x\n    executor: {kind: mock}\n";

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

fn tool(name: &str) -> String {
    format!("tools:\n  {name}:\n    {MOCK}")
}

fn load_path(path: &Path) -> Result<Loaded, Diagnostics> {
    load(&LoadOptions::new().path(path))
}

fn names(loaded: &Loaded) -> Vec<&str> {
    loaded
        .configuration
        .tools
        .iter()
        .map(|tool| &*tool.name)
        .collect()
}

#[test]
fn a_bad_file_of_a_directory_is_left_out() {
    let files = [
        ("a.yaml", tool("first")),
        ("b.yml", format!("{}nonsense: 1\n", tool("lost"))),
        (
            "c.json",
            "{\"tools\": {\"third\": {\"description\": \"x\", \"executor\": {\"kind\": \"mock\"}}}}"
                .to_owned(),
        ),
        ("d.txt", "not read".to_owned()),
    ];
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let directory = directory(&files);
    let loaded = load_path(directory.path()).unwrap();
    assert_eq!(names(&loaded), ["first", "third"]);
    assert!(loaded.has_errors());
    let [problem] = loaded.diagnostics.as_slice() else {
        panic!("{:?}", loaded.diagnostics)
    };
    assert_eq!(problem.message, "unknown key `nonsense`");
    assert_eq!(problem.location.as_ref().unwrap().line, 5);

    // The same file, named, makes everything unusable.
    load_path(&directory.path().join("b.yml")).unwrap_err();
}

#[test]
fn a_tool_of_two_files_of_a_directory_is_the_first_ones() {
    let (one, two) = (tool("same"), format!("{}policy: {{}}\n", tool("same")));
    let directory = directory(&[("a.yaml", &one), ("b.yaml", &two)]);
    let loaded = load_path(directory.path()).unwrap();
    assert_eq!(names(&loaded), ["same"]);
    let [problem] = loaded.diagnostics.as_slice() else {
        panic!()
    };
    assert_eq!(problem.severity, Severity::Error);
    assert!(problem.related[0].location.file.ends_with("a.yaml"));
}

#[test]
fn includes_are_relative_to_their_file_and_may_go_round() {
    let main = format!("include: [more/extra.yaml, tools.d]\n{}", tool("main"));
    let extra = format!("include: [../toolplane.yaml]\n{}", tool("extra"));
    let directory = directory(&[
        ("toolplane.yaml", &main),
        ("more/extra.yaml", &extra),
        ("tools.d/a.yaml", &tool("scanned")),
        ("tools.d/bad.yaml", "tools: 5"),
    ]);
    let loaded = load_path(&directory.path().join("toolplane.yaml")).unwrap();
    assert_eq!(names(&loaded), ["main", "extra", "scanned"]);
    assert_eq!(loaded.diagnostics.len(), 1);
}

#[test]
fn a_missing_include_is_shown_where_it_is_named() {
    let directory = directory(&[("toolplane.yaml", "include:\n  - gone.yaml\n")]);
    let problems = load_path(&directory.path().join("toolplane.yaml")).unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert!(problem.message.starts_with("cannot read `"), "{problem}");
    assert_eq!(problem.location.as_ref().unwrap().line, 2);
    load_path(Path::new("/no/such/toolplane.yaml")).unwrap_err();
}

#[test]
fn bytes_that_are_no_text() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.yaml");
    fs::write(&path, b"tools:\n  caf\xe9: 1\n").unwrap();
    let problems = load_path(&path).unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!(problem.message, "this is not UTF-8 text");
    let place = problem.location.as_ref().unwrap();
    assert_eq!((place.line, place.column), (2, 6));

    fs::write(&path, b"\xef\xbb\xbftools: {}\n").unwrap();
    load_path(&path).unwrap();
}

#[test]
fn relative_paths_begin_at_their_file() {
    let directory = directory(&[(
        "conf/a.yaml",
        "\
servers:
  near: {command: x, cwd: data}
  far: {command: x, cwd: /data}
  told: {command: x, cwd: '${HOME}/data'}
tools:
  a: {description: x, executor: {kind: mock, result_file: a.json}}
",
    )]);
    let conf = directory.path().join("conf");
    let loaded = load_path(&conf.join("a.yaml")).unwrap();
    let directories: Vec<Option<String>> = loaded
        .configuration
        .servers
        .iter()
        .map(|server| match &server.transport {
            tool_manifest::ServerTransport::Stdio { cwd, .. } => {
                cwd.as_ref().unwrap().literal().map(str::to_owned)
            }
            _ => None,
        })
        .collect();
    let near = conf.join("data").to_str().unwrap().to_owned();
    assert_eq!(directories, [Some(near), Some("/data".to_owned()), None]);
    let file = conf.join("a.json").to_str().unwrap().to_owned();
    assert_eq!(loaded.configuration.tools[0].executor.config["result_file"], file);
}

#[test]
fn the_only_server_runs_what_names_none() {
    let manifest = |name: &str| {
        format!(
            "---\napiVersion: promptkit.altairalabs.ai/v1\nkind: Tool\nmetadata: {{name: {name}}}\nspec: {{description: x, mode: mcp}}\n"
        )
    };
    let one = format!("mcp_servers: {{files: {{command: x}}}}\n{}", manifest("read"));
    let two = format!(
        "mcp_servers: {{files: {{command: x}}, web: {{command: y}}}}\n{}",
        manifest("mcp__web__fetch_page")
    );
    let directory = directory(&[("one.yaml", &one), ("two.yaml", &two)]);
    for (name, server, tool) in [("one.yaml", "files", "read"), ("two.yaml", "web", "fetch_page")] {
        let loaded = load_path(&directory.path().join(name)).unwrap();
        let config = &loaded.configuration.tools[0].executor.config;
        assert_eq!(
            (&config["server"], &config["tool"]),
            (&server.into(), &tool.into())
        );
    }
}

#[test]
fn tools_of_one_server_share_it() {
    let kiwi = |tool: &str| {
        format!(
            "---\ntool_id: s_{tool}\ntool_type: mcp\ndescription: x\nexecutor_config: {{mcp_server: s, mcp_tool: {tool}, command: npx, args: [-y]}}\n"
        )
    };
    let text = format!("{}{}", kiwi("a"), kiwi("b"));
    let explicit = format!("servers: {{s: {{command: npx, args: [-y], prefix: ''}}}}\n{text}");
    let directory = directory(&[("kiwi.yaml", &text), ("explicit.yaml", &explicit)]);
    let loaded = load_path(&directory.path().join("kiwi.yaml")).unwrap();
    let [server] = loaded.configuration.servers.as_slice() else {
        panic!()
    };
    assert_eq!(server.include.as_deref(), Some(&[][..]));
    assert_eq!(names(&loaded), ["s_a", "s_b"]);
    // A server that is configured by itself offers all of its tools.
    let loaded = load_path(&directory.path().join("explicit.yaml")).unwrap();
    let [server] = loaded.configuration.servers.as_slice() else {
        panic!()
    };
    assert_eq!(
        (server.include.as_ref(), server.prefix.as_deref()),
        (None, Some(""))
    );
}
