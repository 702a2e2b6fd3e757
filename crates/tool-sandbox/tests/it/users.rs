//! All other tests once more, as a user without rights.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{examples, is_root, isolating};

const USER: &str = "12345";

/// Runs the other tests of this binary once more, as a user who is not root.
#[tokio::test]
async fn an_unprivileged_user_is_confined_alike() {
    if !is_root() {
        // The other tests run as such a user already.
        return;
    }
    if isolating().await.len() < 2 {
        // The reason has been reported.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for (from, to) in [
        (std::env::current_exe().unwrap(), "deps/it"),
        (examples().join("tool-sandbox-host"), "examples/tool-sandbox-host"),
    ] {
        let to = folder.path().join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
    let tests = Command::new("setpriv")
        .args([
            "--reuid",
            USER,
            "--regid",
            USER,
            "--clear-groups",
            "--inh-caps=-all",
            "--",
        ])
        .arg(folder.path().join("deps/it"))
        .args(["--skip", "users::", "--test-threads", "2"])
        .env("TMPDIR", "/tmp")
        // What works as root must work here too: a skip is a failure.
        .env("CI", "true")
        .env_remove("TOOLPLANE_SKIPS")
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .output()
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&tests.stdout),
        String::from_utf8_lossy(&tests.stderr),
    );
    assert!(tests.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("test result: ok."), "{stdout}");
    assert!(!stdout.contains("test result: ok. 0 passed"), "{stdout}");
}
