//! Release build: built twice, the second time with a profile of the first build.
//!
//! Profile-guided optimization, as described in the rustc book: an instrumented program is trained by
//! `toolplane-train`, and the compiler optimizes the second program by the counts. The instrumented program also
//! records the order in which its functions were first executed (`llvm-profdata` calls this temporal profiling), and
//! the linker places the functions of the second program in this order. Executed functions are then adjacent, so each
//! call fetches less of the program and less of it is in memory; `docs/notes/performance.md` has the figures.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::build::program::{build, build_by, executable};
use crate::dist::symbols::{sizes, split};
use crate::peers::install_package;
use crate::support::console::say;
use crate::support::process::{cargo, find, output, run};
use crate::support::repository::Repository;

/// Name of the shipped program.
const PROGRAM: &str = "toolplane";

/// First version of the GNU C library that reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

/// Target for which rustc links with LLVM's linker by default. This linker accepts an order of functions.
const LINKED_BY_LLVM: &str = "x86_64-unknown-linux-gnu";

/// Prefix of the line before the functions of one process.
const TRACE: &str = "Temporal Profile Trace ";

/// Separator between the flags in cargo's variable for encoded flags.
const BETWEEN_FLAGS: &str = "\u{1f}";

/// Builds the program with a profile of its own calls into `target/release-profile`, splits it from its symbols, and
/// returns its path.
///
/// # Errors
/// Returns an error if the tool that reads profiles cannot be installed, or if a build or the training fails.
pub fn release(repository: &Repository) -> Result<PathBuf> {
    let trainer = build(
        repository,
        &["--package", "toolplane-tests", "--bin", "toolplane-train"],
    )?;
    let trainer = executable(&trainer, "toolplane-train")?;
    let compiler = Compiler::find()?;
    let reader = compiler.profile_reader()?;
    let folder = repository.target().join("release-profile");
    let counts = folder.join("counts");
    clear(&counts)?;

    say("release: 1 of 3: building the program with counters (10 minutes on two cores) ...");
    let mut counting = OsString::from("-Cprofile-generate=");
    counting.push(&counts);
    let order = "-Cllvm-args=-pgo-temporal-instrumentation";
    let counting = compiler.build(repository, &[counting, order.into(), "-Cdebuginfo=0".into()])?;

    say("release: 2 of 3: training it ...");
    run(Command::new(&trainer)
        // One file for each process: recorded orders cannot be merged while the processes run.
        .env("LLVM_PROFILE_FILE", counts.join("%p.profraw"))
        .arg(&counting))?;
    let profile = folder.join("calls.profdata");
    run(Command::new(&reader)
        .args(["merge", "--output"])
        .args([&profile, &counts]))?;
    let traces = output(
        Command::new(reader)
            .args(["show", "--temporal-profile-traces"])
            .arg(&profile),
    )?;
    let order = folder.join("calls.order");
    fs::write(&order, order_of_use(&traces))
        .with_context(|| format!("failed to write `{}`", order.display()))?;

    say("release: 3 of 3: building it by the profile (10 minutes) ...");
    let mut by_profile = OsString::from("-Cprofile-use=");
    by_profile.push(&profile);
    let built = compiler.build(
        repository,
        &[vec![by_profile], compiler.link_flags(&order)].concat(),
    )?;
    let shipped = split(&built, &folder)?;
    say(format_args!(
        "release: `{}` is built: {}",
        shipped.program.display(),
        sizes(&shipped)?
    ));
    Ok(shipped.program)
}

fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
    }
    Ok(())
}

