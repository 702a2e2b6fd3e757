//! Wheel for PyPI that contains the program as a script.
//!
//! Formats: <https://packaging.python.org/en/latest/specifications/binary-distribution-format/> and, for the tag of the
//! platform, <https://peps.python.org/pep-0600/>.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::elf::Binary;
use super::entry::{Entry, write_archive};
use super::release::{LICENCE, NAME, REPOSITORY, Release, SUMMARY};

/// Writes the wheel. It suits every version of Python 3: the program is no extension module.
pub(super) fn wheel(release: &Release, folder: &Path) -> Result<PathBuf> {
    let stem = format!("{NAME}-{}", release.version);
    let tag = format!("py3-none-{}", platform(&release.binary)?);
    let information = format!("{stem}.dist-info");
    let mut entries = vec![Entry::program(
        format!("{stem}.data/scripts/{NAME}"),
        release.program.clone(),
    )];
    let licences: Vec<_> = release.licences().collect();
    entries.extend(
        licences
            .iter()
            .map(|entry| entry.within(&format!("{information}/licenses"))),
    );
    entries.push(Entry::file(
        format!("{information}/METADATA"),
        metadata(release, &licences)?,
    ));
    entries.push(Entry::file(
        format!("{information}/WHEEL"),
        format!("Wheel-Version: 1.0\nGenerator: toolplane xtask\nRoot-Is-Purelib: false\nTag: {tag}\n"),
    ));
    let record = format!("{information}/RECORD");
    entries.push(Entry::file(record.clone(), record_of(&entries, &record)));
    write_archive(folder.join(format!("{stem}-{tag}.whl")), &zipped(&entries)?)
}

/// Returns the tag of the platform: the oldest C library that runs the program, or any Linux for a static program.
fn platform(binary: &Binary) -> Result<String> {
    let machine = binary.machine.name();
    if binary.is_gnu() {
        let (first, second) = binary.glibc()?;
        return Ok(format!("manylinux_{first}_{second}_{machine}"));
    }
    // Both kinds of Linux, as compressed tags: https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
    Ok(match binary.interpreter {
        None => format!("manylinux_2_17_{machine}.musllinux_1_1_{machine}"),
        Some(_) => format!("musllinux_1_2_{machine}"),
    })
}

/// Returns the metadata, version 2.4: <https://packaging.python.org/en/latest/specifications/core-metadata/>.
fn metadata(release: &Release, licences: &[&Entry]) -> Result<String> {
    let mut text = format!(
        "Metadata-Version: 2.4\nName: {NAME}\nVersion: {}\nSummary: {SUMMARY}\nLicense-Expression: {LICENCE}\n",
        release.version
    );
    for licence in licences {
        let _ = writeln!(text, "License-File: {}", licence.path);
    }
    let readme = String::from_utf8_lossy(release.document("README.md")?).into_owned();
    let _ = write!(
        text,
        "Project-URL: Repository, {REPOSITORY}\nKeywords: mcp,gateway,llm,tools\nRequires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n{readme}"
    );
    Ok(text)
}

/// Returns the list of all files with their SHA-256 and size. It lists itself without them.
fn record_of(entries: &[Entry], itself: &str) -> String {
    let mut record = String::new();
    for entry in entries {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&entry.content));
        let _ = writeln!(record, "{},sha256={digest},{}", entry.path, entry.content.len());
    }
    record + &format!("{itself},,\n")
}

/// Packs the files in their order, at the earliest time that the format has.
fn zipped(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(entry.mode);
        writer
            .start_file(entry.path.as_str(), options)
            .map_err(anyhow::Error::from)
            .and_then(|()| Ok(writer.write_all(&entry.content)?))
            .with_context(|| format!("failed to pack `{}`", entry.path))?;
    }
    let packed = writer.finish().context("failed to pack the wheel")?;
    Ok(packed.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::elf::Machine;

    #[test]
    fn the_tag_names_the_oldest_c_library() {
        let mut binary = Binary {
            machine: Machine::Aarch64,
            interpreter: Some("/lib/ld-linux-aarch64.so.1".to_owned()),
            libraries: vec!["libc.so.6".to_owned()],
            versions: vec!["GLIBC_2.17".to_owned(), "GLIBC_2.34".to_owned()],
            has_symbols: false,
        };
        assert_eq!(platform(&binary).unwrap(), "manylinux_2_34_aarch64");
        binary.interpreter = None;
        assert_eq!(
            platform(&binary).unwrap(),
            "manylinux_2_17_aarch64.musllinux_1_1_aarch64"
        );
    }
}
