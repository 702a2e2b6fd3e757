//! Tests of the packages with the shell of this machine as the program, which needs no build.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tool_testkit::skip;

use super::elf::Binary;
use super::entry::Entry;
use super::release::Release;
use super::{Packages, container, debian, installs, npm, tarball, wheel};
use crate::support::process::{find, output, succeeds};

/// Checks the hashes and sizes in `RECORD`, and that it lists every file:
/// <https://packaging.python.org/en/latest/specifications/recording-installed-packages/>.
const CHECK_RECORD: &str = r#"
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
assert wheel.testzip() is None
name = next(name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
rows = list(csv.reader(io.StringIO(wheel.read(name).decode())))
assert sorted(row[0] for row in rows) == sorted(wheel.namelist()), rows
for path, digest, size in rows:
    if path == name:
        assert digest == size == ""
        continue
    content = wheel.read(path)
    expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    assert digest == "sha256=" + expected and int(size) == len(content), path
script = wheel.getinfo("toolplane-1.2.3.data/scripts/toolplane")
assert script.external_attr >> 16 & 0o777 == 0o755
"#;

/// Release whose program is the shell.
fn release() -> Release {
    let program = fs::read(find("sh").unwrap()).unwrap();
    let texts = [
        "README.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        super::licences::FILE,
    ];
    Release {
        version: "1.2.3".to_owned(),
        mtime: 1_700_000_000,
        binary: Binary::read(&program).unwrap(),
        program,
        completions: ["bash", "zsh", "fish"]
            .map(|shell| (shell.to_owned(), shell.into()))
            .to_vec(),
        pages: vec![
            Entry::file("toolplane.1", ".TH toolplane 1\n"),
            Entry::file("toolplane-call.1", ".TH toolplane-call 1\n"),
        ],
        documents: texts
            .map(|name| Entry::file(name, format!("text of {name}\n")))
            .to_vec(),
    }
}

/// Runs a script in an installed shell.
fn shell(program: &Path, script: &str) -> String {
    output(Command::new(program).args(["-c", script])).unwrap()
}

fn has(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| find(program).is_none());
    if let Some(program) = missing {
        skip(format!("`{program}` is not installed"));
    }
    missing.is_none()
}

#[test]
fn equal_contents_are_equal_packages() {
    let packages = || {
        let folder = tempfile::tempdir().unwrap();
        let (release, path) = (release(), folder.path());
        let mut files = vec![
            tarball::program(&release, path).unwrap(),
            wheel::wheel(&release, path).unwrap(),
        ];
        files.extend(npm::packages(&release, path).unwrap());
        if find("dpkg-deb").is_some() {
            files.push(debian::package(&release, path).unwrap());
        }
        files
            .into_iter()
            .map(|file| (file.file_name().unwrap().to_owned(), fs::read(file).unwrap()))
            .collect::<Vec<_>>()
    };
    assert!(packages() == packages(), "two runs differ");
}

#[test]
fn the_tarball_has_everything_in_order() {
    let (release, folder) = (release(), tempfile::tempdir().unwrap());
    let archive = tarball::program(&release, folder.path()).unwrap();
    let program = installs::tarball(&archive, folder.path()).unwrap();
    assert_eq!(shell(&program, "echo unpacked"), "unpacked\n");
    let listed = output(
        Command::new("tar")
            .args(["--numeric-owner", "--full-time", "--utc", "-tvzf"])
            .arg(&archive),
    )
    .unwrap();
    let target = release.binary.target();
    let stem = format!("toolplane-1.2.3-{target}/");
    let names: Vec<_> = listed
        .lines()
        .map(|line| line.split_once(&stem).unwrap().1)
        .collect();
    let expected = [
        "CHANGELOG.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "THIRD-PARTY-LICENSES.txt",
        "bin/toolplane",
        "completions/_toolplane",
        "completions/toolplane.bash",
        "completions/toolplane.fish",
        "share/man/man1/toolplane-call.1",
        "share/man/man1/toolplane.1",
    ];
    assert_eq!(names, expected);
    for line in listed.lines() {
        assert!(
            line.contains(" 0/0 ") && line.contains("2023-11-14 22:13:20"),
            "{line}"
        );
    }
}

