//! Code as tools, called over MCP in both eras.

use serde_json::{Value, json};
use tool_testkit::Peers;

use crate::{
    binary::{Place, eventually},
    serve::Served,
    versions::{ERAS, Era, ask},
};

/// Calls a tool and returns the result.
pub(crate) fn call(served: &Served, era: Era, name: &str, arguments: Value) -> Value {
    let mut params = json!({"name": name});
    params["arguments"] = arguments;
    ask(served, era, "tools/call", params)
}

pub(crate) fn text(result: &Value) -> &str {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{result}"))
}

const TOOLS: &str = r#"
store: {sqlite: data/tools.db}
tools:
  greet:
    description: Greets in Bash.
    parameters: [{name: name, type: string, required: true}]
    executor: {kind: bash, code: 'echo "Hello, $name"'}
  add:
    description: Adds in Python.
    parameters: [{name: a, type: integer, required: true}, {name: b, type: integer, required: true}]
    output_schema: {type: object, properties: {sum: {type: integer}}, required: [sum]}
    executor:
      kind: python
      code: |
        async def run(a: int, b: int) -> dict:
            print("this goes to the log")
            if b == 0:
                raise ValueError("b is nothing")
            return {"sum": a + b}
  words:
    description: Counts words, by a file beside this one.
    parameters: [{name: text, type: string, required: true}]
    executor: {kind: python, file: words.py, files: [lib/split.py]}
"#;

#[test]
fn bash_and_python_tools_run_in_the_strongest_sandbox() {
    let place = Place::with(TOOLS);
    place.write(
        "words.py",
        "from lib.split import split\ndef run(text):\n    return len(split(text))\n",
    );
    place.write("lib/split.py", "def split(text):\n    return text.split()\n");
    let served = Served::start(&place);
    for era in ERAS {
        let greeted = call(&served, era, "greet", json!({"name": "$(id) \"Ada\""}));
        assert_eq!(text(&greeted), "Hello, $(id) \"Ada\"", "{era:?}: {greeted}");
        let sandbox = &greeted["_meta"]["dev.toolplane/sandbox"];
        assert_eq!(sandbox, &json!({"level": "bwrap", "network": "off"}), "{greeted}");
        let added = call(&served, era, "add", json!({"a": 40, "b": 2}));
        assert_eq!(added["structuredContent"], json!({"sum": 42}), "{era:?}: {added}");
        assert_eq!(added["_meta"]["dev.toolplane/sandbox"]["level"], "bwrap");
        let failed = call(&served, era, "add", json!({"a": 1, "b": 0}));
        assert_eq!(failed["isError"], true, "{failed}");
        let error = &failed["_meta"]["dev.toolplane/error"];
        assert_eq!(error["kind"], "upstream_error", "{failed}");
        assert_eq!(error["detail"]["exception"], "ValueError", "{failed}");
        assert!(text(&failed).contains("main.py:4, in run"), "{failed}");
        let counted = call(&served, era, "words", json!({"text": "one two three"}));
        assert_eq!(text(&counted), "3", "{counted}");
    }
    // A file of code is watched like the configuration.
    place.write("lib/split.py", "def split(text):\n    return list(text)\n");
    eventually("the changed code", || {
        text(&call(&served, Era::Modern, "words", json!({"text": "one"}))) == "3"
    });
}

