//! Runs that stay within their limits, at each level.

use std::path::PathBuf;
use std::time::Duration;

use tool_sandbox::{
    NetworkAccess, Sandbox, SandboxCollect, SandboxCommand, SandboxError, SandboxExit, SandboxLevel,
    SandboxLimits,
};

use crate::support::{is_root, isolating, levels, shell};

#[tokio::test]
async fn program_reads_its_input_and_its_files() {
    for sandbox in levels().await {
        let level = sandbox.level();
        let command = shell("cat; cat a/b.txt; echo $X; cat \"$1\"; basename $PWD; basename $HOME")
            .args(["sh", "/job/a/b.txt"])
            .stdin("input\n")
            .file("a/b.txt", "file\n")
            .env("X", "x y");
        let output = sandbox.run(command).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{level}");
        let expected = "input\nfile\nx y\nfile\njob\njob\n";
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{level}");
        assert_eq!(output.exit, SandboxExit::Code(0), "{level}");
        assert_eq!(output.level, level);
    }
}

#[tokio::test]
async fn exit_of_the_program_is_reported() {
    for sandbox in levels().await {
        for (script, exit) in [
            ("exit 7", SandboxExit::Code(7)),
            ("kill -TERM $$", SandboxExit::Signal(15)),
        ] {
            let output = sandbox.run(shell(script)).await.unwrap();
            assert_eq!(output.exit, exit, "{}: {script}", sandbox.level());
        }
    }
}

#[tokio::test]
async fn deadline_ends_the_run() {
    for sandbox in levels().await {
        let limits = SandboxLimits::default().with_wall_time(Duration::from_secs(2));
        let output = sandbox
            .run(shell("echo a; sleep 600").limits(limits))
            .await
            .unwrap();
        assert_eq!(output.exit, SandboxExit::TimedOut, "{}", sandbox.level());
        assert_eq!(output.stdout, b"a\n");
    }
}

#[tokio::test]
async fn output_is_capped() {
    for sandbox in levels().await {
        let limits = SandboxLimits::default().with_output(1000);
        let output = sandbox.run(shell("yes").limits(limits)).await.unwrap();
        assert_eq!(output.exit, SandboxExit::OutputLimit, "{}", sandbox.level());
        assert_eq!(output.stdout.len(), 1000);
        assert!(output.stdout_truncated && !output.stderr_truncated);
    }
}

#[tokio::test]
async fn files_are_collected_within_their_limits() {
    for sandbox in levels().await {
        let level = sandbox.level();
        let script = "mkdir -p out/deep; echo one > out/1.txt; echo two > out/deep/2.txt; echo no > other.txt; \
                      head -c 2000 /dev/zero > out/big; ln -s 1.txt out/link; mkfifo out/pipe; ln out/1.txt out/hard";
        let collect = SandboxCollect::new(["out", "missing"]).with_max_file_bytes(1000);
        let output = sandbox.run(shell(script).collect(collect)).await.unwrap();
        assert!(
            output.exit.is_success(),
            "{level}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let files: Vec<_> = output
            .files
            .iter()
            .map(|file| (file.path.clone(), file.bytes.clone()))
            .collect();
        assert_eq!(
            files,
            [(PathBuf::from("out/deep/2.txt"), b"two\n".to_vec())],
            "{level}"
        );
        let skipped: Vec<_> = output
            .skipped_files
            .iter()
            .map(|file| format!("{}: {}", file.path.display(), file.reason))
            .collect();
        let mut expected = vec![
            "out/1.txt: it is a link",
            "out/big: its 2000 bytes exceed the limit",
            "out/hard: it is a link",
            "out/link: it is a link",
            "missing: it does not exist",
        ];
        if level == SandboxLevel::Unsandboxed {
            // The filter denies to make one.
            expected.insert(4, "out/pipe: it is no regular file");
        }
        assert_eq!(skipped, expected, "{level}");
    }
}

#[tokio::test]
async fn granted_paths_are_seen_at_their_place() {
    let host = tempfile::tempdir().unwrap();
    // The parent stays closed to other users.
    let shared = host.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::write(shared.join("data.txt"), "granted").unwrap();
    for sandbox in isolating().await {
        if sandbox.level() != SandboxLevel::Bwrap && is_root() {
            // Without a mount namespace, the user of the sandbox cannot pass the closed parent.
            continue;
        }
        let command = SandboxCommand::new("/bin/sh")
            .args([
                "-c",
                "cat \"$1\" && ! touch \"$0/new\" 2>/dev/null",
                "/opt/granted",
                "/opt/granted/data.txt",
            ])
            .read_only(&shared, "/opt/granted");
        let output = sandbox.run(command).await.unwrap();
        let level = sandbox.level();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "granted",
            "{level}: {output:?}"
        );
        assert!(output.exit.is_success(), "{level}: {output:?}");
    }
}

