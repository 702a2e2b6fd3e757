//! Enforcement by the Linux kernel.

mod backend;
mod bwrap;
mod descriptors;
mod rlimits;
mod seccomp;
mod spawner;
mod supervisor;

pub(crate) use self::backend::Backend;
