//! Proof that one schema accepts everything that another one accepts.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{RecvTimeoutError, sync_channel},
    },
    thread,
    time::Duration,
};

use jsonschema::{
    Draft, PatternOptions,
    canonical::{CanonicalSchema, CanonicalizationError, Containment},
};
use serde_json::Value;

use crate::{Schema, budget::MAX_DEPTH};

/// Result of the attempt of a proof.
pub(super) enum Proof {
    /// The wider schema accepts everything that the narrower one accepts.
    Covers,
    /// Some value that the narrower schema accepts is refused by the wider one.
    Refuted,
    /// Neither was proven, for this reason.
    Unknown(String),
}

/// Maximum size of the two schemas together, in values.
const MAX_VALUES: usize = 20_000;
/// Maximum number of branches of `anyOf` and `oneOf` in both schemas together. The cost of a proof may grow with their product.
const MAX_BRANCHES: usize = 64;
/// Maximum time of a proof. The library has budgets of its own, within which its thread ends later.
const LIMIT: Duration = Duration::from_secs(1);
/// Maximum number of proofs at a time.
const MAX_RUNNING: usize = 8;
/// Stack of the thread of a proof, in bytes: enough for schemas of the maximum depth.
const STACK: usize = 32 << 20;
/// Maximum size of a pattern's automaton, in bytes.
const PATTERN_SIZE: usize = 1 << 20;

/// Tries to prove that `wider` accepts everything that `narrower` accepts.
pub(super) fn prove(wider: &Schema, narrower: &Schema) -> Proof {
    if wider.draft() != narrower.draft() {
        return Proof::Unknown("the schemas are of different drafts".to_owned());
    }
    let mut size = Size::default();
    size.add(wider.value(), 0);
    size.add(narrower.value(), 0);
    if size.n_values > MAX_VALUES || size.n_branches > MAX_BRANCHES {
        return Proof::Unknown("the schemas are too large to be compared".to_owned());
    }
    let (draft, wider, narrower) = (wider.draft(), wider.value().clone(), narrower.value().clone());
    let Some(running) = Running::begin() else {
        return Proof::Unknown("too many comparisons are running".to_owned());
    };
    let (sender, receiver) = sync_channel(1);
    // A thread of its own bounds the time and the stack, and contains a panic of the library.
    let spawned = thread::Builder::new()
        .name("schema-proof".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            let proof = covers(draft, &wider, &narrower);
            drop(running);
            // The receiver may have given up.
            let _ = sender.send(proof);
        });
    if spawned.is_err() {
        return Proof::Unknown("no thread was available for the comparison".to_owned());
    }
    match receiver.recv_timeout(LIMIT) {
        Ok(Ok(Containment::Yes)) => Proof::Covers,
        Ok(Ok(Containment::No)) => Proof::Refuted,
        Ok(Ok(_)) => Proof::Unknown("compatibility could not be decided".to_owned()),
        Ok(Err(error)) => Proof::Unknown(reason(&error).to_owned()),
        Err(RecvTimeoutError::Timeout) => Proof::Unknown("the comparison took too long".to_owned()),
        Err(RecvTimeoutError::Disconnected) => Proof::Unknown("the comparison failed".to_owned()),
    }
}

/// Guard of a running proof. Those that were given up count until they end, so that hostile schemas occupy few threads.
struct Running;

static N_RUNNING: AtomicUsize = AtomicUsize::new(0);

impl Running {
    /// Returns `None` if [`MAX_RUNNING`] proofs are running.
    fn begin() -> Option<Self> {
        let more = |running| (running < MAX_RUNNING).then_some(running + 1);
        let begun = N_RUNNING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        begun.is_ok().then_some(Self)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        N_RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

fn covers(draft: Draft, wider: &Value, narrower: &Value) -> Result<Containment, CanonicalizationError> {
    canonicalize(draft, wider)?.covers(&canonicalize(draft, narrower)?)
}

/// Returns the canonical form of a schema, under the rules of the validators: nothing is fetched, and formats are annotations.
fn canonicalize(draft: Draft, schema: &Value) -> Result<CanonicalSchema, CanonicalizationError> {
    jsonschema::canonical::options()
        .offline()
        .with_draft(draft)
        .should_validate_formats(false)
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE))
        .canonicalize(schema)
}

/// Returns the reason in words of our own: a message of the library may quote the schema.
fn reason(error: &CanonicalizationError) -> &'static str {
    match error {
        CanonicalizationError::UnsupportedOperand | CanonicalizationError::UnsupportedResult => {
            "a schema uses keywords that cannot be compared"
        }
        CanonicalizationError::IncompatibleOperands(_) => "the schemas refer to themselves in different ways",
        CanonicalizationError::InvalidPattern { .. } => "a pattern cannot be compared",
        _ => "a schema cannot be brought into a form that can be compared",
    }
}

#[derive(Default)]
struct Size {
    n_values: usize,
    n_branches: usize,
}

impl Size {
    /// Adds a value and all values in it. Compiled schemas are at most [`MAX_DEPTH`] deep.
    fn add(&mut self, value: &Value, depth: usize) {
        self.n_values += 1;
        if depth > 2 * MAX_DEPTH || self.n_values > MAX_VALUES {
            return;
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.add(item, depth + 1)),
            Value::Object(members) => {
                for (key, member) in members {
                    if let ("anyOf" | "oneOf", Value::Array(branches)) = (key.as_str(), member) {
                        self.n_branches += branches.len();
                    }
                    self.add(member, depth + 1);
                }
            }
            _ => {}
        }
    }
}
