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

/// System calls that a level without namespaces denies as well.
const DENIED_WITHOUT_NAMESPACES: &[libc::c_long] = &[
    // What would leave the process group, by which the tree is killed.
    libc::SYS_setsid,
    // Memory and queues that all processes of the machine share.
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
];

/// Isolation of the process apart from the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surroundings {
    /// Namespaces, without any network.
    NetworkNamespace,
    /// Namespaces, with a network that leads to a proxy alone.
    Proxy,
    /// No namespace. The process joins this process group when it starts, and no other later.
    ProcessGroup(u32),
}

/// Creates the filter.
pub(super) fn filter(surroundings: Surroundings) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = DENIED.iter().map(|&call| (call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, Vec::new());
    match surroundings {
        Surroundings::NetworkNamespace => {}
        Surroundings::Proxy => {
            let rule = SeccompRule::new(vec![
                low_argument(0, SeccompCmpOp::Ne, libc::AF_INET.unsigned_abs())?,
                low_argument(0, SeccompCmpOp::Ne, libc::AF_INET6.unsigned_abs())?,
            ])?;
            rules.insert(libc::SYS_socket, vec![rule]);
        }
        Surroundings::ProcessGroup(group) => {
            rules.extend(DENIED_WITHOUT_NAMESPACES.iter().map(|&call| (call, Vec::new())));
            let other_process = SeccompRule::new(vec![low_argument(0, SeccompCmpOp::Ne, 0)?])?;
            let other_group = SeccompRule::new(vec![low_argument(1, SeccompCmpOp::Ne, group)?])?;
            rules.insert(libc::SYS_setpgid, vec![other_process, other_group]);
        }
    }
    rules.insert(libc::SYS_clone, clone_rules()?);
    // Commands that put input into a terminal.
    let mut ioctl = Vec::new();
    for command in [TIOCSTI, TIOCLINUX] {
        ioctl.push(SeccompRule::new(vec![low_argument(
            1,
            SeccompCmpOp::Eq,
            command,
        )?])?);
    }
    rules.insert(libc::SYS_ioctl, ioctl);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(EPERM),
        TargetArch::try_from(std::env::consts::ARCH)?,
    )?;
    let mut program = prologue();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;

/// Returns one rule for each flag of `clone` that makes a namespace.
fn clone_rules() -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let flags = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let rule = |flag: libc::c_int| {
        let flag = u64::from(flag.unsigned_abs());
        let condition =
            SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?;
        Ok(SeccompRule::new(vec![condition])?)
    };
    flags.into_iter().map(rule).collect()
}

fn low_argument(
    index: u8,
    operator: SeccompCmpOp,
    value: u32,
) -> Result<SeccompCondition, seccompiler::Error> {
    let length = SeccompCmpArgLen::Dword;
    Ok(SeccompCondition::new(index, length, operator, u64::from(value))?)
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
fn to_bytes(program: &[sock_filter]) -> Vec<u8> {
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
pub(super) fn filter_bytes(surroundings: Surroundings) -> io::Result<Vec<u8>> {
    Ok(to_bytes(&filter(surroundings).map_err(io::Error::other)?))
}