#[test]
fn the_wheel_is_right_and_pip_installs_it() {
    if !has(&["python3"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let wheel = wheel::wheel(&release(), folder.path()).unwrap();
    let name = wheel.file_name().unwrap().to_string_lossy().into_owned();
    assert!(
        name.starts_with("toolplane-1.2.3-py3-none-manylinux_2_"),
        "{name}"
    );
    output(Command::new("python3").args(["-c", CHECK_RECORD]).arg(&wheel)).unwrap();
    let program = installs::wheel(&wheel, &folder.path().join("venv")).unwrap();
    assert_eq!(shell(&program, "echo installed"), "installed\n");
}

#[test]
fn npm_installs_the_program_without_a_network() {
    if !has(&["npm", "node"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let packages = npm::packages(&release(), folder.path()).unwrap();
    for package in &packages {
        // npm reads the manifest and the files of an archive.
        output(
            Command::new("npm")
                .args(["pack", "--dry-run", "--offline"])
                .arg(package),
        )
        .unwrap();
    }
    let program = installs::npm(&packages, folder.path()).unwrap();
    assert_eq!(shell(&program, "echo installed"), "installed\n");
    // The launcher ends like the program, and passes signals on.
    let ended = Command::new(&program).args(["-c", "exit 7"]).status().unwrap();
    assert_eq!(ended.code(), Some(7));
    let mut waiting = Command::new(&program)
        .args([
            "-c",
            "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(waiting.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    kill_process(Pid::from_child(&waiting), Signal::TERM).unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(3));
}

#[test]
fn npm_says_that_the_package_of_the_platform_is_missing() {
    if !has(&["npm", "node"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let packages = npm::packages(&release(), folder.path()).unwrap();
    let program = installs::npm(&packages, folder.path()).unwrap();
    let platform = packages[0]
        .file_name()
        .unwrap()
        .to_string_lossy()
        .replace("-1.2.3.tgz", "");
    fs::remove_dir_all(folder.path().join("node_modules").join(platform)).unwrap();
    let ended = Command::new(program).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        said.contains("error: no program for linux") && said.contains("hint: install without"),
        "{said}"
    );
}

#[test]
fn dpkg_installs_the_debian_package() {
    if !has(&["dpkg", "dpkg-deb"]) {
        return;
    }
    let (release, folder) = (release(), tempfile::tempdir().unwrap());
    let package = debian::package(&release, folder.path()).unwrap();
    let field = |name: &str| output(Command::new("dpkg-deb").arg("--field").arg(&package).arg(name)).unwrap();
    let (first, second) = release.binary.glibc().unwrap();
    assert_eq!(field("Depends").trim(), format!("libc6 (>= {first}.{second})"));
    assert_eq!(field("Architecture").trim(), release.binary.machine.debian());
    assert_eq!(field("Version").trim(), "1.2.3-1");
    let listed = output(Command::new("dpkg-deb").arg("--contents").arg(&package)).unwrap();
    for line in listed.lines() {
        assert!(
            line.contains(" root/root ") && line.contains("2023-11-14"),
            "{line}"
        );
        assert!(
            line.starts_with("drwxr-xr-x")
                || line.starts_with("-rwxr-xr-x")
                || line.starts_with("-rw-r--r--"),
            "{line}"
        );
    }
    for file in [
        "man1/toolplane-call.1.gz",
        "vendor-completions/_toolplane",
        "doc/toolplane/copyright",
    ] {
        assert!(listed.contains(file), "{file}: {listed}");
    }
    let root = folder.path().join("root");
    let program = installs::debian(&package, &root).unwrap();
    assert_eq!(shell(&program, "echo installed"), "installed\n");
    let checked = output(Command::new("md5sum").current_dir(&root).args([
        "--check",
        "--quiet",
        "var/lib/dpkg/info/toolplane.md5sums",
    ]));
    checked.unwrap();
}

#[test]
fn the_image_has_all_that_the_program_loads() {
    let (release, folder) = (release(), tempfile::tempdir().unwrap());
    let context = container::recipe(&release, &find("sh").unwrap(), folder.path()).unwrap();
    let recipe = fs::read_to_string(context.join("Containerfile")).unwrap();
    assert!(
        recipe.contains("FROM scratch\n") && recipe.contains("USER 65532:65532\n"),
        "{recipe}"
    );
    let root = context.join("root");
    let loader = release.binary.interpreter.as_deref().unwrap();
    assert!(root.join(loader.trim_start_matches('/')).is_file());
    if !succeeds(Command::new("chroot").args(["/", "true"])) {
        skip("only root may change the root folder of a process");
        return;
    }
    let said = output(
        Command::new("chroot")
            .arg(root)
            .args(["/usr/bin/toolplane", "-c", "echo inside"]),
    )
    .unwrap();
    assert_eq!(said, "inside\n");
}

#[test]
fn all_packages_are_written_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let Packages {
        npm, wheel, tarball, ..
    } = super::pack(&release(), &find("sh").unwrap(), folder.path()).unwrap();
    for file in npm.iter().chain([&wheel, &tarball]) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let digest = fs::read_to_string(file.with_file_name(format!("{name}.sha256"))).unwrap();
        assert!(digest.ends_with(&format!("  {name}\n")), "{digest}");
    }
}
