//! Documents of the MCP registry. Each sample in `tests/fixtures/server-json` states its source.

use std::{collections::BTreeMap, fs, path::Path};

use tool_catalog::{Bundle, BundleContent, McpServerJson, ServerInput, ServerPlan};
use tool_core::serde_json::{self, Value, json};

fn sample(name: &str) -> McpServerJson {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/server-json/{name}.json"));
    read(&fs::read_to_string(path).unwrap()).unwrap()
}

fn read(text: &str) -> Result<McpServerJson, String> {
    let bundle = Bundle::parse("server.json", text.as_bytes()).map_err(|error| error.to_string())?;
    match bundle.content {
        BundleContent::McpServer(server) => Ok(*server),
        other => Err(format!("{other:?}")),
    }
}

fn values(values: &[(&str, &str)]) -> BTreeMap<String, String> {
    values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn names(inputs: &[ServerInput]) -> Vec<&str> {
    inputs.iter().map(|input| input.name.as_str()).collect()
}

#[track_caller]
fn plan(name: &str, package: Option<&str>, given: &[(&str, &str)]) -> ServerPlan {
    sample(name).plan(package, &values(given)).unwrap()
}

#[track_caller]
fn settings(plan: &ServerPlan) -> Value {
    serde_json::from_str(plan.settings.as_str()).unwrap()
}

#[track_caller]
fn refused(name: &str, package: Option<&str>, given: &[(&str, &str)]) -> String {
    let error = sample(name).plan(package, &values(given)).unwrap_err();
    format!("{error} | {}", error.hint().unwrap_or_default())
}

#[test]
fn every_sample_states_its_source_and_is_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/server-json");
    let mut n_samples = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        assert!(
            document["_source"]
                .as_str()
                .is_some_and(|source| source.starts_with("after ")),
            "{text}"
        );
        assert_eq!(read(&text).unwrap().name, document["name"].as_str().unwrap());
        n_samples += 1;
    }
    assert_eq!(n_samples, 12);
}

#[test]
fn npm_packages_are_started_by_npx() {
    let plan = plan("brave-search", None, &[]);
    assert_eq!(
        settings(&plan),
        json!({
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-brave-search@1.0.2"],
            "env": {"BRAVE_API_KEY": "${BRAVE_API_KEY}"},
        })
    );
    assert_eq!(plan.pinned, "the version 1.0.2, not its content");
    assert_eq!(names(&plan.asked), ["BRAVE_API_KEY"]);
    assert!(plan.asked[0].is_secret);
    assert_eq!(sample("brave-search").short_name(), "brave-search");
    assert_eq!(
        settings(&self::plan("snyk", None, &[])),
        json!({"command": "npx", "args": ["-y", "snyk@1.1298.0", "mcp", "-t", "stdio"]})
    );
    let local = self::plan("local-weather", None, &[]);
    assert_eq!(
        settings(&local)["args"],
        json!(["-y", "@modelcontextprotocol/server-weather@1.0.0", "--port=8080"])
    );
    assert_eq!(names(&local.optional), ["config_path"]);
    let given = self::plan("local-weather", None, &[("config_path", "${HOME}/w.toml")]);
    assert_eq!(settings(&given)["args"][2], "${HOME}/w.toml");
}

#[test]
fn python_packages_are_started_by_uvx() {
    let plan = plan("weather-python", None, &[]);
    assert_eq!(
        settings(&plan),
        json!({
            "command": "uvx",
            "args": ["weather-mcp-server==0.5.0"],
            "env": {"WEATHER_API_KEY": "${WEATHER_API_KEY}", "WEATHER_UNITS": "celsius"},
        })
    );
}

