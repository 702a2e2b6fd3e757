//! Attacks on the kernel.

use super::host::{Host, limits, text};
use super::{Attempt, Finding};

/// Errors of a call that the sandbox denies: `EPERM`, `EACCES` and `ENOSYS`.
const DENIED: &str = "$! == 1 || $! == 13 || $! == 38";

/// Makes system calls, given as a name and Perl arguments, and returns the names of those that were not denied.
async fn calls(host: &Host, calls: &[(&str, libc::c_long, &str)]) -> Attempt {
    let mut program = String::new();
    for (name, number, arguments) in calls {
        let separator = if arguments.is_empty() { "" } else { ", " };
        program += &format!(
            "$! = 0; $r = syscall({number}{separator}{arguments}); exit if $r == 0 && \"{name}\" eq \"clone\"; \
             print \"{name} \" if $r != -1 || !({DENIED});\n"
        );
    }
    program += "print \"end\";";
    let output = host.perl(&program, limits()).await?;
    let said = text(&output);
    let opened = said.trim_end_matches("end").trim();
    Ok(Finding::new(
        opened.is_empty() && said.ends_with("end"),
        format!("calls that were not denied: `{opened}`"),
    ))
}

pub(super) async fn namespaces(host: &Host) -> Attempt {
    // A path, and zeroes for structures.
    let attacks: &[(&str, libc::c_long, &str)] = &[
        ("unshare-user", libc::SYS_unshare, "0x10000000"),
        ("unshare-mount", libc::SYS_unshare, "0x20000"),
        ("setns", libc::SYS_setns, "0, 0"),
        ("chroot", libc::SYS_chroot, "my $a = '/tmp'"),
        ("pivot_root", libc::SYS_pivot_root, "my $b = '/tmp', $b"),
        (
            "mount",
            libc::SYS_mount,
            "my $c = 'none', my $d = '/tmp', my $e = 'tmpfs', 0, 0",
        ),
        ("umount", libc::SYS_umount2, "my $f = '/proc', 2"),
        ("fsopen", libc::SYS_fsopen, "my $g = 'tmpfs', 0"),
        ("open_tree", libc::SYS_open_tree, "-100, my $h = '/', 1"),
        ("clone3", libc::SYS_clone3, "my $i = \"\\0\" x 88, 0"),
        ("clone", libc::SYS_clone, "0x10000011, 0, 0, 0, 0"),
    ];
    calls(host, attacks).await
}

pub(super) async fn interfaces(host: &Host) -> Attempt {
    let attacks: &[(&str, libc::c_long, &str)] = &[
        (
            "io_uring_setup",
            libc::SYS_io_uring_setup,
            "8, my $a = \"\\0\" x 120",
        ),
        ("bpf", libc::SYS_bpf, "0, my $b = \"\\0\" x 128, 128"),
        ("keyctl", libc::SYS_keyctl, "0, -3, 1"),
        (
            "add_key",
            libc::SYS_add_key,
            "my $c = 'user', my $d = 'x', my $e = 'y', 1, -3",
        ),
        ("userfaultfd", libc::SYS_userfaultfd, "1"),
        (
            "perf_event_open",
            libc::SYS_perf_event_open,
            "my $f = \"\\0\" x 128, 0, -1, -1, 0",
        ),
        ("ptrace", libc::SYS_ptrace, "16, 1, 0, 0"),
        ("process_vm_readv", libc::SYS_process_vm_readv, "1, 0, 0, 0, 0, 0"),
        (
            "open_by_handle_at",
            libc::SYS_open_by_handle_at,
            "-100, my $g = \"\\0\" x 128, 0",
        ),
        ("pidfd_getfd", libc::SYS_pidfd_getfd, "0, 0, 0"),
        ("kexec_load", libc::SYS_kexec_load, "0, 0, 0, 0"),
        ("init_module", libc::SYS_init_module, "my $h = '', 0, my $i = ''"),
        ("tiocsti", libc::SYS_ioctl, "0, 0x5412, my $j = 'x'"),
        #[cfg(target_arch = "x86_64")]
        ("x32", 0x4000_0000 | 39, ""),
    ];
    calls(host, attacks).await
}

pub(super) async fn privileges(host: &Host) -> Attempt {
    let program = format!(
        r#"print syscall({}, 39, 0, 0, 0, 0), " $< $> ";
        my $header = pack("L l", 0x20080522, 0); my $data = "\0" x 24;
        syscall({}, $header, $data);
        print unpack("H*", $data);"#,
        libc::SYS_prctl,
        libc::SYS_capget
    );
    let output = host.perl(&program, limits()).await?;
    let said = text(&output);
    let parts: Vec<_> = said.split(' ').collect();
    let is_held = matches!(parts[..], ["1", real, effective, rights]
        if real != "0" && effective != "0" && rights.len() == 48 && rights.bytes().all(|digit| digit == b'0'));
    Ok(Finding::new(
        is_held,
        format!("no new privileges, user, effective user and capabilities: {said}"),
    ))
}
