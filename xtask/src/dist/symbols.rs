//! Splits a program from its symbols, so that users download the code alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::elf::Binary;
use crate::peers::install_package;
use crate::support::process::{find, run_quietly};

/// Program without symbols, and its symbols.
#[derive(Clone, Debug)]
pub(crate) struct SplitProgram {
    pub(crate) program: PathBuf,
    /// File of the symbols. `None` if the program had none, and none are beside it.
    pub(crate) symbols: Option<PathBuf>,
}

/// Writes a program without symbols into a folder, and its symbols beside it as `NAME.debug`.
///
/// The program names that file in `.gnu_debuglink`, so that the standard library of Rust (backtraces), gdb and perf find it.
/// Cargo's own ways are not enough: `strip` drops the symbols, and with `split-debuginfo` those of the standard library stay in
/// the program. A program that has no symbols is copied, with the file that already stands beside it.
pub(crate) fn split(program: &Path, folder: &Path) -> Result<SplitProgram> {
    let name = program
        .file_name()
        .with_context(|| format!("`{}` is no program", program.display()))?;
    let mut symbols_name = name.to_owned();
    symbols_name.push(".debug");
    let data = fs::read(program).with_context(|| format!("failed to read `{}`", program.display()))?;
    fs::create_dir_all(folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
    let (stripped, symbols) = (folder.join(name), folder.join(&symbols_name));
    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to)
            .map(drop)
            .with_context(|| format!("failed to copy `{}` to `{}`", from.display(), to.display()))
    };
    if !Binary::read(&data)?.has_symbols {
        copy(program, &stripped)?;
        let beside = program.with_file_name(&symbols_name);
        let symbols = match beside.is_file() {
            true => copy(&beside, &symbols).map(|()| Some(symbols))?,
            false => None,
        };
        return Ok(SplitProgram {
            program: stripped,
            symbols,
        });
    }
    if find("objcopy").is_none() {
        install_package("dist", "binutils")?;
    }
    run_quietly(
        Command::new("objcopy")
            .arg("--only-keep-debug")
            .args([program, &symbols]),
    )?;
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(&symbols);
    run_quietly(
        Command::new("objcopy")
            .arg("--strip-all")
            .arg(link)
            .args([program, &stripped]),
    )?;
    Ok(SplitProgram {
        program: stripped,
        symbols: Some(symbols),
    })
}

/// Returns the sizes of a program without its symbols and of the symbols, in a sentence.
pub(crate) fn sizes(split: &SplitProgram) -> Result<String> {
    let size = |path: &Path| -> Result<f64> {
        let file = fs::metadata(path).with_context(|| format!("failed to read `{}`", path.display()))?;
        Ok(file.len() as f64 / 1e6)
    };
    let program = size(&split.program)?;
    Ok(match &split.symbols {
        Some(symbols) => {
            let symbols = size(symbols)?;
            let together = program + symbols;
            format!("{program:.1} MB without symbols, which take {symbols:.1} MB ({together:.1} MB together)")
        }
        None => format!("{program:.1} MB, without symbols"),
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::support::process::output;

    /// Function whose line a backtrace shows. The backtrace is printed by the standard library.
    const SOURCE: &str = "#[inline(never)]\nfn deep() {\n    eprintln!();\n    println!(\"{}\", std::backtrace::Backtrace::force_capture());\n}\nfn main() {\n    deep();\n}\n";

    #[test]
    fn backtraces_have_lines_with_the_symbols_beside_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("traced.rs");
        let built = folder.path().join("traced");
        fs::write(&source, SOURCE).unwrap();
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        run_quietly(
            Command::new(rustc)
                .arg("-Cdebuginfo=line-tables-only")
                .args([&source])
                .arg("-o")
                .arg(&built),
        )
        .unwrap();

        let split = split(&built, &folder.path().join("split")).unwrap();
        let traced = || output(&mut Command::new(&split.program)).unwrap();
        let size = |path: &Path| fs::metadata(path).unwrap().len();
        assert!(size(&split.program) < size(&built) / 2);
        assert!(traced().contains("traced.rs:4"), "{}", traced());

        let symbols = split.symbols.clone().unwrap();
        assert!(sizes(&split).unwrap().contains("without symbols, which take"));
        // A stripped program keeps its symbols when it is split again.
        let again = super::split(&split.program, &folder.path().join("again")).unwrap();
        assert_eq!(
            fs::read(again.symbols.unwrap()).unwrap(),
            fs::read(&symbols).unwrap()
        );
        fs::remove_file(symbols).unwrap();
        assert!(!traced().contains("traced.rs"), "{}", traced());
    }
}
