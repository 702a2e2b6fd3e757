//! Attacks on files.

use super::host::{Host, limits, nonce, shell, text};
use super::{Attempt, Finding};
use crate::SandboxCollect;

pub(super) async fn read(host: &Host) -> Attempt {
    let secret = host.secret_path().display().to_string();
    let folder = host.folder().display().to_string();
    let script = r#"cat "$1" /etc/shadow /etc/ssh/ssh_host_*_key; ls -A "$2" /root /home; true"#;
    let output = host.shell(script, &[&secret, &folder]).await?;
    let is_held = !host.is_leaked(&output.stdout) && output.stdout.is_empty();
    Ok(Finding::new(
        is_held,
        format!("{} bytes were read", output.stdout.len()),
    ))
}

pub(super) async fn write(host: &Host) -> Attempt {
    let name = format!("tool-sandbox-{}", nonce());
    let inside = host.folder().join("new");
    let script =
        r#"for path in "$1" "/usr/$2" "/etc/$2" "/var/tmp/$2" "../$2"; do echo x > "$path"; done; true"#;
    host.shell(script, &[&inside.display().to_string(), &name])
        .await?;
    let mut paths = vec![inside];
    paths.extend(["/usr", "/etc", "/var/tmp", "/"].map(|folder| std::path::Path::new(folder).join(&name)));
    let written: Vec<_> = paths.into_iter().filter(|path| path.exists()).collect();
    for path in &written {
        // The report says that it was there.
        let _ = std::fs::remove_file(path);
    }
    Ok(Finding::new(
        written.is_empty(),
        format!("{} files of the host were written", written.len()),
    ))
}

pub(super) async fn collect_link(host: &Host) -> Attempt {
    let secret = host.secret_path().display().to_string();
    let folder = host.folder().display().to_string();
    let script = r#"ln -s "$1" file; ln -s "$2" folder; ln "$1" hard; ln -s /proc/self/root root; true"#;
    let wanted = SandboxCollect::new(["file", "folder/secret", "hard", "root/etc/passwd"]);
    let output = host
        .run(shell(script, &[&secret, &folder]).collect(wanted))
        .await?;
    let is_held = output.files.is_empty();
    Ok(Finding::new(
        is_held,
        format!("{} of 4 paths were collected", output.files.len()),
    ))
}

pub(super) async fn fill(host: &Host) -> Attempt {
    const DISK: u64 = 1024 * 1024;
    let script = "mkdir out; mknod out/device b 7 0; mkfifo out/pipe; truncate -s 1T out/sparse; \
                  head -c 8388608 /dev/zero > out/fill; wc -c < out/fill; test -b out/device && echo device; true";
    let command = shell(script, &[])
        .limits(limits().with_disk(DISK))
        .collect(SandboxCollect::new(["out"]).with_max_file_bytes(1024));
    let output = host.run(command).await?;
    let said = text(&output);
    let size: u64 = said
        .lines()
        .next()
        .and_then(|line| line.trim().parse().ok())
        .unwrap_or(0);
    // A file that was cut before its first byte is an ordinary one.
    let is_bounded = output.files.iter().all(|file| file.bytes.is_empty());
    let is_held = is_bounded && size <= DISK && !said.contains("device");
    Ok(Finding::new(
        is_held,
        format!(
            "{size} of 8388608 bytes were written; {} files were collected",
            output.files.len()
        ),
    ))
}
