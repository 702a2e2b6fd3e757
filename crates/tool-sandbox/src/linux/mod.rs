//! Enforcement by the Linux kernel.

pub(crate) mod attacks;
mod backend;
mod bwrap;
mod cgroup;
mod collect;
mod descriptors;
mod exit;
mod host;
mod machine;
mod rlimits;
mod seccomp;
mod spawner;

pub(crate) use self::backend::Backend;

/// User and group of sandboxed processes: inside a user namespace, and outside when this process is root.
const NOBODY: u32 = 65534;

/// Parts of `/etc` that programs need and that hold no secret.
const ETC_PATHS: [&str; 7] = [
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "ssl/certs",
    "ssl/openssl.cnf",
];

/// Returns the variables that every command has.
pub(super) fn base_environment<'a>(work: &'a str, temporary: &'a str) -> [(&'static str, &'a str); 4] {
    [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", work),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", temporary),
    ]
}