/// Returns the executed functions, one a line, from the traces in the output of `llvm-profdata show`: first those of
/// the process that executed the most functions, in order from its start, and then those that only other processes
/// executed.
///
/// `llvm-profdata order` balances all traces against each other; with its order, an idle gateway takes half a
/// megabyte more memory.
fn order_of_use(said: &str) -> String {
    let mut traces: Vec<Vec<&str>> = Vec::new();
    for line in said.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with(TRACE) {
            traces.push(Vec::new());
        } else if let Some(trace) = traces.last_mut() {
            // The name of a function that is not visible outside of its module is prefixed with the module's name.
            trace.push(line.rsplit(';').next().unwrap_or(line));
        }
    }
    traces.sort_by_key(|trace| std::cmp::Reverse(trace.len()));
    let mut seen = HashSet::new();
    let mut order = String::new();
    for function in traces.into_iter().flatten() {
        if seen.insert(function) {
            order.push_str(function);
            order.push('\n');
        }
    }
    order
}

/// Compiler that cargo uses for this workspace.
#[derive(Debug, PartialEq, Eq)]
struct Compiler {
    /// Machine that the compiler runs on and builds for.
    host: String,
    /// Major version of its LLVM. A profile must be read by a tool of the same version.
    llvm: u32,
    sysroot: PathBuf,
}

impl Compiler {
    fn find() -> Result<Self> {
        let rustc = || Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        let sysroot = output(rustc().args(["--print", "sysroot"]))?;
        Self::from_words(&output(rustc().arg("-vV"))?, sysroot.trim())
    }

    /// Parses the output of `rustc -vV`.
    fn from_words(said: &str, sysroot: &str) -> Result<Self> {
        let value = |key: &str| {
            said.lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
                .with_context(|| format!("`rustc -vV` does not say its `{key}`"))
        };
        let llvm = value("LLVM version")?;
        Ok(Self {
            host: value("host")?.to_owned(),
            llvm: major(llvm).with_context(|| format!("`{llvm}` is no version"))?,
            sysroot: PathBuf::from(sysroot),
        })
    }

    /// Returns an `llvm-profdata` that reads the profiles of this compiler's programs: rustup's, or the system's.
    fn profile_reader(&self) -> Result<PathBuf> {
        let of_rustup = self
            .sysroot
            .join("lib/rustlib")
            .join(&self.host)
            .join("bin/llvm-profdata");
        let versioned = format!("llvm-profdata-{}", self.llvm);
        let found = || {
            let of_system = [find(&versioned), find("llvm-profdata")];
            of_system
                .into_iter()
                .flatten()
                .chain([of_rustup.clone()])
                .find(|program| self.is_right(program))
        };
        if let Some(program) = found() {
            return Ok(program);
        }
        let package = format!("llvm-{}", self.llvm);
        let installed = install_package("release", &package);
        match found() {
            Some(program) => Ok(program),
            None => {
                let reason = installed.err().map(|error| format!(" ({error:#})"));
                bail!(
                    "there is no `llvm-profdata` of LLVM {}: `rustup component add llvm-tools` brings it{}",
                    self.llvm,
                    reason.unwrap_or_default()
                )
            }
        }
    }

    fn is_right(&self, program: &Path) -> bool {
        output(Command::new(program).arg("--version")).is_ok_and(|said| version(&said) == Some(self.llvm))
    }

    /// Returns the linker flags of the shipped program, as far as the machine supports them: LLVM's linker places the
    /// functions in this order, and relocations are packed (`DT_RELR` of the generic ABI) if the C library reads
    /// them. Unpacked relocations take a megabyte, which every start reads.
    fn link_flags(&self, order: &Path) -> Vec<OsString> {
        let mut flags = Vec::new();
        if self.host == LINKED_BY_LLVM {
            let mut in_order = OsString::from("-Clink-arg=--symbol-ordering-file=");
            in_order.push(order);
            let to_linker = || OsString::from("-Clink-arg=-Xlinker");
            // Some of the executed functions are inlined in the second program.
            let quietly = "-Clink-arg=--no-warn-symbol-ordering".into();
            flags.extend([to_linker(), in_order, to_linker(), quietly]);
        }
        let said = output(Command::new("getconf").arg("GNU_LIBC_VERSION"));
        let reads_packed = said.is_ok_and(|said| library(&said) >= Some(PACKED_SINCE));
        if self.host.ends_with("-linux-gnu") && reads_packed {
            flags.push("-Clink-arg=-Wl,-z,pack-relative-relocs".into());
        }
        flags
    }