#[test]
fn images_are_started_by_docker_with_secrets_in_its_environment_alone() {
    let plan = plan(
        "database-manager",
        None,
        &[
            ("db_type", "redis"),
            ("database_name", "main"),
            ("DB_USERNAME", "ada"),
        ],
    );
    assert_eq!(
        settings(&plan),
        json!({
            "command": "docker",
            "args": [
                "run", "-i", "--rm", "-e", "DB_USERNAME", "-e", "DB_PASSWORD", "-e", "SSL_MODE",
                "--network=host", "-e", "DB_TYPE=redis", "docker.io/example/database-manager-mcp:3.1.0",
                "--host=localhost", "main",
            ],
            "env": {"DB_USERNAME": "ada", "DB_PASSWORD": "${DB_PASSWORD}", "SSL_MODE": "prefer"},
        })
    );
    assert_eq!(plan.pinned, "the tag 3.1.0, which may move");
    assert_eq!(names(&plan.asked), ["DB_PASSWORD"]);
    assert_eq!(names(&plan.optional), ["port"]);
    assert_eq!(plan.warnings.len(), 1, "{:?}", plan.warnings);
    assert!(plan.warnings[0].contains("`--network`"));
}

#[test]
fn required_values_without_a_default_are_asked_for() {
    let plan = plan("database-manager", None, &[]);
    assert_eq!(
        names(&plan.asked),
        ["db_type", "DB_USERNAME", "DB_PASSWORD", "database_name"]
    );
    let references: Vec<_> = plan
        .asked
        .iter()
        .map(|input| input.reference.as_deref().unwrap())
        .collect();
    assert_eq!(
        references,
        [
            "${DB_TYPE}",
            "${DB_USERNAME}",
            "${DB_PASSWORD}",
            "${DATABASE_NAME}"
        ]
    );
    assert!(
        settings(&plan)["args"]
            .as_array()
            .unwrap()
            .contains(&json!("DB_TYPE=${DB_TYPE}"))
    );
    let variable = self::plan("vscode-nuget", None, &[]);
    assert_eq!(
        settings(&variable)["env"],
        json!({"WEATHER_CHOICES": "${WEATHER_CHOICES}"})
    );
    assert_eq!(names(&variable.asked), ["weather_choices"]);
    let given = self::plan("vscode-nuget", None, &[("weather_choices", "rain,sun")]);
    assert_eq!(settings(&given)["env"], json!({"WEATHER_CHOICES": "rain,sun"}));
}

#[test]
fn values_are_checked() {
    assert_eq!(
        refused("database-manager", None, &[("db_type", "oracle")]),
        "`db_type`: `oracle` is none of its values | there are `postgres`, `mysql`, `mongodb`, `redis`"
    );
    assert_eq!(
        refused("brave-search", None, &[("BRAVE_API_KEY", "abc")]),
        "`BRAVE_API_KEY`: it is a secret, and would be stored as it is written | give a reference: \
         `--set BRAVE_API_KEY='${BRAVE_API_KEY}'`"
    );
    assert_eq!(
        refused("brave-search", None, &[("BRAVE_API_KEI", "abc")]),
        "`io.modelcontextprotocol.anonymous/brave-search`: it asks for no value `BRAVE_API_KEI` | did you mean `BRAVE_API_KEY`?"
    );
    let other = plan("brave-search", None, &[("BRAVE_API_KEY", "${secret:brave}")]);
    assert_eq!(settings(&other)["env"]["BRAVE_API_KEY"], "${secret:brave}");
}

#[test]
fn one_of_several_packages_is_chosen() {
    let server = sample("filesystem");
    let choices: Vec<_> = server
        .choices()
        .iter()
        .map(|choice| (choice.number, choice.kind.clone()))
        .collect();
    assert_eq!(choices, [(1, "npm".to_owned()), (2, "oci".to_owned())]);
    assert_eq!(
        settings(&plan("filesystem", None, &[])),
        json!({
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem@1.0.2", "/Users/username/Desktop"],
            "env": {"LOG_LEVEL": "info"},
        })
    );
    for wanted in ["2", "oci"] {
        let image = plan("filesystem", Some(wanted), &[("source_path", "/data")]);
        assert_eq!(
            settings(&image)["args"],
            json!([
                "run",
                "-i",
                "--rm",
                "-e",
                "LOG_LEVEL",
                "--mount=type=bind,src=/data,dst=/project",
                "docker.io/mcp/filesystem:1.0.2",
                "/project",
            ])
        );
    }
    assert!(refused("filesystem", Some("pypi"), &[]).contains("it has no package `pypi`"));
    assert!(refused("filesystem", Some("3"), &[]).contains("there are 1 (npm); 2 (oci)"));
}

