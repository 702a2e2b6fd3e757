//! Headers of the program: the machine it is for, and the libraries it needs.

use anyhow::{Context, Result, bail};
use object::elf::{DT_NEEDED, EM_AARCH64, EM_X86_64};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object};

/// First version of the GNU C library that reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

/// Kind of processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    /// Returns the name that the compiler and PyPI use.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Returns the name that Debian and OCI use.
    pub(super) fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Returns the name that Node uses: `process.arch`.
    pub(super) fn node(self) -> &'static str {
        match self {
            Self::X86_64 => "x64",
            Self::Aarch64 => "arm64",
        }
    }
}

/// Facts about a program for Linux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binary {
    pub(super) machine: Machine,
    /// Path of the loader. `None` for a program that is linked statically.
    pub(super) interpreter: Option<String>,
    /// Names of the libraries that are loaded at the start.
    pub(super) libraries: Vec<String>,
    /// Versions of symbols, such as `GLIBC_2.34`.
    pub(super) versions: Vec<String>,
    /// `true` if the program contains symbols.
    pub(super) has_symbols: bool,
}

impl Binary {
    /// Reads the headers of a program.
    pub(super) fn read(data: &[u8]) -> Result<Self> {
        let file = ElfFile64::<LittleEndian>::parse(data)
            .context("the program is no ELF file of 64 bits: packages are made of programs for Linux")?;
        let endian = file.endian();
        let machine = match file.elf_header().e_machine(endian) {
            EM_X86_64 => Machine::X86_64,
            EM_AARCH64 => Machine::Aarch64,
            other => bail!("the program is for an unknown machine, {other:?}; known are x86_64 and aarch64"),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut interpreter = None;
        for segment in file.elf_program_headers() {
            interpreter = interpreter.or(segment.interpreter(endian, data)?.map(text));
        }
        let dynamic = file.elf_dynamic_table()?;
        let mut libraries = Vec::new();
        for entry in dynamic.iter().filter(|entry| entry.tag == DT_NEEDED) {
            libraries.push(text(dynamic.string(entry)?));
        }
        let sections = file.elf_section_table();
        let mut versions = Vec::new();
        if let Some((needs, strings)) = sections.gnu_verneed(endian, data)? {
            let strings = sections.strings(endian, data, strings)?;
            for need in needs {
                for version in need?.1 {
                    versions.push(text(version?.name(endian, strings)?));
                }
            }
        }
        versions.sort();
        versions.dedup();
        Ok(Self {
            machine,
            interpreter,
            libraries,
            versions,
            has_symbols: file.section_by_name(".symtab").is_some(),
        })
    }

    /// Returns the name of the target that the compiler uses.
    pub(super) fn target(&self) -> String {
        let library = if self.is_gnu() { "gnu" } else { "musl" };
        format!("{}-unknown-linux-{library}", self.machine.name())
    }

    /// Returns `true` if the program is loaded by the GNU C library.
    pub(super) fn is_gnu(&self) -> bool {
        let loader = self.interpreter.as_deref().unwrap_or("ld-musl");
        !loader.contains("ld-musl")
    }

    /// Returns the oldest version of the GNU C library that runs the program.
    pub(super) fn glibc(&self) -> Result<(u32, u32)> {
        let mut newest = (2, 0);
        for version in &self.versions {
            let Some(number) = version.strip_prefix("GLIBC_") else {
                continue;
            };
            let parsed = match number {
                "ABI_DT_RELR" => Some(PACKED_SINCE),
                _ => pair(number),
            };
            let parsed = parsed.with_context(|| {
                format!("the program needs `{version}`, which no release of the GNU C library promises")
            })?;
            newest = newest.max(parsed);
        }
        Ok(newest)
    }
}

/// Parses the first two numbers of a version.
fn pair(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needing(versions: &[&str]) -> Binary {
        Binary {
            machine: Machine::X86_64,
            interpreter: Some("/lib64/ld-linux-x86-64.so.2".to_owned()),
            libraries: Vec::new(),
            versions: versions.iter().map(ToString::to_string).collect(),
            has_symbols: false,
        }
    }

    #[test]
    fn the_newest_symbol_decides_on_the_c_library() {
        let glibc = |versions: &[&str]| needing(versions).glibc().unwrap();
        assert_eq!(
            glibc(&["GCC_4.2.0", "GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.9"]),
            (2, 34)
        );
        assert_eq!(glibc(&["GLIBC_2.34", "GLIBC_ABI_DT_RELR"]), (2, 36));
        let error = needing(&["GLIBC_PRIVATE"]).glibc().unwrap_err();
        assert!(error.to_string().contains("needs `GLIBC_PRIVATE`"), "{error}");
    }

    #[test]
    fn a_program_without_a_loader_is_static() {
        assert_eq!(needing(&[]).target(), "x86_64-unknown-linux-gnu");
        let mut program = needing(&[]);
        program.interpreter = None;
        assert_eq!(program.target(), "x86_64-unknown-linux-musl");
        program.interpreter = Some("/lib/ld-musl-x86_64.so.1".to_owned());
        assert!(!program.is_gnu());
    }

    #[test]
    fn other_files_are_refused() {
        let error = Binary::read(b"#!/bin/sh\n").unwrap_err();
        assert!(error.to_string().contains("no ELF file of 64 bits"), "{error}");
    }
}
