//! Attacks of one run on another.

use std::path::Path;

use super::host::{Host, limits, nonce, shell, text};
use super::{Attempt, Finding};

pub(super) async fn leave(host: &Host) -> Attempt {
    let script = r#"for folder in /job "$HOME" "$TMPDIR"; do
        for name in .bashrc .mcp.json sitecustomize.py; do echo evil > "$folder/$name"; done; done; ls -A "$HOME""#;
    let first = host.shell(script, &[]).await?;
    let second = host
        .shell(r#"ls -A "$HOME" "$TMPDIR" | grep -v : ; true"#, &[])
        .await?;
    let found = text(&second);
    let is_held = found.is_empty() && text(&first).contains(".bashrc");
    Ok(Finding::new(
        is_held,
        format!("files that the next run found: `{found}`"),
    ))
}

pub(super) async fn replace(host: &Host) -> Attempt {
    let script = r#"chmod u+w "$1" main.sh; echo 'echo changed' > "$1"; echo 'echo changed' > main.sh; rm -f "$1"
        mv main.sh old.sh; echo 'echo changed' > main.sh; mv main.sh "$1"; exec sh "$1""#;
    let output = host
        .run(shell(script, &["/job/main.sh"]).file("main.sh", "echo given\n"))
        .await?;
    let said = text(&output);
    Ok(Finding::new(said == "given", format!("the script said `{said}`")))
}

pub(super) async fn share(host: &Host) -> Attempt {
    let name = format!("tool-sandbox-{}", nonce());
    let program = format!(
        r#"for my $folder ("/dev/shm", "/tmp", "/var/tmp") {{ open(F, ">", "$folder/{name}") and close(F) }}
        print "memory" if syscall({}, {SEGMENT}, 4096, 0x3b6) >= 0;"#,
        libc::SYS_shmget
    );
    host.perl(&program, limits()).await?;
    let folders = ["/dev/shm", "/tmp", "/var/tmp"].map(|folder| Path::new(folder).join(&name));
    let seen = folders.iter().filter(|path| path.exists()).count();
    for path in &folders {
        // The report says that it was there.
        let _ = std::fs::remove_file(path);
    }
    let program = format!(
        r#"print "segment " if syscall({}, {SEGMENT}, 0, 0) >= 0;
        for my $folder ("/dev/shm", "/tmp", "/var/tmp") {{ print "file " if -e "$folder/{name}" }}"#,
        libc::SYS_shmget
    );
    let second = host.perl(&program, limits()).await?;
    let found = text(&second);
    Ok(Finding::new(
        seen == 0 && found.is_empty(),
        format!("{seen} files on the host; the next run found `{found}`"),
    ))
}

/// Key of a segment of shared memory that nothing else uses.
const SEGMENT: u32 = 0x7473_6278;