#[test]
fn remote_endpoints_are_servers_with_a_url() {
    let plan = plan("hybrid", Some("remote"), &[]);
    assert_eq!(
        settings(&plan),
        json!({
            "url": "https://mcp.anonymous.modelcontextprotocol.io/http", "type": "http",
            "headers": {"X-API-Key": "${X_API_KEY}", "X-Region": "us-east-1"},
        })
    );
    let sse = self::plan("hybrid", Some("3"), &[]);
    assert_eq!(
        settings(&sse),
        json!({"url": "https://mcp.anonymous.modelcontextprotocol.io/sse", "type": "sse"})
    );
    let weather = self::plan("remote-weather", None, &[]);
    assert_eq!(
        settings(&weather),
        json!({"url": "https://api.example.com/mcp", "type": "http", "headers": {"Authorization": "${AUTHORIZATION}"}})
    );
    let other = self::plan("remote-weather", None, &[("host", "eu.example.com")]);
    assert_eq!(settings(&other)["url"], "https://eu.example.com/mcp");
    let base = self::plan("base-url", None, &[]);
    assert_eq!(settings(&base)["url"], "${BASEURL}/mcp");
    assert_eq!(names(&base.asked), ["baseUrl"]);
}

#[test]
fn packages_that_cannot_be_started_are_refused_with_the_reason() {
    assert_eq!(
        refused("mcpb", None, &[]),
        "`io.modelcontextprotocol/text-editor`: none of its packages can be used: 1 (mcpb): \
         `https://github.com/modelcontextprotocol/text-editor-mcpb/rel…`: bundles of the form MCPB are not unpacked here | "
    );
    assert!(refused("nuget", None, &[]).contains("packages of NuGet are not started here"));
}

/// Changes of a sample that a foreign document may have.
#[test]
fn a_package_starts_nothing_but_itself() {
    let package = json!({
        "registryType": "npm", "identifier": "weather", "version": "1.0.0", "transport": {"type": "stdio"},
    });
    let option = json!([{"type": "named", "name": "--x", "value": "1"}]);
    for (changes, expected) in [
        (
            json!({"identifier": "--registry=https://evil.example.com"}),
            "it is no name of a package on npm",
        ),
        (
            json!({"identifier": "git+https://evil.example.com/x"}),
            "it is no name of a package on npm",
        ),
        (json!({"version": "latest"}), "`latest` is not one version"),
        (json!({"version": "^1.0.0"}), "`^1.0.0` is not one version"),
        (json!({"version": null}), "it states no version"),
        (
            json!({"registryBaseUrl": "https://evil.example.com"}),
            "it is in the registry `https://evil.example.com`",
        ),
        (
            json!({"runtimeHint": "bash", "runtimeArguments": option}),
            "it is to be started by `bash`",
        ),
        (json!({"fileSha256": "00"}), "it states `fileSha256`"),
        (
            json!({"transport": {"type": "streamable-http"}}),
            "its program listens by `streamable-http`",
        ),
        (
            json!({"registryType": "pypi", "identifier": "-e"}),
            "it is no name of a distribution",
        ),
        (
            json!({"registryType": "oci", "identifier": "--privileged"}),
            "it is no reference to an image",
        ),
        (
            json!({"registryType": "oci", "identifier": "a/b:latest"}),
            "it names no version of the image",
        ),
        (
            json!({"registryType": "oci", "identifier": "a/b", "version": null}),
            "it names no version of the image",
        ),
        (
            json!({"registryType": "oci", "identifier": "a/b@sha256:12"}),
            "its digest has not 64 digits",
        ),
        (
            json!({"registryType": "cargo"}),
            "packages of the type `cargo` are not known",
        ),
        (
            json!({"packageArguments": [{"type": "named", "name": "x"}]}),
            "`x` is no name of an option",
        ),
        (
            json!({"packageArguments": [{"type": "other"}]}),
            "an argument is of the type `other`",
        ),
        (
            json!({"environmentVariables": [{"name": "A=B"}]}),
            "it is no name of an environment variable",
        ),
    ] {
        let mut changed = package.clone();
        for (key, value) in changes.as_object().unwrap() {
            changed[key] = value.clone();
        }
        let document = json!({"name": "a/b", "description": "", "version": "1.0.0", "packages": [changed]});
        let error = read(&document.to_string())
            .unwrap()
            .plan(None, &BTreeMap::new())
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{changes}: {error}");
    }
    // A hint without arguments is only a hint.
    let mut hinted = package;
    hinted["runtimeHint"] = json!("bash");
    let document = json!({"name": "a/b", "description": "", "version": "1.0.0", "packages": [hinted]});
    let plan = read(&document.to_string())
        .unwrap()
        .plan(None, &BTreeMap::new())
        .unwrap();
    assert_eq!(settings(&plan)["command"], "npx");
}

