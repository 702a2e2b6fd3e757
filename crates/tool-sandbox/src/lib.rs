//! Child processes under enforced limits.
//!
//! A [`SandboxCommand`] names a program and everything that it may see: files, variables, hosts and [limits](SandboxLimits).
//! A [`Sandbox`] runs it at the strongest [level](SandboxLevel) that the machine can enforce and says which one that was.
//! A level that does not work is an error: no run falls back to a weaker one.
//!
//! # Examples
//!
//! ```no_run
//! use tool_sandbox::{Sandbox, SandboxCommand};
//!
//! # async fn example() -> Result<(), tool_sandbox::SandboxError> {
//! let sandbox = Sandbox::detect().await?;
//! let command = SandboxCommand::new("/bin/sh")
//!     .args(["-c", "cat greeting.txt"])
//!     .file("greeting.txt", "hello");
//! let output = sandbox.run(command).await?;
//! assert!(output.exit.is_success());
//! assert_eq!(output.stdout, b"hello");
//! # Ok(())
//! # }
//! ```

mod child;
mod command;
mod error;
mod event;
mod level;
mod limits;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod network;
mod output;
pub mod probe;
mod run;
mod sandbox;
#[cfg(not(target_os = "linux"))]
mod unsupported;

pub use self::child::SandboxChild;
pub use self::command::{
    NetworkAccess, SandboxCollect, SandboxCommand, WORK_DIRECTORY, check_grant, ordered_grants,
};
pub use self::error::SandboxError;
pub use self::event::{OutputObserver, SandboxEvent};
pub use self::level::{EnforcementScope, SandboxEnforcement, SandboxLevel};
pub use self::limits::SandboxLimits;
pub use self::output::{CollectedFile, SandboxExit, SandboxOutput, SkippedFile};
pub use self::sandbox::{Sandbox, Sandboxes};