#[tokio::test]
async fn wrong_commands_are_refused() {
    let sandbox = Sandbox::at(SandboxLevel::Unsandboxed).await.unwrap();
    let commands = [
        SandboxCommand::new("sh"),
        SandboxCommand::new("/bin/../sh"),
        shell("").file("../x", ""),
        shell("").file("/x", ""),
        shell("").env("A=B", ""),
        shell("").env("", ""),
        shell("").arg("a\0b"),
        shell("").read_only("/usr", "/"),
        shell("").limits(SandboxLimits::default().with_memory(0)),
        shell("").collect(SandboxCollect::new([".."])),
    ];
    for command in commands {
        let refused = sandbox.run(command.clone()).await;
        assert!(
            matches!(refused, Err(SandboxError::Refused { .. })),
            "{command:?}"
        );
    }
    let network = shell("").network(NetworkAccess::Hosts(vec!["example.com".to_owned()]));
    let refused = sandbox.run(network).await;
    assert!(matches!(refused, Err(SandboxError::Refused { .. })));
}

#[tokio::test]
async fn streams_of_a_spawned_process_are_open() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    for sandbox in levels().await {
        let mut child = sandbox.spawn(SandboxCommand::new("/bin/cat")).unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut answer = [0; 4];
        for text in [b"ping", b"pong"] {
            stdin.write_all(text).await.unwrap();
            stdout.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, text);
        }
        child.kill();
        assert_eq!(
            child.wait().await.unwrap(),
            SandboxExit::Signal(9),
            "{}",
            sandbox.level()
        );
        assert_eq!(child.wait().await.unwrap(), SandboxExit::Signal(9));
    }
}

#[test]
fn a_command_shows_no_secret() {
    let command = shell("true")
        .env("TOKEN", "hunter2")
        .stdin("hunter2")
        .file("key", "hunter2");
    let shown = format!("{command:?}");
    assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
}

/// Folder below `/tmp` with a readable and a writable directory, which everyone may enter.
fn granted_folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let (app, out) = (folder.path().join("app"), folder.path().join("app/out"));
    std::fs::create_dir_all(&out).unwrap();
    std::fs::write(app.join("main"), "main").unwrap();
    for (path, mode) in [(folder.path(), 0o755), (&app, 0o755), (&out, 0o777)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    (folder, app, out)
}

#[tokio::test]
async fn a_program_starts_in_a_granted_directory_also_below_tmp() {
    let (folder, app, out) = granted_folder();
    std::fs::write(folder.path().join("hidden"), "of the host").unwrap();
    let (reads, writes) = ([app.clone()], [out.clone()]);
    for sandbox in isolating().await {
        let level = sandbox.level();
        let script = "pwd; cat main; echo new > out/file; echo x > main; cat ../hidden; echo own > $TMPDIR/own && cat $TMPDIR/own";
        let mut command = shell(script).current_dir(&app);
        for (path, is_writable) in tool_sandbox::ordered_grants(&reads, &writes) {
            command = match is_writable {
                true => command.writable(&path, &path),
                false => command.read_only(&path, &path),
            };
        }
        let output = sandbox.run(command).await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            said,
            format!("{}\nmainown\n", app.display()),
            "{level}: {output:?}"
        );
        assert_eq!(
            std::fs::read_to_string(out.join("file")).unwrap(),
            "new\n",
            "{level}"
        );
        assert_eq!(
            std::fs::read_to_string(app.join("main")).unwrap(),
            "main",
            "{level}"
        );
        std::fs::remove_file(out.join("file")).unwrap();
    }
}
