//! Filter of system calls.
//!
//! A deny list, since programs of any kind run: what changes namespaces, mounts or other processes, loads code into the
//! kernel, or has a record of flaws and no use in a sandbox. Sockets are denied as a whole, of which Landlock covers TCP
//! alone; `socketpair` stays, as event loops need it.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

/// System calls that are denied whatever their arguments.
const DENIED: &[libc::c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Parts of the kernel with a record of flaws.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_fanotify_init,
    libc::SYS_vhangup,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_mknodat,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
];

/// Sockets that a filter leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketAccess {
    /// None.
    Denied,
    /// IPv4 and IPv6, for a process whose network namespace leads to a proxy alone.
    Internet,
}

/// Creates the filter.
pub(super) fn filter(sockets: SocketAccess) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = DENIED.iter().map(|&call| (call, Vec::new())).collect();
    let socket = match sockets {
        SocketAccess::Denied => Vec::new(),
        SocketAccess::Internet => vec![SeccompRule::new(vec![
            low_argument(0, SeccompCmpOp::Ne, libc::AF_INET)?,
            low_argument(0, SeccompCmpOp::Ne, libc::AF_INET6)?,
        ])?],
    };
    rules.insert(libc::SYS_socket, socket);
    let new_user = u64::try_from(libc::CLONE_NEWUSER).unwrap_or_default();
    let namespaces = new_user
        | [
            libc::CLONE_NEWNS,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWNET,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWUTS,
            libc::CLONE_NEWCGROUP,
        ]
        .iter()
        .fold(0, |flags, &flag| flags | u64::try_from(flag).unwrap_or_default());
    let mut clone = Vec::new();
    for bit in (0..32)
        .map(|bit| 1_u64 << bit)
        .filter(|bit| namespaces & bit != 0)
    {
        clone.push(SeccompRule::new(vec![SeccompCondition::new(
            0,
            SeccompCmpArgLen::Qword,
            SeccompCmpOp::MaskedEq(bit),
            bit,
        )?])?);
    }
    rules.insert(libc::SYS_clone, clone);
    // Commands that put input into a terminal.
    let mut ioctl = Vec::new();
    for command in [TIOCSTI, TIOCLINUX] {
        ioctl.push(SeccompRule::new(vec![SeccompCondition::new(
            1,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            command,
        )?])?);
    }
    rules.insert(libc::SYS_ioctl, ioctl);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(EPERM),
        architecture()?,
    )?;
    let mut program = prologue();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;

fn low_argument(
    index: u8,
    operator: SeccompCmpOp,
    value: i32,
) -> Result<SeccompCondition, seccompiler::Error> {
    let value = u64::try_from(value).unwrap_or_default();
    Ok(SeccompCondition::new(
        index,
        SeccompCmpArgLen::Dword,
        operator,
        value,
    )?)
}

fn architecture() -> Result<TargetArch, seccompiler::Error> {
    Ok(TargetArch::try_from(std::env::consts::ARCH)?)
}

/// Instructions before those of the crate: `clone3`, whose flags a filter cannot read, does not exist, so that the C
/// library falls back to `clone`; nor does any call of the x32 ABI, which has its own numbers for the calls that are denied.
fn prologue() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS, of offset 0
    const JUMP_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    const RETURN_ERRNO: u32 = 0x0005_0000;
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or_default();
    let mut program = vec![
        instruction(LOAD_NUMBER, 0, 0, 0),
        instruction(JUMP_EQUAL, 0, 1, clone3),
        instruction(RETURN, 0, 0, RETURN_ERRNO | ENOSYS),
    ];
    #[cfg(target_arch = "x86_64")]
    {
        const JUMP_GREATER_OR_EQUAL: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
        const X32_BIT: u32 = 0x4000_0000;
        program.extend([
            instruction(JUMP_GREATER_OR_EQUAL, 0, 1, X32_BIT),
            instruction(RETURN, 0, 0, RETURN_ERRNO | ENOSYS),
        ]);
    }
    program
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Returns the filter as the kernel reads it.
pub(super) fn to_bytes(program: &[sock_filter]) -> Vec<u8> {
    program
        .iter()
        .flat_map(|step| {
            let mut bytes = [0; 8];
            bytes[..2].copy_from_slice(&step.code.to_ne_bytes());
            bytes[2] = step.jt;
            bytes[3] = step.jf;
            bytes[4..].copy_from_slice(&step.k.to_ne_bytes());
            bytes
        })
        .collect()
}

/// Returns the filter in that form, or the failure as an error of the system.
pub(super) fn filter_bytes(sockets: SocketAccess) -> io::Result<Vec<u8>> {
    Ok(to_bytes(&filter(sockets).map_err(io::Error::other)?))
}
