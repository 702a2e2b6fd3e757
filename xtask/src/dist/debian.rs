//! Debian package.
//!
//! Format: <https://www.debian.org/doc/debian-policy/ch-controlfields.html>.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use super::elf::Binary;
use super::entry::{Entry, gzip, write_digest, write_tree};
use super::release::{NAME, REPOSITORY, Release, SUMMARY};
use crate::support::process::{output, run_quietly};

const MAINTAINER: &str = "toolplane developers <packages@toolplane.dev>";
/// Revision of the packaging.
const REVISION: &str = "1";
/// Long description: lines that begin with a space.
const DESCRIPTION: &str = " toolplane gives LLM agents one governed set of tools. A tool is data, and every
 call passes the same layers, whatever executes it: admission by policy,
 validation, retries, limits and telemetry.
 .
 The program serves all tools over MCP, and calls them from the command line.
";
/// Packages that executors use: the sandbox, and interpreters of tools that are code.
const RECOMMENDED: &str = "bubblewrap, ca-certificates";
const SUGGESTED: &str = "podman, python3";

/// Builds the package with `dpkg-deb`. Equal contents result in equal bytes.
pub(super) fn package(release: &Release, folder: &Path) -> Result<PathBuf> {
    let machine = release.binary.machine.debian();
    let package = folder.join(format!("{NAME}_{}-{REVISION}_{machine}.deb", release.version));
    let tree = tempfile::tempdir_in(folder).context("failed to make a temporary folder")?;
    let files = files(release)?;
    write_tree(tree.path(), &files)?;
    let control = [
        Entry::file("DEBIAN/control", control(release, &files)?),
        Entry::file("DEBIAN/md5sums", digests(tree.path(), &files)?),
    ];
    write_tree(tree.path(), &control)?;
    for folder in folders(&files) {
        run_quietly(Command::new("chmod").arg("755").arg(tree.path().join(folder)))?;
    }
    run_quietly(
        Command::new("dpkg-deb")
            // `dpkg-deb` sets the time of the archive, and of all newer files, to it.
            .env("SOURCE_DATE_EPOCH", release.mtime.to_string())
            .args(["--root-owner-group", "-Zxz", "--build"])
            .arg(tree.path())
            .arg(&package),
    )?;
    write_digest(&package)?;
    Ok(package)
}

/// Returns the installed files.
fn files(release: &Release) -> Result<Vec<Entry>> {
    let mut files = vec![Entry::program(format!("usr/bin/{NAME}"), release.program.clone())];
    for page in &release.pages {
        files.push(Entry::file(
            format!("usr/share/man/man1/{}.gz", page.path),
            gzip(&page.content)?,
        ));
    }
    let places = [
        ("bash", "bash-completion/completions/toolplane"),
        ("zsh", "zsh/vendor-completions/_toolplane"),
        ("fish", "fish/vendor_completions.d/toolplane.fish"),
    ];
    for (shell, place) in places {
        if let Some((_, script)) = release.completions.iter().find(|(name, _)| name == shell) {
            files.push(Entry::file(format!("usr/share/{place}"), script.clone()));
        }
    }
    let documents = format!("usr/share/doc/{NAME}");
    let mut document =
        |name: &str, content: Vec<u8>| files.push(Entry::file(format!("{documents}/{name}"), content));
    document("copyright", copyright(release)?.into_bytes());
    document("changelog.gz", gzip(release.document("CHANGELOG.md")?)?);
    document("changelog.Debian.gz", gzip(changelog(release).as_bytes())?);
    document("README.md", release.document("README.md")?.to_vec());
    let others = super::licences::FILE;
    document(&format!("{others}.gz"), gzip(release.document(others)?)?);
    Ok(files)
}

