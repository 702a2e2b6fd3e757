//! Attacks on a sandbox, which show what it really enforces on this machine.
//!
//! Each is a program that tries to leave the sandbox, with targets of the probe itself: files, listeners on loopback and
//! processes that it makes for this and removes again.

use serde::Serialize;

use crate::{Sandbox, SandboxEnforcement};

/// Outcome of one attack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProbeRow {
    /// Identifier of the attack, `E01` to `E24`.
    pub id: &'static str,
    /// Action that the program tried.
    pub title: &'static str,
    /// `true` if the sandbox held.
    pub held: bool,
    /// `false` if the attack needs something that this machine lacks. It then counts neither way.
    pub tried: bool,
    /// Observation in words.
    pub detail: String,
}

/// Outcome of all attacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProbeReport {
    /// Level of the sandbox and the scopes of its limits.
    pub enforcement: SandboxEnforcement,
    /// Attacks, in the order of their identifiers.
    pub rows: Vec<ProbeRow>,
}

impl ProbeReport {
    /// Returns `true` if the sandbox held against all attacks that were tried.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.rows.iter().all(|row| row.held || !row.tried)
    }
}

/// Attacks `sandbox` and reports which attacks it held against.
///
/// # Cancellation
/// Dropping the future ends the attack that runs.
pub async fn probe(sandbox: &Sandbox) -> ProbeReport {
    #[cfg(target_os = "linux")]
    let rows = crate::linux::attacks::all(sandbox).await;
    #[cfg(not(target_os = "linux"))]
    let rows = Vec::new();
    ProbeReport {
        enforcement: sandbox.enforcement().clone(),
        rows,
    }
}
