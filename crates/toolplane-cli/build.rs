//! Has the linker put the functions that run side by side, in the order of `layout.txt`.
//!
//! A program of some twenty megabytes runs one or two of them, strewn all over it: memory holds whole pages around each.
//! `cargo xtask layout` writes the list. Where the linker takes no such order, the program is linked as ever.
#![expect(
    clippy::disallowed_methods,
    reason = "what a build script is told stands in its environment"
)]

use std::{
    env,
    error::Error,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const LAYOUT: &str = "layout.txt";
const BINARY: &str = "toolplane";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={LAYOUT}");
    // Builds for development are linked often, and nobody looks at what they take.
    if env::var("PROFILE")? != "release" || env::var("CARGO_CFG_TARGET_OS")? != "linux" {
        return Ok(());
    }
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    let script = folder.join("layout.ld");
    fs::write(&script, linker_script(&fs::read_to_string(LAYOUT)?)?)?;
    if links_with(&script, &folder)? {
        println!("cargo::rustc-link-arg-bin={BINARY}=-T{}", script.display());
    } else {
        println!(
            "cargo::warning=this linker puts functions in no order: `{BINARY}` takes some megabytes more memory"
        );
    }
    Ok(())
}

/// Adds a section to the layout that the linker has anyway, before all other code.
fn linker_script(layout: &str) -> Result<String, String> {
    let mut script = "SECTIONS {\n  .text.called : {\n".to_owned();
    for name in layout.lines().filter(|line| !line.starts_with('#')) {
        // Whatever else stands in the list must not be a command to the linker.
        let is_pattern = |byte: u8| byte.is_ascii_alphanumeric() || b"_$.*".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_pattern) {
            return Err(format!("{LAYOUT}: `{name}` is no pattern of a symbol"));
        }
        // Compilers keep what they take for unlikely apart from the rest.
        script.extend(["    *(.text.", name, " .text.unlikely.", name, ")\n"]);
    }
    script.push_str("  }\n}\nINSERT BEFORE .text;\n");
    Ok(script)
}

/// Whether the smallest of programs can be linked in this way.
fn links_with(script: &Path, folder: &Path) -> Result<bool, Box<dyn Error>> {
    let mut compiler = Command::new(env::var("RUSTC")?);
    compiler
        .args(["--crate-name=probe", "--edition=2024", "--crate-type=bin"])
        .args(["--target", &env::var("TARGET")?])
        .arg(format!("-Clink-arg=-T{}", script.display()));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        compiler.arg(format!("-Clinker={linker}"));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    compiler.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    let mut compiler = compiler
        .arg("-o")
        .arg(folder.join("probe"))
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut source) = compiler.stdin.take() {
        source.write_all(b"fn main() {}")?;
    }
    Ok(compiler.wait()?.success())
}