fn control(release: &Release, files: &[Entry]) -> Result<String> {
    // Debian Policy 5.6.20: an estimate in KiB.
    let kib: usize = files.iter().map(|file| file.content.len().div_ceil(1024)).sum();
    let mut control = String::new();
    let fields = [
        ("Package", NAME.to_owned()),
        ("Version", format!("{}-{REVISION}", release.version)),
        ("Section", "net".to_owned()),
        ("Priority", "optional".to_owned()),
        ("Architecture", release.binary.machine.debian().to_owned()),
        ("Maintainer", MAINTAINER.to_owned()),
        ("Installed-Size", kib.to_string()),
        ("Depends", depends(&release.binary)?),
        ("Recommends", RECOMMENDED.to_owned()),
        ("Suggests", SUGGESTED.to_owned()),
        ("Homepage", REPOSITORY.to_owned()),
        ("Description", synopsis()),
    ];
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(control, "{name}: {value}");
    }
    control.push_str(DESCRIPTION);
    Ok(control)
}

/// Returns the first part of the summary: Debian Policy 3.4.1 wants fewer than 80 characters, and no article.
fn synopsis() -> String {
    let first = SUMMARY.split(':').next().unwrap_or(SUMMARY);
    first.replacen("One ", "", 1)
}

/// Computes the packages that contain the needed libraries, in versions that have the needed symbols.
fn depends(binary: &Binary) -> Result<String> {
    let mut packages = BTreeMap::new();
    for library in &binary.libraries {
        let package = match library.split('.').next().unwrap_or_default() {
            "libc" | "libm" | "libdl" | "librt" | "libpthread" | "ld-linux-x86-64" | "ld-linux-aarch64" => {
                let (first, second) = binary.glibc()?;
                ("libc6", format!("{first}.{second}"))
            }
            // The oldest version that Debian's package of this name had, newer than all symbols of unwinding.
            "libgcc_s" => ("libgcc-s1", "4.2".to_owned()),
            _ => bail!("`{library}` is in no package of Debian that is known here: add it to `depends`"),
        };
        packages.insert(package.0, package.1);
    }
    let packages: Vec<_> = packages
        .iter()
        .map(|(name, version)| format!("{name} (>= {version})"))
        .collect();
    Ok(packages.join(", "))
}

/// Returns the checksums of the installed files. MD5 is the format of this file; nothing is protected by it.
fn digests(tree: &Path, files: &[Entry]) -> Result<String> {
    let mut paths: Vec<_> = files.iter().map(|file| &file.path).collect();
    paths.sort();
    output(Command::new("md5sum").current_dir(tree).args(paths))
}

/// Returns all folders of the files, and that of the control files.
fn folders(files: &[Entry]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = files
        .iter()
        .flat_map(|file| Path::new(&file.path).ancestors().skip(1))
        .map(Path::to_path_buf)
        .collect();
    folders.push("DEBIAN".into());
    folders.sort();
    folders.dedup();
    folders
}

/// Returns the licences in Debian's machine-readable form, version 1.0.
fn copyright(release: &Release) -> Result<String> {
    let text = |name: &str| -> Result<String> {
        let text = String::from_utf8_lossy(release.document(name)?).into_owned();
        let lines = text.lines().map(|line| match line.trim() {
            "" => " .\n".to_owned(),
            _ => format!(" {line}\n"),
        });
        Ok(lines.collect())
    };
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: {NAME}\nSource: {REPOSITORY}\n\
         Comment: The licences of the crates that the program contains are in {}.gz.\n\n\
         Files: *\nCopyright: the toolplane developers\nLicense: Expat or Apache-2.0\n\n\
         License: Expat\n{}\n\
         License: Apache-2.0\n On Debian systems, the text of this licence is in\n /usr/share/common-licenses/Apache-2.0.\n",
        super::licences::FILE,
        text("LICENSE-MIT")?
    ))
}

/// Returns the changelog of the package, whose dates have the form of RFC 5322.
fn changelog(release: &Release) -> String {
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(release.mtime));
    let date = date.replace("GMT", "+0000");
    format!(
        "{NAME} ({}-{REVISION}) unstable; urgency=medium\n\n  * Release {}; see changelog.gz.\n\n -- {MAINTAINER}  {date}\n",
        release.version, release.version
    )
}