/// Seed of tools as data: a manifest of Kiwi and its file, published while the gateway runs.
#[test]
fn code_is_published_and_called_while_the_gateway_runs() {
    let place = Place::with("store: {sqlite: data/tools.db}\n");
    let served = Served::start(&place);
    place.write(
        "tool.yaml",
        "tool_id: email_domain\ntool_type: python\nversion: 1.0.0\ndescription: Returns the domain of an address.\n\
         executor_config: {entrypoint: main.py}\nparameters: [{name: email, type: string, required: true}]\n",
    );
    let code = "async def run(email: str) -> dict:\n    return {'domain': email.split('@')[1]}\n";
    place.write("files/main.py", code);
    let published = place.run(&["tools", "publish", "tool.yaml", "--files", "files"]);
    assert_eq!(published.code, 0, "{published:?}");
    for era in ERAS {
        eventually("the published tool", || {
            let result = call(&served, era, "email_domain", json!({"email": "ada@example.com"}));
            result["structuredContent"] == json!({"domain": "example.com"})
        });
    }
    // The file beside the manifest belongs to the version, whatever becomes of it afterwards.
    place.write(
        "script.yaml",
        "tools: {shout: {version: 1.0.0, description: Shouts., executor: {kind: bash, file: shout.sh}}}",
    );
    place.write("shout.sh", "echo \"${text^^}\"");
    let published = place.run(&["tools", "publish", "script.yaml"]);
    assert_eq!(published.code, 0, "{published:?}");
    place.write("shout.sh", "echo changed");
    for era in ERAS {
        eventually("the published script", || {
            let result = call(&served, era, "shout", json!({"text": "loud"}));
            result["content"][0]["text"] == "LOUD"
        });
    }
}

#[test]
fn a_tool_of_a_store_never_runs_without_a_sandbox() {
    let place = Place::with("store: {sqlite: data/tools.db}\n");
    let unsafe_tool =
        "version: 1.0.0, description: Escapes., executor: {kind: bash, code: 'id -u', sandbox: none}";
    place.write("unsafe.yaml", format!("tools: {{escape: {{{unsafe_tool}}}}}"));
    // The operator's own file may say so.
    let own = place.run(&["--config", "unsafe.yaml", "call", "escape", "-o", "json"]);
    assert_eq!(own.code, 0, "{own:?}");
    let published = place.run(&["tools", "publish", "unsafe.yaml"]);
    assert_eq!(published.code, 2, "{published:?}");
    assert!(
        published.stderr.contains("`escape` cannot run here"),
        "{published:?}"
    );
    // A draft may wait for another gateway, where it does not run either.
    let draft = place.run(&["tools", "publish", "unsafe.yaml", "--draft"]);
    assert_eq!(draft.code, 0, "{draft:?}");
    let published = place.run(&["tools", "publish", "escape@1.0.0"]);
    assert_eq!(published.code, 2, "{published:?}");
    let stored = place.run(&["call", "escape"]);
    assert_ne!(stored.code, 0, "{stored:?}");
    assert!(!stored.stdout.contains('0'), "{stored:?}");
}

#[test]
fn problems_show_the_line_and_what_is_meant() {
    let place = Place::with(
        "tools:\n  greet:\n    description: Greets.\n    executor:\n      kind: bash\n      code: echo hi\n      limits: {memry: 1GiB}\n",
    );
    let run = place.run(&["check"]);
    assert_eq!(run.code, 2, "{run:?}");
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(
        said.contains("toolplane.yaml:7") && said.contains("did you mean `memory`?"),
        "{said}"
    );
    let place =
        Place::with("tools: {greet: {description: Greets., executor: {kind: bash, file: ../outside.sh}}}\n");
    let run = place.run(&["check"]);
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(said.contains("no path of a tool's file"), "{said}");
    let place =
        Place::with("tools: {greet: {description: Greets., executor: {kind: bash, file: none.sh}}}\n");
    let run = place.run(&["check"]);
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(said.contains("the file `none.sh` cannot be used"), "{said}");
}

