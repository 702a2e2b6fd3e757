//! Which functions of the program run, so that its linker puts them side by side: the list that the build script of
//! `toolplane-cli` reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use mcp_wire::{Revision, meta_key, method};
use raw_json::RawJson;

use crate::console::say;
use crate::process::{cargo, find, output, run, run_quietly};
use crate::repository::Repository;

const LIST: &str = "crates/toolplane-cli/layout.txt";
const HEAD: &str = "\
# The functions that run while the program starts and serves calls, those of every call first: as patterns, since their
# names end in a hash. Written by `cargo xtask layout`, read by `build.rs`.
";
/// What the list is made from.
const BUILT: [&[&str]; 2] = [
    &["--package", "toolplane-cli", "--bin", "toolplane"],
    &["--package", "mcp-server", "--example", "echo"],
];
/// How many calls of each kind are made: what runs as often runs in each.
const CALLS: u64 = 100;
/// How long a program may take to listen, in tenths of a second; under valgrind it takes seconds.
const START: u32 = 600;

/// Writes the list anew: builds the program, runs it under valgrind behind clients of both eras, with an upstream over HTTP
/// and one over stdio, and notes which functions ran.
///
/// # Errors
/// When something cannot be built, valgrind is not there, or a call has a wrong answer.
pub fn layout(repository: &Repository) -> Result<()> {
    for program in ["valgrind", "nm"] {
        ensure!(
            find(program).is_some(),
            "`{program}` is not there: install the package that brings it (valgrind, binutils)"
        );
    }
    for package in BUILT {
        run(cargo(repository.root())
            .args(["build", "--release"])
            .args(package))?;
    }
    let built = built(repository)?;
    let (toolplane, echo) = (built.join("toolplane"), built.join("examples/echo"));
    let folder = repository.target().join("layout");
    fs::create_dir_all(&folder)?;
    let mut ran = Ran::default();
    for upstream in ["http", "stdio"] {
        say(format_args!(
            "layout: {CALLS} calls of each era, with an upstream over {upstream} ..."
        ));
        let profile = folder.join(format!("{upstream}.out"));
        observe(&toolplane, &echo, upstream, &profile)?;
        ran.read(&fs::read_to_string(&profile)?);
    }
    let list = list(&ran, &sizes(&toolplane)?);
    say(format_args!("layout: {} patterns in `{LIST}`", list.len()));
    fs::write(
        repository.root().join(LIST),
        format!("{HEAD}{}\n", list.join("\n")),
    )?;
    Ok(())
}

