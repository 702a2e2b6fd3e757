//! Recipe of a container image from `scratch`: the program, what it loads, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::entry::{Entry, write_tree};
use super::release::{NAME, Release};
use crate::support::process::output;

/// Recipe, for podman and Docker.
const CONTAINERFILE: &str = include_str!("Containerfile");
/// Certificates of authorities, where Debian, Alpine and most others have them.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// User without a shell and without rights; its number is that of many images of this kind.
const PASSWD: &str = "root:x:0:0:root:/:/nologin\ntoolplane:x:65532:65532:toolplane:/data:/nologin\n";
const GROUP: &str = "root:x:0:\ntoolplane:x:65532:\n";
/// Order in which the C library looks names up: the files that an engine mounts, then DNS.
const NAMES: &str = "passwd: files\ngroup: files\nhosts: files dns\n";

/// Writes the recipe and its context into `FOLDER/container`. `program` is the program of the release as a file.
pub(super) fn recipe(release: &Release, program: &Path, folder: &Path) -> Result<PathBuf> {
    let context = folder.join("container");
    let mut files = vec![
        Entry::program(format!("usr/bin/{NAME}"), release.program.clone()),
        Entry::file("etc/passwd", PASSWD),
        Entry::file("etc/group", GROUP),
        Entry::file("etc/nsswitch.conf", NAMES),
        Entry::file("etc/toolplane/.keep", ""),
    ];
    // Without the file, the program uses the certificates that it contains.
    if let Ok(certificates) = fs::read(CERTIFICATES) {
        files.push(Entry::file(relative(CERTIFICATES), certificates));
    }
    files.extend(
        release
            .licences()
            .map(|entry| entry.within(&format!("usr/share/doc/{NAME}"))),
    );
    for library in libraries(release, program)? {
        let content = fs::read(&library).with_context(|| format!("failed to read `{library}`"))?;
        files.push(Entry::program(relative(&library), content));
    }
    let mut tree: Vec<_> = files.iter().map(|file| file.within("root")).collect();
    // Folders of the user: its data, and temporary files.
    tree.push(Entry::file("data/.keep", ""));
    tree.push(Entry::file("Containerfile", CONTAINERFILE));
    write_tree(&context, &tree)?;
    Ok(context)
}

/// Returns the paths of the loader and of all libraries that it loads for the program, as the loader itself tells them.
fn libraries(release: &Release, program: &Path) -> Result<Vec<String>> {
    let Some(loader) = &release.binary.interpreter else {
        return Ok(Vec::new());
    };
    let listed = output(Command::new(loader).arg("--list").arg(program))
        .with_context(|| format!("the loader `{loader}` does not list the libraries of the program"))?;
    let mut libraries = listed_libraries(&listed)?;
    libraries.insert(loader.clone());
    Ok(libraries.into_iter().collect())
}

/// Parses the list of a loader: `NAME => PATH (ADDRESS)` for a library, `PATH (ADDRESS)` for the loader, and `NAME (ADDRESS)` for
/// what the kernel provides.
fn listed_libraries(listed: &str) -> Result<BTreeSet<String>> {
    let mut libraries = BTreeSet::new();
    for line in listed.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let place = line.split_once(" => ").map_or(line, |(_, place)| place);
        let path = place.split(" (0x").next().unwrap_or(place);
        if path == "not found" {
            bail!("a library of the program is missing on this machine: `{line}`");
        }
        if path.starts_with('/') {
            libraries.insert(path.to_owned());
        }
    }
    Ok(libraries)
}

fn relative(path: &str) -> String {
    path.trim_start_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_tells_the_libraries() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f1)\n\t\
                      libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f2)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f3)\n";
        let libraries: Vec<_> = listed_libraries(listed).unwrap().into_iter().collect();
        assert_eq!(
            libraries,
            [
                "/lib/x86_64-linux-gnu/libc.so.6",
                "/lib/x86_64-linux-gnu/libgcc_s.so.1",
                "/lib64/ld-linux-x86-64.so.2"
            ]
        );
        let error = listed_libraries("\tlibz.so.1 => not found\n").unwrap_err();
        assert!(error.to_string().contains("`libz.so.1 => not found`"), "{error}");
    }
}