/// Writes a wheel of a package with one module into the folder `wheels`.
pub(crate) fn write_wheel(place: &Place, package: &str, module: &str) {
    place.write("wheels/.keep", "");
    let script = r#"
import sys, zipfile
name, module = sys.argv[1:]
info = f"{name}-1.0.dist-info"
with zipfile.ZipFile(f"wheels/{name}-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr(f"{name}.py", module)
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
"#;
    let made = std::process::Command::new("/usr/bin/python3")
        .args(["-c", script, package, module])
        .current_dir(place.path())
        .status();
    assert!(made.unwrap().success());
}

/// Configuration with a tool that requires the package of [`write_wheel`].
const REQUIRING: &str = "
store: {sqlite: data/tools.db}
tools:
  twice:
    version: 1.0.0
    description: Doubles a number.
    parameters: [{name: n, type: integer, required: true}]
    executor:
      kind: python
      requires: [tiny]
      code: |
        import tiny
        def run(n):
            return {'twice': tiny.double(n)}
";

#[test]
fn packages_are_locked_once_and_only_those_are_installed() {
    let place = Place::with(REQUIRING);
    let wheels = place.path().join("wheels").display().to_string();
    let place = place
        .variable("PIP_NO_INDEX", "1")
        .variable("PIP_FIND_LINKS", &wheels)
        .variable("PIP_CONFIG_FILE", "/dev/null");
    only_locked_packages_are_installed(&place);
}

#[test]
fn uv_locks_and_installs_the_same() {
    let uv = match Peers::from_env().and_then(|peers| peers.uv()) {
        Ok(uv) => uv,
        Err(skip) => return skip.report(),
    };
    let place = Place::with(REQUIRING);
    let [wheels, programs] = ["wheels", "programs"].map(|name| place.path().join(name));
    place.write("programs/.keep", "");
    std::os::unix::fs::symlink(uv, programs.join("uv")).unwrap();
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let place = place
        .variable("PATH", &path)
        .variable("UV_OFFLINE", "1")
        .variable("UV_FIND_LINKS", &wheels.display().to_string())
        .variable("UV_NO_CONFIG", "1")
        // With pip, nothing is found.
        .variable("PIP_NO_INDEX", "1")
        .variable("PIP_CONFIG_FILE", "/dev/null");
    only_locked_packages_are_installed(&place);
}

fn only_locked_packages_are_installed(place: &Place) {
    write_wheel(place, "tiny", "def double(n):\n    return 2 * n\n");
    let unlocked = place.run(&["call", "twice", "n=21"]);
    assert_eq!(unlocked.code, 6, "{unlocked:?}");
    assert!(unlocked.stderr.contains("run `toolplane lock`"), "{unlocked:?}");
    let checked = place.run(&["lock", "--check"]);
    assert_eq!(checked.code, 7, "{checked:?}");
    let locked = place.run(&["lock"]);
    assert_eq!(locked.code, 0, "{locked:?}");
    let lock = std::fs::read_to_string(place.path().join("twice.requirements.lock")).unwrap();
    assert!(
        lock.contains("tiny==1.0") && lock.contains("--hash=sha256:"),
        "{lock}"
    );
    let served = Served::start(place);
    for era in ERAS {
        let result = call(&served, era, "twice", json!({"n": 21}));
        assert_eq!(
            result["structuredContent"],
            json!({"twice": 42}),
            "{era:?}: {result}"
        );
    }
    // Another file under the locked name and version is not installed.
    let other = lock.replace(&lock[lock.len() - 10..lock.len() - 2], "00000000");
    place.write("twice.requirements.lock", other);
    let refused = place.run(&["call", "twice", "n=21"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.stderr.contains("cannot be installed"), "{refused:?}");
    // A version brings its lock along.
    place.write("twice.requirements.lock", lock);
    let published = place.run(&["tools", "publish", "toolplane.yaml"]);
    assert_eq!(published.code, 0, "{published:?}");
    place.write("toolplane.yaml", "store: {sqlite: data/tools.db}\n");
    let stored = place.run(&["call", "twice", "n=4", "-o", "json"]);
    assert_eq!(stored.code, 0, "{stored:?}");
    assert!(stored.stdout.contains('8'), "{stored:?}");
}

#[test]
fn the_example_works_as_written() {
    let place = Place::empty();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/code/toolplane.yaml");
    let run = |arguments: &[&str]| place.run(&[&["--config", example], arguments].concat());
    assert_eq!(run(&["check"]).code, 0, "{:?}", run(&["check"]));
    assert_eq!(
        run(&["lock", "--check"]).code,
        3,
        "its packages are locked; it has no lock file"
    );
    let shouted = run(&["call", "shout", "text=hello"]);
    assert_eq!(shouted.stdout.trim(), "HELLO!", "{shouted:?}");
    let counted = run(&["call", "word_count", "text=one two Two", "-o", "json"]);
    let counted: Value = serde_json::from_str(&counted.stdout).unwrap_or_else(|_| panic!("{counted:?}"));
    assert!(counted.to_string().contains(r#"{"one":1,"two":2}"#), "{counted}");
}