    /// Builds the program with extra flags for the compiler.
    ///
    /// The target is named explicitly, so that build scripts and macros, which run on this machine, do not get the
    /// flags.
    fn build(&self, repository: &Repository, flags: &[OsString]) -> Result<PathBuf> {
        let mut command = cargo(repository.root());
        command.env("CARGO_ENCODED_RUSTFLAGS", encoded(flags));
        let what = ["--package", "toolplane-cli", "--bin", PROGRAM];
        let target = repository.target().join("release-profile/build");
        let target = target.to_str().context("the path of the checkout is no UTF-8")?;
        let how = ["--release", "--target", &self.host, "--target-dir", target];
        let built = build_by(command, &[&what[..], &how].concat())?;
        executable(&built, PROGRAM)
    }
}

/// Encodes the flags from the environment followed by these flags.
fn encoded(flags: &[OsString]) -> OsString {
    let words = |flags: OsString| -> Vec<OsString> {
        let flags = flags.to_string_lossy();
        flags.split_whitespace().map(OsString::from).collect()
    };
    let given = std::env::var_os("CARGO_ENCODED_RUSTFLAGS").filter(|flags| !flags.is_empty());
    let given = given.map(|flags| vec![flags]);
    let given = given.or_else(|| std::env::var_os("RUSTFLAGS").map(words));
    let all = [given.unwrap_or_default(), flags.to_vec()].concat();
    all.join(OsStr::new(BETWEEN_FLAGS))
}

/// Returns the first number after `LLVM version` in the version output of an LLVM tool.
fn version(said: &str) -> Option<u32> {
    major(said.split_once("LLVM version ")?.1)
}

/// Returns the version in the output of `getconf GNU_LIBC_VERSION`.
fn library(said: &str) -> Option<(u32, u32)> {
    let (first, rest) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((first.parse().ok()?, major(rest)?))
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_stand_in_the_order_of_the_process_that_did_most() {
        let said = "Total functions: 9\nTemporal Profile Traces (samples=2 seen=2):\n  Temporal Profile Trace 0 (weight=1 count=2):\n    main\n    only_here\n\n  Temporal Profile Trace 1 (weight=1 count=3):\n    main\n    a.1-cgu.0;serve\n    call\n\n";
        assert_eq!(order_of_use(said), "main\nserve\ncall\nonly_here\n");
        assert_eq!(order_of_use("Total functions: 9\n"), "");
    }

    #[test]
    fn a_profile_is_read_by_the_compilers_llvm() {
        let said = "rustc 1.95.0 (abc 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\nrelease: 1.95.0\nLLVM version: 22.1.2\n";
        let compiler = Compiler::from_words(said, "/rust").unwrap();
        assert_eq!(compiler.host, "x86_64-unknown-linux-gnu");
        assert_eq!(compiler.llvm, 22);
        assert_eq!(
            version("Debian LLVM version 22.1.8\n  Optimized build."),
            Some(22)
        );
        assert_eq!(
            version("LLVM (http://llvm.org/):\n  LLVM version 14.0.6"),
            Some(14)
        );
        assert_eq!(version("no version"), None);
        assert_eq!(library("glibc 2.36\n"), Some((2, 36)));
        assert_eq!(library("glibc 2.36.9"), Some((2, 36)));
        assert_eq!(library("musl 1.2"), None);
        let error = Compiler::from_words("rustc 1.95.0\nhost: x", "/rust").unwrap_err();
        assert_eq!(error.to_string(), "`rustc -vV` does not say its `LLVM version`");
    }
}