#[test]
fn images_may_be_pinned_by_their_digest() {
    let image = format!("ghcr.io/ada/x@sha256:{}", "a".repeat(64));
    for (package, expected, pinned) in [
        (
            json!({"identifier": image}),
            image.as_str(),
            "the content of the image, by its digest",
        ),
        (
            json!({"identifier": "mcp/fs", "version": "1.0.2"}),
            "mcp/fs:1.0.2",
            "the tag 1.0.2, which may move",
        ),
        (
            json!({"identifier": "ada/x", "version": "2", "registryBaseUrl": "https://ghcr.io"}),
            "ghcr.io/ada/x:2",
            "the tag 2, which may move",
        ),
    ] {
        let mut package = package;
        package["registryType"] = json!("oci");
        package["transport"] = json!({"type": "stdio"});
        package["runtimeArguments"] =
            json!([{"type": "positional", "value": "run"}, {"type": "positional", "value": "-i"}]);
        let document = json!({"name": "a/b", "description": "", "version": "1.0.0", "packages": [package]});
        let plan = read(&document.to_string())
            .unwrap()
            .plan(None, &BTreeMap::new())
            .unwrap();
        assert_eq!(settings(&plan)["args"], json!(["run", "-i", "--rm", expected]));
        assert_eq!(plan.pinned, pinned);
    }
}

#[test]
fn endpoints_are_encrypted_or_on_this_machine() {
    let url = |url: &str| {
        let remotes = json!([{"type": "streamable-http", "url": url}]);
        let document = json!({"name": "a/b", "description": "", "version": "1.0.0", "remotes": remotes});
        let plan = read(&document.to_string()).unwrap().plan(None, &BTreeMap::new());
        plan.map(|plan| settings(&plan)["url"].as_str().unwrap().to_owned())
    };
    for good in [
        "https://a.example.com/mcp",
        "http://localhost:8080/mcp",
        "http://127.0.0.1/mcp",
        "http://[::1]:1/mcp",
    ] {
        assert_eq!(url(good).unwrap(), good);
    }
    assert_eq!(
        url("https://a.example.com/${HOME}").unwrap(),
        "https://a.example.com/$${HOME}"
    );
    for bad in [
        "http://a.example.com/mcp",
        "http://localhost.example.com",
        "ftp://a",
        "http://127.0.0.1@a.example.com/",
        "",
    ] {
        assert!(url(bad).is_err(), "{bad}");
    }
}

#[test]
fn answers_of_a_registry_and_older_forms() {
    let answer = json!({"server": {"name": "a/b", "description": "x", "version": "1.0.0"}, "_meta": {}});
    assert_eq!(read(&answer.to_string()).unwrap().name, "a/b");
    let nothing = read(&answer.to_string())
        .unwrap()
        .plan(None, &BTreeMap::new())
        .unwrap_err();
    assert!(
        nothing
            .to_string()
            .contains("it has neither packages nor remote endpoints"),
        "{nothing}"
    );
    let older = json!({"name": "a/b", "description": "", "version": "1", "packages": [{"registry_type": "npm", "identifier": "x"}]});
    let error = Bundle::parse("server.json", older.to_string().as_bytes()).unwrap_err();
    assert!(error.hint().unwrap().contains("2025-09-16"), "{error:?}");
    let oldest = json!({"name": "a/b", "version_detail": {"version": "1"}});
    let error = Bundle::parse("server.json", oldest.to_string().as_bytes()).unwrap_err();
    assert!(error.hint().unwrap().contains("2025-09-16"), "{error:?}");
}