/// Where cargo puts what it builds.
fn built(repository: &Repository) -> Result<PathBuf> {
    let metadata = output(cargo(repository.root()).args(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let target = metadata["target_directory"]
        .as_str()
        .context("cargo names no target folder")?;
    Ok(Path::new(target).join("release"))
}

/// Runs the program with an upstream and clients of both eras, and has what ran written to `profile`.
fn observe(toolplane: &Path, echo: &Path, upstream: &str, profile: &Path) -> Result<()> {
    let (own, gateway) = (free()?, free()?);
    let (server, entry) = match upstream {
        "http" => (
            Some(Program::start(Command::new(echo).arg(own.to_string()), own)?),
            serde_json::json!({ "url": format!("http://{own}/mcp") }),
        ),
        _ => (
            None,
            serde_json::json!({ "command": echo.to_string_lossy(), "args": ["stdio"] }),
        ),
    };
    let config = profile.with_extension("json");
    let text = serde_json::json!({ "mcpServers": { "up": entry } });
    fs::write(&config, text.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--demangle=no"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(toolplane)
        .args(["serve", "--http", &gateway.to_string(), "--config"])
        .arg(&config);
    let program = Program::start(&mut valgrind, gateway)?;
    clients(gateway)?;
    // What ran is written when it ends.
    program.end()?;
    server.map_or(Ok(()), Program::end)
}

/// Asks for the tools and calls one, as clients of both eras.
fn clients(gateway: SocketAddr) -> Result<()> {
    let mut stream = BufReader::new(TcpStream::connect(gateway)?);
    let meta = RawJson::object().with_members(&[
        (
            meta_key::PROTOCOL_VERSION,
            RawJson::from(Revision::LATEST.as_str()),
        ),
        (
            meta_key::CLIENT_INFO,
            RawJson::parse(r#"{"name":"layout","version":"1"}"#)?,
        ),
        (meta_key::CLIENT_CAPABILITIES, RawJson::object()),
    ])?;
    let call = format!(
        r#"{{"name":"up__echo","arguments":{{"payload":"{}"}}}}"#,
        "x".repeat(100)
    );
    for (method, name, params) in [
        (method::TOOLS_LIST, "", RawJson::object()),
        (
            method::TOOLS_CALL,
            "mcp-name: up__echo\r\n",
            RawJson::parse(call)?,
        ),
    ] {
        let modern = params.with_members(&[("_meta", meta.clone())])?;
        for (revision, params) in [(Revision::LATEST_LEGACY, params), (Revision::LATEST, modern)] {
            for id in 0..CALLS {
                let head = format!(
                    "POST /mcp HTTP/1.1\r\nhost: {gateway}\r\nmcp-protocol-version: {revision}\r\nmcp-method: {method}\r\n{name}"
                );
                let answer = exchange(
                    &mut stream,
                    &head,
                    &mcp_wire::request(id, method, &(&params).into()),
                )?;
                ensure!(
                    answer.contains(r#""result""#),
                    "`{method}` of {revision} was answered with {answer}"
                );
            }
        }
    }
    Ok(())
}

/// Sends a message and returns the body of the answer.
fn exchange(stream: &mut BufReader<TcpStream>, head: &str, message: &[u8]) -> Result<String> {
    let rest = format!(
        "content-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
        message.len()
    );
    let request = [head.as_bytes(), rest.as_bytes(), message].concat();
    stream.get_mut().write_all(&request)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        ensure!(
            stream.read_line(&mut line)? > 0,
            "the gateway closed the connection"
        );
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse()?;
            }
            None if line.trim().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(String::from_utf8(body)?)
}

/// An address where nobody listens.
fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// A process that was started here; it ends with this.
struct Program(Child);

impl Program {
    /// Starts it and waits until it listens.
    fn start(command: &mut Command, address: SocketAddr) -> Result<Self> {
        let quiet = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut program = Self(quiet.spawn().context("a program does not start")?);
        for _ in 0..START {
            if TcpStream::connect(address).is_ok() {
                return Ok(program);
            }
            if let Some(status) = program.0.try_wait()? {
                bail!("a program ended with {status} before it listened");
            }
            thread::sleep(Duration::from_millis(100));
        }
        bail!("a program does not listen on {address}")
    }

    /// Asks it to end, and waits until it has.
    fn end(mut self) -> Result<()> {
        run_quietly(Command::new("kill").arg(self.0.id().to_string()))?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The functions that ran, in the order in which the profile names them, and how often each was called.
#[derive(Default)]
struct Ran {
    names: Vec<String>,
    n_calls: BTreeMap<String, u64>,
}

impl Ran {
    /// Reads a profile in the format of callgrind: `fn=(3) name`, later `fn=(3)`; `cfn=` for what is called, and behind it
    /// `calls=` with their number.
    fn read(&mut self, profile: &str) {
        let mut by_number = BTreeMap::new();
        let mut called = None;
        for line in profile.lines() {
            if let Some(count) = line.strip_prefix("calls=") {
                let count = count.split(' ').next().and_then(|count| count.parse().ok());
                if let Some(name) = called.take() {
                    *self.n_calls.entry(name).or_default() += count.unwrap_or(0_u64);
                }
                continue;
            }
            let (is_called, function) = match (line.strip_prefix("fn="), line.strip_prefix("cfn=")) {
                (Some(function), _) => (false, function),
                (_, Some(function)) => (true, function),
                _ => continue,
            };
            let (number, name) = function.split_once(' ').unwrap_or((function, ""));
            if !name.is_empty() {
                // Behind the quote stands how deep it calls itself.
                let name = name.split('\'').next().unwrap_or(name).to_owned();
                by_number.insert(number, name);
            }
            if let Some(name) = by_number.get(number) {
                if !self.n_calls.contains_key(name) {
                    self.n_calls.insert(name.clone(), 0);
                    self.names.push(name.clone());
                }
                called = is_called.then(|| name.clone());
            }
        }
    }
}

/// How many bytes each function of the program takes.
fn sizes(program: &Path) -> Result<BTreeMap<String, u64>> {
    let symbols = output(
        Command::new("nm")
            .args(["--print-size", "--defined-only"])
            .arg(program),
    )?;
    let mut sizes = BTreeMap::new();
    for line in symbols.lines() {
        if let [_, size, "t" | "T" | "w" | "W", name] = line.split(' ').collect::<Vec<_>>()[..] {
            sizes.insert(name.to_owned(), u64::from_str_radix(size, 16)?);
        }
    }
    Ok(sizes)
}

/// The patterns of the functions that ran, those of every call first. One that fits much that did not run is left out:
/// functions of the same name differ in their hash alone.
fn list(ran: &Ran, sizes: &BTreeMap<String, u64>) -> Vec<String> {
    let mut all = BTreeMap::<String, u64>::new();
    for (name, size) in sizes {
        *all.entry(pattern(name)).or_default() += size;
    }
    let is_of_every_call = |name: &&String| ran.n_calls.get(*name).is_some_and(|count| *count >= CALLS);
    let in_program = ran.names.iter().filter(|name| sizes.contains_key(*name));
    let (often, seldom): (Vec<_>, Vec<_>) = in_program.partition(is_of_every_call);
    let mut listed = BTreeSet::new();
    let mut list = Vec::new();
    for names in [often, seldom] {
        let mut used = BTreeMap::<String, u64>::new();
        for name in &names {
            *used.entry(pattern(name)).or_default() += sizes[*name];
        }
        for name in names.into_iter().map(|name| pattern(name)) {
            if all[&name] - used[&name] <= MOST_WASTED && listed.insert(name.clone()) {
                list.push(name);
            }
        }
    }
    list
}

/// How many bytes a pattern may fit that did not run: what memory holds at least around a function that stands elsewhere.
const MOST_WASTED: u64 = 64 * 1024;

/// A symbol without what changes from build to build: the hash at the end (`17h` and 16 digits), and those that tell crates
/// apart (`Cs` and some letters) in the names of the standard library.
fn pattern(symbol: &str) -> String {
    const HASH: &str = "17h";
    match (symbol.rfind(HASH), symbol.strip_prefix("_R")) {
        (Some(at), None) if symbol.len() >= at + HASH.len() + 16 => {
            format!("{}*", &symbol[..at + HASH.len()])
        }
        (_, Some(rest)) => {
            let mut parts = rest.split("Cs");
            let mut pattern = format!("_R{}", parts.next().unwrap_or_default());
            for part in parts {
                match part.split_once('_') {
                    Some((_, behind)) => pattern.extend(["Cs*_", behind]),
                    None => pattern.extend(["Cs", part]),
                }
            }
            pattern
        }
        _ => symbol.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_is_left_out_of_names() {
        for (symbol, expected) in [
            ("mi_malloc", "mi_malloc"),
            (
                "_ZN5tokio7runtime4poll17h0123456789abcdefE",
                "_ZN5tokio7runtime4poll17h*",
            ),
            (
                "_ZN5tokio7runtime4poll17h0123456789abcdefE.llvm.12",
                "_ZN5tokio7runtime4poll17h*",
            ),
            (
                "_RNvXsd_NtNtNtCsgEmfK2I1SDS_4core3fmt3num3imp",
                "_RNvXsd_NtNtNtCs*_4core3fmt3num3imp",
            ),
        ] {
            assert_eq!(pattern(symbol), expected);
        }
    }

    #[test]
    fn what_runs_with_every_call_comes_first_and_what_fits_too_much_not_at_all() {
        let mut ran = Ran::default();
        ran.read(
            "fn=(1) start\n1 2\ncfn=(2) often\ncalls=60 0\n1 2\ncfn=(3) _ZN4wide17h0000000000000001E\ncalls=1 0\n\
             fn=(4) other\n1 2\ncfn=(2)\ncalls=40 0\n1 1\ncfn=(2)'2\ncalls=1 0\nfn=(5) elsewhere\n1 1\n",
        );
        assert_eq!(ran.n_calls["often"], 100);
        let sizes = [
            ("start", 10),
            ("often", 5000),
            ("other", 10),
            ("_ZN4wide17h0000000000000001E", 10),
            ("_ZN4wide17h0000000000000002E", 70_000),
            ("never", 10),
        ];
        let sizes = sizes
            .into_iter()
            .map(|(name, size)| (name.to_owned(), size))
            .collect();
        assert_eq!(list(&ran, &sizes), ["often", "start", "other"]);
    }
}
